//! Convolutions as validation runs them: in evaluation batch norm is an affine map, so convolution and norm are one
//! convolution with a bias. The folded tensors are allocated once per env and refilled in place once per step.

use tch::{Kind, TchError, Tensor};

use super::unit::{ConvUnit, Norm};
use crate::kernels::{self, BatchNorm};
use crate::nn::{Conv2d, NORM_EPS};
use crate::torch::NoGrad;

/// Convolution and norm in one, as validation runs them.
#[derive(Debug)]
pub(super) enum Folded {
    /// For the engine's own kernels, whose blocks always have an end.
    Own(kernels::FoldedBlock),
    Libtorch {
        conv: Conv2d,
        bias: Tensor,
    },
}

impl ConvUnit {
    /// w' = w·s and b' = β + (b − μ)·s with s = γ/√(σ² + ε); b is 0 without a bias. `has_end`: it is run with one. Group norm
    /// depends on the sample.
    pub(super) fn refill(&mut self, has_end: bool) -> Result<(), TchError> {
        let Norm::Batch { norm, .. } = &self.norm else {
            return Ok(());
        };
        let _no_grad = NoGrad::new();
        let weight = &self.conv.weight;
        let folded = match self.folded.take() {
            Some(folded) => folded,
            // Validation runs in the type of the weights.
            None if has_end && self.bias.is_none() && self.conv.uses_own_kernels(weight) => {
                Folded::Own(kernels::FoldedBlock::new(weight)?)
            }
            None => {
                let room =
                    weight.f_new_empty_strided(weight.size(), weight.stride(), (Kind::Float, weight.device()))?;
                Folded::Libtorch {
                    conv: self.conv.with_weight(room),
                    bias: norm.shift.f_zeros_like()?.f_detach()?,
                }
            }
        };
        match self.folded.insert(folded) {
            Folded::Own(block) => block.refill(weight, norm, NORM_EPS),
            Folded::Libtorch { conv, bias } => {
                let scale = scale_of(norm)?;
                let _ = weight.f_mul_out(&conv.weight, &scale.f_view([-1, 1, 1, 1])?)?;
                let mean = match &self.bias {
                    Some(own) => norm.running_mean.f_sub(own)?,
                    None => norm.running_mean.shallow_clone(),
                };
                let _ = norm.shift.f_sub_out(bias, &mean.f_mul(&scale)?)?;
                Ok(())
            }
        }
    }
}

fn scale_of(norm: &BatchNorm) -> Result<Tensor, TchError> {
    norm.running_var.f_add_scalar(NORM_EPS)?.f_rsqrt_()?.f_mul_(&norm.scale)
}
