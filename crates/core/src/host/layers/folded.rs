//! Convolutions as validation runs them: in evaluation batch norm is an affine map, so convolution and norm are one
//! convolution with a bias. The folded tensors are allocated once per env and refilled in place once per step.

use tch::{Kind, TchError, Tensor};

use crate::kernels::{self, BatchNorm};
use crate::nn::{Conv2d, NORM_EPS};

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

impl Folded {
    /// Allocates room for a convolution with a norm after it.
    pub(super) fn new(conv: &Conv2d, norm: &BatchNorm) -> Result<Self, TchError> {
        let weight = &conv.weight;
        let room = weight.f_new_empty_strided(weight.size(), weight.stride(), (Kind::Float, weight.device()))?;
        Ok(Self::Libtorch {
            conv: conv.with_weight(room),
            bias: norm.shift.f_zeros_like()?.f_detach()?,
        })
    }

    /// w' = w·s and b' = β + (b − μ)·s with s = γ/√(σ² + ε); b is 0 without a bias.
    pub(super) fn refill(&self, weight: &Tensor, bias: Option<&Tensor>, norm: &BatchNorm) -> Result<(), TchError> {
        match self {
            Self::Own(block) => block.refill(weight, norm, NORM_EPS),
            Self::Libtorch { conv, bias: folded } => {
                let scale = scale_of(norm)?;
                let _ = weight.f_mul_out(&conv.weight, &scale.f_view([-1, 1, 1, 1])?)?;
                let mean = match bias {
                    Some(own) => norm.running_mean.f_sub(own)?,
                    None => norm.running_mean.shallow_clone(),
                };
                let _ = norm.shift.f_sub_out(folded, &mean.f_mul(&scale)?)?;
                Ok(())
            }
        }
    }
}

fn scale_of(norm: &BatchNorm) -> Result<Tensor, TchError> {
    norm.running_var.f_add_scalar(NORM_EPS)?.f_rsqrt_()?.f_mul_(&norm.scale)
}
