//! Copies in place and memory formats, which tch does not offer.

use tch::kind::Element;
use tch::{Cuda, Device, Tensor};

use super::ffi::{self, pointer, pointers};
use super::{TorchError, catch};

/// Zeroes every tensor in place, in one call.
pub fn zero_all(tensors: &[Tensor]) -> Result<(), TorchError> {
    let list = pointers(tensors);
    // SAFETY: the pointers belong to `tensors`, which outlives the call.
    unsafe { ffi::check(ffi::simic_zero_all(list.as_ptr(), list.len())) }
}

/// Copies each of `from` into the tensor of `to` at its place, in one call and without recording gradients.
///
/// # Errors
/// `Shape` if the lists differ in length or a pair differs in size.
pub fn copy_all(to: &[Tensor], from: &[Tensor], non_blocking: bool) -> Result<(), TorchError> {
    if to.len() != from.len() {
        return Err(TorchError::Shape(format!(
            "{} tensors cannot be copied into {}",
            from.len(),
            to.len()
        )));
    }
    let (targets, sources) = (pointers(to), pointers(from));
    // SAFETY: both lists have the length passed, and their tensors outlive the call.
    unsafe {
        ffi::check(ffi::simic_copy_all(
            targets.as_ptr(),
            sources.as_ptr(),
            targets.len(),
            non_blocking,
        ))
    }
}

/// Copies `from` into `to`'s storage (broadcasting and casting) without recording gradients. With `non_blocking` a copy
/// between pinned host memory and a device returns before it is done.
pub fn copy_into(to: &Tensor, from: &Tensor, non_blocking: bool) -> Result<(), TorchError> {
    // SAFETY: both tensors outlive the call.
    unsafe { ffi::check(ffi::simic_copy_into(pointer(to), from.as_ptr(), non_blocking)) }
}

/// Queues a copy of `values` into `to`, row by row, in the current stream. On CUDA they go through pinned memory, which
/// libtorch keeps until the copy is done: the call does not wait.
///
/// # Errors
/// `Shape` if their numbers differ; a device error.
pub fn upload<T: Element>(to: &Tensor, values: &[T]) -> Result<(), TorchError> {
    if to.numel() != values.len() {
        let (room, count) = (to.numel(), values.len());
        return Err(TorchError::Shape(format!(
            "{count} values do not fit into {room} places"
        )));
    }
    let mut host = Tensor::f_from_slice(values)?.f_view_as(to)?;
    if to.device().is_cuda() {
        host = pinned(&host)?;
    }
    copy_into(to, &host, true)
}

/// A copy of a CPU tensor in pinned memory, which CUDA devices read without the processor; libtorch's CUDA part must be open.
///
/// # Errors
/// No memory; no CUDA device.
pub fn pinned(tensor: &Tensor) -> Result<Tensor, TorchError> {
    let mut out = std::ptr::null_mut();
    // SAFETY: `tensor` outlives the call, and on success `out` is a tensor of its own that tch takes over.
    unsafe {
        ffi::check(ffi::simic_pinned(tensor.as_ptr(), &mut out))?;
        Ok(Tensor::from_ptr(out))
    }
}

/// Waits on the host until all work that was queued on `device` so far is done, in all streams. A no-op on a CPU.
///
/// # Errors
/// A device error.
pub fn synchronize(device: Device) -> Result<(), TorchError> {
    match device {
        Device::Cuda(index) => catch(|| Cuda::synchronize(index as i64)),
        _ => Ok(()),
    }
}

/// A 4-dimensional tensor with its channels innermost in memory; `tensor` itself where that is so already.
///
/// # Errors
/// `Shape` for any other number of dimensions.
pub fn channels_last(tensor: &Tensor) -> Result<Tensor, TorchError> {
    let mut out = std::ptr::null_mut();
    // SAFETY: `tensor` outlives the call, and on success `out` is a tensor of its own that tch takes over.
    unsafe {
        ffi::check(ffi::simic_channels_last(tensor.as_ptr(), &mut out))?;
        Ok(Tensor::from_ptr(out))
    }
}

/// Returns whether the channels of a 4-dimensional tensor are innermost in memory.
pub fn is_channels_last(tensor: &Tensor) -> bool {
    let mut answer = false;
    // SAFETY: `tensor` and `answer` outlive the call.
    let asked = unsafe { ffi::check(ffi::simic_is_channels_last(tensor.as_ptr(), &mut answer)) };
    asked.is_ok() && answer
}

#[cfg(test)]
mod tests;
