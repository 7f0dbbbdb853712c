//! Gradients of one parameter group, each operation one call and no read: zeroing, clipping with the non-finite guard,
//! statistics.
//!
//! A group is the host's parameters or one seed's; groups are never mixed. Parameters whose gradient is undefined are
//! passed over everywhere.

use tch::{Device, Kind, Tensor};

use super::TorchError;
use super::ffi::{self, pointer, pointers};

/// Zeroes the defined gradients of `params` in place; their storage stays, undefined ones stay undefined.
pub fn zero_grads(params: &[Tensor]) -> Result<(), TorchError> {
    let list = pointers(params);
    // SAFETY: the pointers belong to `params`, which outlives the call.
    unsafe { ffi::check(ffi::simic_zero_grads(list.as_ptr(), list.len())) }
}

/// What [`clip_group`] found, on the group's device; kept and overwritten for the whole run.
#[derive(Debug)]
pub struct GroupNorm {
    /// L2 norm over all gradients of the group before clipping, f64 scalar.
    pub norm: Tensor,
    /// 1 where that norm is not finite, else 0; f32 scalar, the `found_inf` of [`Optimizer::step`](super::Optimizer::step).
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
/// The norm is accumulated in f64, so that it is finite wherever all gradients are. Of a group with non-finite
/// gradients the gradients are left as they may be: `bad` suppresses its update.
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

#[cfg(test)]
mod tests;
