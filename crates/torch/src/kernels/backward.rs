//! The way from an objective back to the parameters it was computed from.

use tch::{Device, Tensor};

use crate::torch::{Backend, TorchError, ffi};

/// Adds the gradients of `objective`, a single number, to those of all parameters it was computed from, and releases
/// the graph. The engine's own pass walks the graph, on this thread and in its current stream (`backward.cpp`). On a CPU
/// without the engine's own kernels, libtorch's engine does: no kernel of the engine computes there.
///
/// # Errors
/// libtorch's; an objective without a graph, a graph that was walked before, and for the engine's own pass a hook on one of
/// the graph's tensors.
pub fn backward(objective: &Tensor, backend: Backend) -> Result<(), TorchError> {
    if backend.device == Device::Cpu && !backend.uses_own_kernels() {
        return Ok(objective.f_backward()?);
    }
    // SAFETY: `objective` outlives the call, which checks what it is.
    unsafe { ffi::check(ffi::simic_backward(objective.as_ptr())) }
}

#[cfg(test)]
mod tests;
