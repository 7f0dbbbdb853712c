//! Loss scaling for fp16 training: one scaler per env and one per learner, never read by the host inside a step.

use tch::{Device, Kind, Tensor};

use crate::kernels::unscale_grads;
use crate::torch::{TorchError, zero_all};

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
    /// A fresh scaler on `device`.
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

    /// The scale and its count of finite steps by name: the live tensors. Copying into them restores a state.
    pub fn state_tensors(&self) -> [(&'static str, &Tensor); 2] {
        [("scale", &self.scale), ("finite_steps", &self.growth_tracker)]
    }

    /// `loss` times the scale, the value to propagate backward.
    pub fn scaled(&self, loss: &Tensor) -> Result<Tensor, TorchError> {
        Ok(loss.f_mul(&self.scale)?)
    }

    /// Divides the gradients of one group by the scale in place; `found_inf` (f32 scalar) becomes 1 where one of them
    /// is not finite, else 0.
    pub fn unscale(&self, params: &[Tensor], found_inf: &Tensor) -> Result<(), TorchError> {
        zero_all(std::slice::from_ref(found_inf))?;
        let inverse = self.scale.f_reciprocal()?;
        unscale_grads(params, &inverse, found_inf)
    }

    /// Adapts the scale after a step. `found_inf` is only the host group's, so that a diverged seed can't drive the
    /// scale down.
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

    /// Makes the scaler as new, in place: at the start of an episode and at a rollback.
    pub fn reset(&mut self) -> Result<(), TorchError> {
        let _ = self.scale.f_fill_(INITIAL_SCALE)?;
        let _ = self.growth_tracker.f_zero_()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
