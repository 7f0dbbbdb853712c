//! Tensors that are reset to their earlier values where they stop being finite, decided on their device.

use tch::{TchError, Tensor};

use super::TorchError;
use super::ffi::{self, pointer, pointers};

/// Tensors of one kind and device, and room for their values.
#[derive(Debug)]
pub struct FiniteGuard {
    tensors: Vec<Tensor>,
    /// The values of all tensors, one after another.
    kept: Tensor,
}

impl FiniteGuard {
    /// Guards `tensors` (shallow clones), at least one.
    ///
    /// # Errors
    /// libtorch's, when memory runs out or `tensors` is empty.
    pub fn new(tensors: Vec<Tensor>) -> Result<Self, TchError> {
        let flat: Vec<Tensor> = tensors
            .iter()
            .map(|tensor| tensor.f_flatten(0, -1))
            .collect::<Result<_, _>>()?;
        let kept = Tensor::f_cat(&flat, 0)?;
        Ok(Self { tensors, kept })
    }

    /// Keeps the values aside.
    ///
    /// # Errors
    /// libtorch's.
    pub fn keep(&self) -> Result<(), TorchError> {
        let list = pointers(&self.tensors);
        // SAFETY: the pointers belong to tensors of `self`, which outlives the call; `kept` has the elements of all and
        // their kind, since it was made of them.
        unsafe { ffi::check(ffi::simic_keep(list.as_ptr(), list.len(), pointer(&self.kept))) }
    }

    /// A copy of the kept values, for [`restore`](Self::restore) when more has been kept since.
    ///
    /// # Errors
    /// libtorch's, when memory runs out.
    pub fn kept(&self) -> Result<Tensor, TchError> {
        self.kept.f_detach_copy()
    }

    /// Resets all tensors to the values kept last, or to `earlier`.
    ///
    /// # Errors
    /// libtorch's.
    pub fn restore(&self, earlier: Option<&Tensor>) -> Result<(), TorchError> {
        self.put_back(earlier.unwrap_or(&self.kept), false)
    }

    /// Resets all tensors to the kept values if one of them holds a value that is not finite by now. Call it when no
    /// backward pass needs them any more.
    ///
    /// # Errors
    /// libtorch's.
    pub fn restore_unless_finite(&self) -> Result<(), TorchError> {
        self.put_back(&self.kept, true)
    }

    fn put_back(&self, kept: &Tensor, unless_finite: bool) -> Result<(), TorchError> {
        let list = pointers(&self.tensors);
        // SAFETY: as in `keep`; `kept` is that of `self` or a copy of it.
        unsafe {
            ffi::check(ffi::simic_restore(
                list.as_ptr(),
                list.len(),
                kept.as_ptr(),
                unless_finite,
            ))
        }
    }
}

#[cfg(test)]
mod tests;
