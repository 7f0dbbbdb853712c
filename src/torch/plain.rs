//! The optimizer rules as plain tensor formulas: what the fused kernels are tested against, and their replacement where
//! a device refuses them.
//!
//! A suppressed step is a selection, never a multiplication by zero: NaN times zero is NaN.

use tch::Tensor;

/// Hyper-parameters of SGD.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sgd {
    pub lr: f64,
    pub momentum: f64,
    pub weight_decay: f64,
}

/// `g ← g + wd·p; v ← μ·v + g; p ← p − lr·v`. Without momentum there is no `v`.
pub(super) fn sgd_step(
    param: &mut Tensor,
    grad: &Tensor,
    velocity: Option<&mut Tensor>,
    rule: Sgd,
    found_inf: Option<&Tensor>,
) {
    let Sgd {
        lr,
        momentum,
        weight_decay,
    } = rule;
    let grad = grad + &*param * weight_decay;
    let direction = match velocity {
        Some(velocity) => {
            let next = &*velocity * momentum + grad;
            replace(velocity, &next, found_inf);
            next
        }
        None => grad,
    };
    let next = &*param - direction * lr;
    replace(param, &next, found_inf);
}

/// Hyper-parameters of AdamW.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdamW {
    pub lr: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
    pub weight_decay: f64,
}

/// State of one parameter under AdamW; `step` is an f32 scalar.
pub(super) struct Moments<'a> {
    pub exp_avg: &'a mut Tensor,
    pub exp_avg_sq: &'a mut Tensor,
    pub step: &'a mut Tensor,
}

/// Decoupled weight decay, then Adam with bias correction (Loshchilov and Hutter 2019, arXiv:1711.05101).
pub(super) fn adamw_step(param: &mut Tensor, grad: &Tensor, state: Moments, rule: AdamW, found_inf: Option<&Tensor>) {
    let AdamW {
        lr,
        beta1,
        beta2,
        eps,
        weight_decay,
    } = rule;
    let first = &*state.exp_avg * beta1 + grad * (1.0 - beta1);
    let second = &*state.exp_avg_sq * beta2 + grad * grad * (1.0 - beta2);
    let step = &*state.step + 1.0;
    let correction = |beta: f64| 1.0 - (&step * beta.ln()).exp();
    let corrected: Tensor = &second / correction(beta2);
    let denominator = corrected.sqrt() + eps;
    let decayed = &*param * (1.0 - lr * weight_decay);
    let next = decayed - (&first / correction(beta1)) / denominator * lr;

    replace(state.exp_avg, &first, found_inf);
    replace(state.exp_avg_sq, &second, found_inf);
    replace(state.step, &step, found_inf);
    replace(param, &next, found_inf);
}

/// Writes `next` into `current`'s storage unless `found_inf` is 1.
fn replace(current: &mut Tensor, next: &Tensor, found_inf: Option<&Tensor>) {
    match found_inf {
        Some(bad) => {
            let kept = current.where_self(&bad.ne(0.0), next);
            current.copy_(&kept);
        }
        None => current.copy_(next),
    }
}
