//! Treatment of one group's gradients in a training batch, in the normative order: statistics, norm, clip, guard,
//! step. The engine's kernels do it in one call; elsewhere each is a separate operation.

use super::{Implementation, Optimizer};
use crate::kernels::{GroupNorm, GroupUpdate, clip_group, grad_stats};
use crate::torch::TorchError;

impl Optimizer {
    /// Updates the parameters from their gradients, unless a gradient is not finite. `found` holds the norm afterwards;
    /// gradients may have been scaled in place.
    ///
    /// # Errors
    /// libtorch's.
    pub fn update(&mut self, found: &mut GroupNorm, update: &GroupUpdate) -> Result<(), TorchError> {
        match self.implementation {
            Implementation::Own => self.trained().own_update(found, update),
            Implementation::Fused | Implementation::Plain => self.update_by_operators(found, update),
        }
    }

    fn update_by_operators(&mut self, found: &mut GroupNorm, update: &GroupUpdate) -> Result<(), TorchError> {
        let columns = |first: usize, count: usize| update.pack.f_narrow(0, first as i64, count as i64);
        if let Some(thresholds) = update.statistics {
            let gradients = &update.columns.gradients;
            let mut found = columns(gradients.start, gradients.len())?;
            if self.params.is_empty() {
                // Statistics without gradients are on no device.
                let _ = found.f_zero_()?;
            } else {
                found.f_copy_(&grad_stats(&self.params, thresholds.vanishing, thresholds.exploding)?)?;
            }
        }
        clip_group(&self.params, update.max_norm, found)?;
        if let Some(streak) = update.streak() {
            // Counts the step's last samples in a row that were not finite.
            let _ = columns(streak, 1)?.f_add_scalar_(1.0)?.f_mul_(&found.bad)?;
        }
        let _ = columns(update.columns.skipped, 1)?.f_add_(&found.bad)?;
        self.step(&found.bad)
    }
}

#[cfg(test)]
mod tests;
