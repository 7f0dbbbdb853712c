//! Gradients of one parameter group, each operation one call and no read: dropping and zeroing, clipping with the non-finite guard,
//! statistics.
//!
//! A group is the host's parameters or one seed's; groups are never mixed. Parameters whose gradient is undefined are
//! skipped everywhere.

use std::ops::Range;

use tch::{Device, Kind, Tensor};

use crate::torch::TorchError;
use crate::torch::ffi::{self, pointer, pointers};

/// Makes all gradients of `params` undefined. The next backward pass hands its own tensors over instead of adding them to
/// zeros, and parameters that it does not reach have no gradient.
pub fn drop_grads(params: &[Tensor]) -> Result<(), TorchError> {
    let list = pointers(params);
    // SAFETY: the pointers belong to `params`, which outlives the call.
    unsafe { ffi::check(ffi::simic_drop_grads(list.as_ptr(), list.len())) }
}

/// Zeroes the defined gradients of `params` in place. Their storage stays, and undefined ones stay undefined.
pub fn zero_grads(params: &[Tensor]) -> Result<(), TorchError> {
    let list = pointers(params);
    // SAFETY: the pointers belong to `params`, which outlives the call.
    unsafe { ffi::check(ffi::simic_zero_grads(list.as_ptr(), list.len())) }
}

/// Norm below which a tensor's gradient counts as vanishing.
const VANISHING: f64 = 1e-7;

/// The limits at which the gradient norm of one tensor counts as vanishing or exploding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientThresholds {
    /// The gradient vanishes below this norm.
    pub vanishing: f64,
    /// The gradient explodes above this norm.
    pub exploding: f64,
}

impl GradientThresholds {
    /// Limits with `exploding_factor` times the clip norm, or the factor itself when clipping is off.
    pub fn new(exploding_factor: f64, max_grad_norm: Option<f64>) -> Self {
        Self {
            vanishing: VANISHING,
            exploding: exploding_factor * max_grad_norm.unwrap_or(1.0),
        }
    }
}

/// The columns of the read pack that the updates of one group of parameters write, the host's or a seed's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupColumns {
    /// `grad_sq, vanishing, exploding, tensors, elements`, as [`grad_stats`] measures them.
    pub gradients: Range<usize>,
    /// Suppressed updates of the step.
    pub skipped: usize,
    /// Last sampled batches in a row with a gradient that was not finite; only for seeds.
    pub streak: Option<usize>,
}

/// Findings of [`clip_group`], on the group's device; kept and overwritten for the whole run.
#[derive(Debug)]
pub struct GroupNorm {
    /// L2 norm over all gradients of the group before clipping, f64 scalar.
    pub norm: Tensor,
    /// 1 where that norm is not finite, else 0; f32 scalar, the `found_inf` of a step.
    pub bad: Tensor,
}

impl GroupNorm {
    /// Zeros on `device`.
    pub fn new(device: Device) -> Self {
        Self {
            norm: Tensor::zeros([0i64; 0], (Kind::Double, device)),
            bad: Tensor::zeros([0i64; 0], (Kind::Float, device)),
        }
    }
}

/// Clips the gradients of one group to `max_norm` together: multiplied in place by `min(1, max_norm/(norm + 1e-6))`.
/// `None` measures without clipping.
///
/// The norm is accumulated in f64, so that it is finite wherever all gradients are. If a group has non-finite
/// gradients, they may be scaled or not: `bad` suppresses its update.
pub fn clip_group(params: &[Tensor], max_norm: Option<f64>, found: &mut GroupNorm) -> Result<(), TorchError> {
    let list = pointers(params);
    // SAFETY: all pointers belong to tensors that are borrowed for the call; `norm` and `bad` have the kinds that the
    // shim writes because only GroupNorm::new makes them.
    unsafe {
        ffi::check(ffi::simic_clip_grads(
            list.as_ptr(),
            list.len(),
            max_norm.unwrap_or(-1.0),
            pointer(&found.norm),
            pointer(&found.bad),
        ))
    }
}

/// Gradient statistics of one group: an f64 vector of 5 on their device.
///
/// In order: Σ‖g‖² over all tensors; tensors with a norm below `vanishing`; tensors with a norm above `exploding` or
/// not finite; tensors with a gradient; elements of those.
pub fn grad_stats(params: &[Tensor], vanishing: f64, exploding: f64) -> Result<Tensor, TorchError> {
    let device = params.first().map_or(Device::Cpu, Tensor::device);
    let out = Tensor::f_zeros([5], (Kind::Double, device))?;
    let list = pointers(params);
    // SAFETY: the pointers belong to tensors that outlive the call; `out` is the f64 [5] that the shim writes.
    unsafe {
        ffi::check(ffi::simic_grad_stats(
            list.as_ptr(),
            list.len(),
            vanishing,
            exploding,
            pointer(&out),
        ))
    }?;
    Ok(out)
}

/// Multiplies the gradients of one group by `factor`, an f32 scalar, in place; `found_inf`, another, becomes 1 where one of
/// them is not finite.
pub fn unscale_grads(params: &[Tensor], factor: &Tensor, found_inf: &Tensor) -> Result<(), TorchError> {
    let list = pointers(params);
    // SAFETY: all tensors outlive the call.
    unsafe {
        ffi::check(ffi::simic_unscale_grads(
            list.as_ptr(),
            list.len(),
            factor.as_ptr(),
            pointer(found_inf),
        ))
    }
}

#[cfg(test)]
mod tests;
