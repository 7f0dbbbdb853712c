//! Optimizer steps of a group of parameters in one call: by the engine's own kernels or by libtorch's fused ones
//! (`update.cpp`).

use smallvec::SmallVec;
use tch::Tensor;

use super::gradients::{GradientThresholds, GroupColumns, GroupNorm};
use crate::scenario::OptimizerConfig;
use crate::torch::TorchError;
use crate::torch::ffi::{self, RawRule, RawTreatment, TensorPointers, pointer, pointers};

/// The treatment of a group's gradients in one batch, and the place of the findings.
#[derive(Clone, Debug)]
pub struct GroupUpdate<'a> {
    /// Gradients are clipped to this norm together; `None`: they aren't.
    pub max_norm: Option<f64>,
    /// Thresholds, set where this batch's statistics are taken.
    pub statistics: Option<GradientThresholds>,
    /// True if this batch counts for the streak of non-finite gradients.
    pub is_sampled: bool,
    /// `f64`: the env's read pack.
    pub pack: &'a Tensor,
    /// Columns of the pack.
    pub columns: GroupColumns,
}

impl GroupUpdate<'_> {
    /// The column of the streak, if this batch writes it.
    pub fn streak(&self) -> Option<usize> {
        self.columns.streak.filter(|_| self.is_sampled)
    }
}

/// Parameters, and the way in which an optimizer trains them.
#[derive(Clone, Copy, Debug)]
pub struct Trained<'a> {
    /// The rule.
    pub rule: &'a OptimizerConfig,
    /// The parameters that it trains.
    pub params: &'a [Tensor],
    /// One tensor a parameter, by kind: SGD's velocities, none of them without momentum; AdamW's two moments and counts.
    pub state: &'a [(&'static str, Vec<Tensor>)],
}

impl Trained<'_> {
    /// A step by the engine's own kernel, for float32 on a CPU. `found_inf`: f32 scalar; nothing changes where it is 1.
    ///
    /// # Errors
    /// libtorch's; other parameters than float32 on a CPU, or a state of other parameters.
    pub fn own_step(self, found_inf: &Tensor) -> Result<(), TorchError> {
        // SAFETY: `with_rule`'s; the call checks that parameters are float32 on a CPU.
        self.with_rule(|params, rule| unsafe {
            ffi::check(ffi::simic_own_step(
                params.as_ptr(),
                params.len(),
                rule,
                found_inf.as_ptr(),
            ))
        })
    }

    /// A step by libtorch's kernels, at the learning rate that `rate` holds when they run: `[]`, on the parameters' device, f32
    /// on CUDA and f64 on a CPU.
    ///
    /// # Errors
    /// libtorch's; a state of other parameters.
    pub fn fused_step(self, rate: &Tensor, found_inf: &Tensor) -> Result<(), TorchError> {
        // SAFETY: `with_rule`'s; libtorch checks where the rate lies.
        self.with_rule(|params, rule| unsafe {
            ffi::check(ffi::simic_fused_step(
                params.as_ptr(),
                params.len(),
                rule,
                rate.as_ptr(),
                found_inf.as_ptr(),
            ))
        })
    }

    /// Does everything in `update` and the step by the engine's own kernels, for float32 on a CPU.
    ///
    /// # Errors
    /// Those of [`own_step`](Self::own_step).
    pub fn own_update(self, found: &mut GroupNorm, update: &GroupUpdate) -> Result<(), TorchError> {
        let column = |column: usize| column as i64;
        let treatment = RawTreatment {
            max_norm: update.max_norm.unwrap_or(-1.0),
            vanishing: update.statistics.map_or(0.0, |thresholds| thresholds.vanishing),
            exploding: update.statistics.map_or(0.0, |thresholds| thresholds.exploding),
            statistics: update.statistics.map_or(-1, |_| column(update.columns.gradients.start)),
            streak: update.streak().map_or(-1, column),
            skipped: column(update.columns.skipped),
        };
        // SAFETY: `with_rule`'s; norm and bad have the kinds that the shim writes because only GroupNorm::new makes them;
        // the columns lie in the pack, whose layout made them.
        self.with_rule(|params, rule| unsafe {
            ffi::check(ffi::simic_own_update(
                params.as_ptr(),
                params.len(),
                rule,
                &treatment,
                pointer(update.pack),
                pointer(&found.norm),
                pointer(&found.bad),
            ))
        })
    }

    /// Calls with the parameters and the rule as the shim knows it: lists of one tensor a parameter (no velocity without
    /// momentum, when the shim reads none), all borrowed through the call.
    fn with_rule(
        self,
        call: impl FnOnce(&TensorPointers, &RawRule) -> Result<(), TorchError>,
    ) -> Result<(), TorchError> {
        let params = pointers(self.params);
        let state: SmallVec<[TensorPointers; 3]> = self.state.iter().map(|(_, list)| pointers(list)).collect();
        let list = |index: usize| state.get(index).map_or(std::ptr::null(), |list| list.as_ptr());
        let (is_adamw, lists, [lr, beta1, beta2, eps, weight_decay]) = match *self.rule {
            OptimizerConfig::Sgd {
                lr,
                momentum,
                weight_decay,
            } => (
                false,
                usize::from(momentum != 0.0),
                [lr, momentum, 0.0, 0.0, weight_decay],
            ),
            OptimizerConfig::Adamw {
                lr,
                beta1,
                beta2,
                eps,
                weight_decay,
            } => (true, 3, [lr, beta1, beta2, eps, weight_decay]),
        };
        let held = state.iter().take_while(|list| list.len() == params.len()).count();
        if held < lists {
            let what = format!("only {held} of {lists} lists of an optimizer's state fit its parameters");
            return Err(TorchError::Other(what));
        }
        let (first, second, counts) = (list(0), list(1), list(2));
        let rule = RawRule {
            is_adamw,
            lr,
            beta1,
            beta2,
            eps,
            weight_decay,
            first,
            second,
            counts,
        };
        call(&params, &rule)
    }
}
