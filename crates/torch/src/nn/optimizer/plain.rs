//! The optimizer rules as plain tensor formulas. Tests compare the fused kernels with them, and they replace those where
//! a device refuses them.
//!
//! A suppressed step is a selection, never a multiplication by zero: NaN times zero is NaN.

use tch::Tensor;

use crate::scenario::OptimizerConfig;

/// One update of `param`; `state` are its tensors in the order of [`Optimizer::state_tensors`](super::Optimizer::state_tensors).
///
/// - SGD: `g ← g + wd·p; v ← μ·v + g; p ← p − lr·v`. Without momentum there is no `v`.
/// - AdamW: decoupled weight decay, then Adam with bias correction (Loshchilov and Hutter 2019, arXiv:1711.05101).
pub(super) fn step(
    config: &OptimizerConfig,
    param: &mut Tensor,
    grad: &Tensor,
    state: &mut [&mut Tensor],
    found_inf: &Tensor,
) {
    match (*config, state) {
        (
            OptimizerConfig::Sgd {
                lr,
                momentum,
                weight_decay,
            },
            state,
        ) => {
            let grad = grad + &*param * weight_decay;
            let direction = match state {
                [velocity] => {
                    let next = &**velocity * momentum + grad;
                    replace(velocity, &next, found_inf);
                    next
                }
                _ => grad,
            };
            let next = &*param - direction * lr;
            replace(param, &next, found_inf);
        }
        (
            OptimizerConfig::Adamw {
                lr,
                beta1,
                beta2,
                eps,
                weight_decay,
            },
            [exp_avg, exp_avg_sq, step],
        ) => {
            let first = &**exp_avg * beta1 + grad * (1.0 - beta1);
            let second = &**exp_avg_sq * beta2 + grad * grad * (1.0 - beta2);
            let count = &**step + 1.0;
            let correction = |beta: f64| 1.0 - (&count * beta.ln()).exp();
            let corrected: Tensor = &second / correction(beta2);
            let denominator = corrected.sqrt() + eps;
            let decayed = &*param * (1.0 - lr * weight_decay);
            let next = decayed - (&first / correction(beta1)) / denominator * lr;

            replace(exp_avg, &first, found_inf);
            replace(exp_avg_sq, &second, found_inf);
            replace(step, &count, found_inf);
            replace(param, &next, found_inf);
        }
        (OptimizerConfig::Adamw { .. }, _) => unreachable!("AdamW keeps three tensors a parameter"),
    }
}

/// Writes `next` into `current`'s storage unless `found_inf` is 1.
fn replace(current: &mut Tensor, next: &Tensor, found_inf: &Tensor) {
    let kept = current.where_self(&found_inf.ne(0.0), next);
    current.copy_(&kept);
}
