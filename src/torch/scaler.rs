//! Loss scaling for fp16 training on CUDA, one scaler per env, never read by the host (spec 06 §7.3).

use tch::{Device, Kind, Tensor};

use super::ffi::{self, pointer, pointers};
use super::{TorchError, zero_all};

/// Scale of a fresh scaler.
const INITIAL_SCALE: f64 = 65536.0;
/// Factor after [`GROWTH_INTERVAL`] finite steps in a row.
const GROWTH: f64 = 2.0;
/// Factor after a step with non-finite gradients.
const BACKOFF: f64 = 0.5;
/// Finite steps in a row after which the scale grows.
const GROWTH_INTERVAL: i64 = 2000;

/// Keeps small fp16 gradients from vanishing: the loss is multiplied by a scale that grows while gradients are finite.
#[derive(Debug)]
pub struct LossScaler {
    /// f32 scalar.
    scale: Tensor,
    /// i32 scalar: finite steps since the scale last changed.
    growth_tracker: Tensor,
}

impl LossScaler {
    pub fn new(device: Device) -> Result<Self, TorchError> {
        Ok(Self {
            scale: Tensor::f_full([0i64; 0], INITIAL_SCALE, (Kind::Float, device))?,
            growth_tracker: Tensor::f_zeros([0i64; 0], (Kind::Int, device))?,
        })
    }

    /// The factor of the loss, an f32 scalar on the device.
    pub fn scale(&self) -> &Tensor {
        &self.scale
    }

    /// Divides the gradients of one group by the scale in place; `found_inf` (f32 scalar) becomes 1 where one of them
    /// is not finite, else 0.
    pub fn unscale(&self, params: &[Tensor], found_inf: &Tensor) -> Result<(), TorchError> {
        zero_all(std::slice::from_ref(found_inf))?;
        let inverse = self.scale.f_reciprocal()?;
        let list = pointers(params);
        // SAFETY: all tensors outlive the call.
        unsafe {
            ffi::check(ffi::simic_unscale_grads(
                list.as_ptr(),
                list.len(),
                inverse.as_ptr(),
                pointer(found_inf),
            ))
        }
    }

    /// Adapts the scale after a step. `found_inf` is the host group's alone, so that a diverged seed cannot drive the
    /// scale down (spec 06 §7.2).
    pub fn update(&mut self, found_inf: &Tensor) -> Result<(), TorchError> {
        let _ = self.scale.f_internal_amp_update_scale_(
            &self.growth_tracker,
            found_inf,
            GROWTH,
            BACKOFF,
            GROWTH_INTERVAL,
        )?;
        Ok(())
    }

    /// As new, in place: at the start of an episode and at a rollback.
    pub fn reset(&mut self) -> Result<(), TorchError> {
        let _ = self.scale.f_fill_(INITIAL_SCALE)?;
        let _ = self.growth_tracker.f_zero_()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torch::{HostSyncCounter, read_f64};

    fn flag(value: f64) -> Tensor {
        Tensor::full([0i64; 0], value, (Kind::Float, Device::Cpu))
    }

    fn value(tensor: &Tensor) -> f64 {
        read_f64(tensor, &HostSyncCounter::default()).expect("read")[0]
    }

    /// Spec 06 Check 16.
    #[test]
    fn the_scale_halves_on_a_non_finite_step_and_doubles_after_2000_finite_ones() {
        let mut scaler = LossScaler::new(Device::Cpu).expect("scaler");
        let other = LossScaler::new(Device::Cpu).expect("scaler");

        scaler.update(&flag(1.0)).expect("update");
        assert_eq!(value(scaler.scale()), 32768.0);

        for _ in 0..1999 {
            scaler.update(&flag(0.0)).expect("update");
        }
        assert_eq!(value(scaler.scale()), 32768.0);
        scaler.update(&flag(0.0)).expect("update");
        assert_eq!(value(scaler.scale()), 65536.0);

        scaler.update(&flag(1.0)).expect("update");
        scaler.reset().expect("reset");
        assert_eq!(value(scaler.scale()), 65536.0);
        assert_eq!(value(other.scale()), 65536.0);
    }

    #[test]
    fn unscaling_divides_gradients_and_flags_only_the_group_that_is_not_finite() {
        let scaler = LossScaler::new(Device::Cpu).expect("scaler");
        let group = |grad: f32| {
            let param = Tensor::zeros([2], (Kind::Float, Device::Cpu)).set_requires_grad(true);
            (&param * Tensor::from_slice(&[65536.0, grad]))
                .sum(Kind::Float)
                .backward();
            vec![param]
        };
        let (host, seed) = (group(131072.0), group(f32::INFINITY));
        let (host_bad, seed_bad) = (flag(1.0), flag(0.0));

        scaler.unscale(&host, &host_bad).expect("unscale");
        scaler.unscale(&seed, &seed_bad).expect("unscale");

        assert!(host[0].grad().equal(&Tensor::from_slice(&[1.0f32, 2.0])));
        assert_eq!((value(&host_bad), value(&seed_bad)), (0.0, 1.0));
    }
}
