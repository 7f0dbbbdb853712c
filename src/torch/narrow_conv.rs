//! Convolutions with few channels on CPU, where oneDNN's fixed costs outweigh the arithmetic (`narrow_conv.cpp`).

use tch::{TchError, Tensor};

use super::ffi::{self, optional_pointer};

/// Whether [`narrow_conv`] serves a convolution of `x` with `weight` (`[outputs, inputs, k, k]`, k odd, one group): f32
/// on CPU, outside autocast, and 4, 8 or 16 channels.
pub fn is_narrow_conv(x: &Tensor, weight: &Tensor) -> bool {
    // SAFETY: both tensors outlive the call, which reads their metadata only.
    unsafe { ffi::simic_is_narrow_conv(x.as_ptr(), weight.as_ptr()) }
}

/// Stride 1, "same" padding; the result is channels-last. Only for what [`is_narrow_conv`] affirms. `bias` is for
/// inference: it takes no gradient.
///
/// Sums run in a fixed order, so results do not depend on threads.
pub fn narrow_conv(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor, TchError> {
    let mut out = std::ptr::null_mut();
    // SAFETY: all tensors outlive the call, and on success `out` is a tensor of its own that tch takes over.
    unsafe {
        ffi::check_operator(ffi::simic_narrow_conv(
            x.as_ptr(),
            weight.as_ptr(),
            optional_pointer(bias),
            &mut out,
        ))?;
        Ok(Tensor::from_ptr(out))
    }
}

#[cfg(test)]
mod tests;
