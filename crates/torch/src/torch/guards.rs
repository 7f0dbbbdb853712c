//! Modes of the current thread as values: dropped, also by unwinding, they restore the earlier mode.
//!
//! Guards nest in this order: stream ⊃ grad mode ⊃ autocast. None of them is `Send`: libtorch keeps
//! these modes per thread.

use std::marker::PhantomData;
use std::ptr;

use tch::{Device, Kind};

use super::TorchError;
use super::ffi::{self, Opaque, RawAutocast};

/// Keeps a type on the thread that made it.
pub(super) type ThreadBound = PhantomData<*const ()>;

/// Gradient recording is off while this lives.
#[must_use = "the mode ends when the guard is dropped"]
#[derive(Debug)]
pub struct NoGrad {
    previous: bool,
    _thread: ThreadBound,
}

impl NoGrad {
    /// Switches the recording off.
    pub fn new() -> Self {
        let previous = ffi::simic_grad_enabled();
        ffi::simic_set_grad_enabled(false);
        Self {
            previous,
            _thread: PhantomData,
        }
    }
}

impl Default for NoGrad {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for NoGrad {
    fn drop(&mut self) {
        ffi::simic_set_grad_enabled(self.previous);
    }
}

/// Inference mode is on while this lives: no gradients, no version counters.
///
/// Tensors created inside can never take part in autograd afterwards, so none may be kept.
#[must_use = "the mode ends when the guard is dropped"]
#[derive(Debug)]
pub struct Inference {
    mode: *mut Opaque,
}

impl Inference {
    /// Enters inference mode on this thread.
    pub fn new() -> Result<Self, TorchError> {
        let mut mode = ptr::null_mut();
        // SAFETY: `mode` is a valid place for the pointer that the shim writes.
        unsafe { ffi::check(ffi::simic_inference_begin(&mut mode)) }?;
        Ok(Self { mode })
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        // SAFETY: `mode` was made by simic_inference_begin on this thread (a raw pointer makes the guard `!Send`) and
        // is given back once.
        unsafe { ffi::simic_inference_end(self.mode) }
    }
}

/// Mixed precision on one device type while this lives.
///
/// libtorch's cache of cast weights is shared by all threads and emptied by whichever leaves a region first; with envs
/// in parallel that would make the order of gradient sums depend on timing. The cache is therefore off inside the
/// guard: nothing outlives the region or mixes casts with and without gradient, and results are reproducible.
#[must_use = "the mode ends when the guard is dropped"]
#[derive(Debug)]
pub struct Autocast {
    previous: RawAutocast,
    _thread: ThreadBound,
}

impl Autocast {
    /// Casts to `kind` ([`Kind::BFloat16`] or [`Kind::Half`]) on devices of `device`'s type.
    ///
    /// # Errors
    /// `Other` for any other kind.
    pub fn new(device: Device, kind: Kind) -> Result<Self, TorchError> {
        let dtype = match kind {
            Kind::Half => 5,
            Kind::BFloat16 => 15,
            other => {
                return Err(TorchError::Other(format!(
                    "autocast runs in BFloat16 or Half, not in {other:?}"
                )));
            }
        };
        let mode = RawAutocast {
            device_type: ffi::device_type(device),
            dtype,
            enabled: true,
            cache_enabled: false,
        };
        Ok(Self {
            previous: exchange_autocast(&mode)?,
            _thread: PhantomData,
        })
    }
}

impl Drop for Autocast {
    fn drop(&mut self) {
        // Restoring values that were in force cannot fail; a panic while unwinding would abort the process.
        if let Err(error) = exchange_autocast(&self.previous) {
            tracing::error!(%error, "autocast could not be restored");
        }
    }
}

fn exchange_autocast(mode: &RawAutocast) -> Result<RawAutocast, TorchError> {
    let mut previous = RawAutocast::default();
    // SAFETY: both structs mirror the shim's layout and live through the call.
    unsafe { ffi::check(ffi::simic_autocast_set(mode, &mut previous)) }?;
    Ok(previous)
}

#[cfg(test)]
mod tests;
