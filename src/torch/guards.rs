//! Modes of the current thread as values: dropped, also by unwinding, they restore what was in force before.
//!
//! Guards nest in this order: stream ⊃ grad mode ⊃ autocast (spec 06 §5.1 S7). None of them is `Send`: libtorch keeps
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
/// Tensors created inside can never take part in autograd afterwards, so none may be kept (spec 06 §5.1 S10).
#[must_use = "the mode ends when the guard is dropped"]
#[derive(Debug)]
pub struct Inference {
    mode: *mut Opaque,
}

impl Inference {
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
mod tests {
    use tch::{Device, Kind, Tensor};

    use super::*;
    use crate::torch::catch;

    const CPU: (Kind, Device) = (Kind::Float, Device::Cpu);

    fn records_gradients() -> bool {
        let x = Tensor::ones([1], CPU).set_requires_grad(true);
        (&x * 2.0).requires_grad()
    }

    fn product_kind() -> Kind {
        let x = Tensor::ones([2, 2], CPU);
        x.matmul(&x).kind()
    }

    #[test]
    fn gradients_are_recorded_again_after_the_guard_and_after_a_panic() {
        {
            let _outer = NoGrad::new();
            {
                let _inner = NoGrad::new();
            }
            assert!(!records_gradients());
        }
        assert!(records_gradients());

        let result = catch(|| {
            let _guard = NoGrad::new();
            panic!("inside");
        });
        assert!(result.is_err());
        assert!(records_gradients());
    }

    #[test]
    fn inference_mode_ends_with_its_guard_and_with_a_panic() {
        let inside = {
            let _guard = Inference::new().expect("inference mode");
            assert!(!records_gradients());
            Tensor::ones([1], CPU).is_inference()
        };
        assert!(inside);
        assert!(!Tensor::ones([1], CPU).is_inference());

        let result = catch(|| {
            let _guard = Inference::new().expect("inference mode");
            panic!("inside");
        });
        assert!(result.is_err());
        assert!(records_gradients());
        assert!(!Tensor::ones([1], CPU).is_inference());
    }

    #[test]
    fn products_are_bf16_inside_autocast_and_f32_outside() {
        {
            let _guard = Autocast::new(Device::Cpu, Kind::BFloat16).expect("autocast");
            assert_eq!(product_kind(), Kind::BFloat16);
            {
                let _half = Autocast::new(Device::Cpu, Kind::Half).expect("autocast");
                assert_eq!(product_kind(), Kind::Half);
            }
            assert_eq!(product_kind(), Kind::BFloat16);
        }
        assert_eq!(product_kind(), Kind::Float);

        let result = catch(|| {
            let _guard = Autocast::new(Device::Cpu, Kind::BFloat16).expect("autocast");
            panic!("inside");
        });
        assert!(result.is_err());
        assert_eq!(product_kind(), Kind::Float);
    }

    #[test]
    fn a_no_grad_pass_before_a_grad_pass_in_one_region_loses_no_gradient() {
        let weight = Tensor::ones([2, 2], CPU).set_requires_grad(true);
        let input = Tensor::ones([2, 2], CPU);
        let _guard = Autocast::new(Device::Cpu, Kind::BFloat16).expect("autocast");

        {
            let _no_grad = NoGrad::new();
            let _ = input.matmul(&weight);
        }
        input.matmul(&weight).sum(Kind::Float).backward();

        assert!(weight.grad().defined());
    }

    #[test]
    fn autocast_to_a_full_precision_kind_is_refused() {
        let error = Autocast::new(Device::Cpu, Kind::Float).expect_err("no such autocast");
        assert!(error.to_string().contains("BFloat16 or Half"));
    }
}
