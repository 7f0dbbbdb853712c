//! Convolutions with few channels on CPU, where oneDNN's fixed costs outweigh the arithmetic (`narrow_conv.cpp`).

use tch::{TchError, Tensor};

use super::ffi::{self, optional_pointer};

/// Whether [`narrow_conv`] serves a convolution of `x` with `weight` (`[outputs, inputs, k, k]`, k odd, one group): f32
/// on CPU, outside autocast, with 4, 8 or 16 channels, and without a bias where gradients are recorded.
pub fn is_narrow_conv(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> bool {
    let mut answer = false;
    // SAFETY: all tensors and `answer` outlive the call, which reads the tensors' metadata only.
    let asked = unsafe {
        ffi::check(ffi::simic_is_narrow_conv(
            x.as_ptr(),
            weight.as_ptr(),
            optional_pointer(bias),
            &mut answer,
        ))
    };
    asked.is_ok() && answer
}

/// Stride 1, "same" padding; the result is channels-last. Only for what [`is_narrow_conv`] affirms.
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
