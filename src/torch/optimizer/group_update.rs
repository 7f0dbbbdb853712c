//! What a training batch does with the gradients of one group, in the normative order: statistics, norm, clip, guard,
//! step. The engine's own kernels do it in one call; elsewhere each is an operation of its own.

use super::{Implementation, Optimizer};
use crate::torch::ffi::{self, RawTreatment, pointer, pointers};
use crate::torch::{GradientThresholds, GroupColumns, GroupNorm, TorchError, clip_group, grad_stats};

use tch::Tensor;

/// How the gradients of a group are treated in one batch, and where what is found is written.
#[derive(Clone, Debug)]
pub struct GroupUpdate<'a> {
    /// Gradients are clipped to this norm together; `None`: not at all.
    pub max_norm: Option<f64>,
    /// Set where this batch's statistics are taken.
    pub statistics: Option<GradientThresholds>,
    /// This batch counts for the streak of non-finite gradients.
    pub is_sampled: bool,
    /// `f64`: the env's read pack.
    pub pack: &'a Tensor,
    /// Columns of the pack.
    pub columns: GroupColumns,
}

impl GroupUpdate<'_> {
    fn streak(&self) -> Option<usize> {
        self.columns.streak.filter(|_| self.is_sampled)
    }
}

impl Optimizer {
    /// Updates the parameters from their gradients, unless a gradient is not finite. `found` holds the norm afterwards;
    /// gradients may have been scaled in place.
    ///
    /// # Errors
    /// libtorch's.
    pub fn update(&mut self, found: &mut GroupNorm, update: &GroupUpdate) -> Result<(), TorchError> {
        match self.implementation {
            Implementation::Own => self.update_in_one_call(found, update),
            Implementation::Fused | Implementation::Plain => self.update_by_operators(found, update),
        }
    }

    fn update_in_one_call(&self, found: &mut GroupNorm, update: &GroupUpdate) -> Result<(), TorchError> {
        let column = |column: usize| column as i64;
        let treatment = RawTreatment {
            max_norm: update.max_norm.unwrap_or(-1.0),
            vanishing: update.statistics.map_or(0.0, |thresholds| thresholds.vanishing),
            exploding: update.statistics.map_or(0.0, |thresholds| thresholds.exploding),
            statistics: update.statistics.map_or(-1, |_| column(update.columns.gradients.start)),
            streak: update.streak().map_or(-1, column),
            skipped: column(update.columns.skipped),
        };
        let (params, state) = (pointers(&self.params), self.state_pointers());
        let rule = self.raw_rule(&state);
        // SAFETY: the lists hold one tensor per parameter (no velocity without momentum, when the shim reads none), all
        // borrowed from `self` through the call; norm and bad have the kinds that the shim writes because only
        // GroupNorm::new makes them; the columns lie in the pack, whose layout made them.
        unsafe {
            ffi::check(ffi::simic_own_update(
                params.as_ptr(),
                params.len(),
                &rule,
                &treatment,
                pointer(update.pack),
                pointer(&found.norm),
                pointer(&found.bad),
            ))
        }
    }

    fn update_by_operators(&mut self, found: &mut GroupNorm, update: &GroupUpdate) -> Result<(), TorchError> {
        let columns = |first: usize, count: usize| update.pack.f_narrow(0, first as i64, count as i64);
        if let Some(thresholds) = update.statistics {
            let measured = grad_stats(&self.params, thresholds.vanishing, thresholds.exploding)?;
            let gradients = &update.columns.gradients;
            columns(gradients.start, gradients.len())?.f_copy_(&measured)?;
        }
        clip_group(&self.params, update.max_norm, found)?;
        if let Some(streak) = update.streak() {
            // How many of the step's last samples in a row were not finite.
            let _ = columns(streak, 1)?.f_add_scalar_(1.0)?.f_mul_(&found.bad)?;
        }
        let _ = columns(update.columns.skipped, 1)?.f_add_(&found.bad)?;
        self.step(&found.bad)
    }
}

#[cfg(test)]
mod tests;
