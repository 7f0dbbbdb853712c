//! From an objective back to the parameters it was computed from.

use tch::Tensor;

use crate::torch::{Backend, TorchError, ffi};

/// Adds the gradients of `objective`, a single number, to those of all parameters it was computed from, and releases
/// the graph. Where the engine's own kernels compute, its own pass walks the graph, on this thread (`backward.cpp`);
/// elsewhere libtorch's engine does.
///
/// # Errors
/// libtorch's; an objective without a graph, a graph that was walked before, and with own kernels a hook on one of its
/// tensors.
pub fn backward(objective: &Tensor, backend: Backend) -> Result<(), TorchError> {
    if !backend.uses_own_kernels() {
        return Ok(objective.f_backward()?);
    }
    // SAFETY: `objective` outlives the call, which checks what it is.
    unsafe { ffi::check(ffi::simic_backward(objective.as_ptr())) }
}

#[cfg(test)]
mod tests;
