//! Convolutions as validation runs them: in evaluation batch norm is an affine map, so convolution and norm are one
//! convolution with a bias. The folded tensors are allocated once per env and refilled in place once per step.

use tch::{Kind, TchError, Tensor};

use super::unit::{ConvUnit, Norm, finish};
use crate::kernels::{self, BatchNorm, BlockEnd};
use crate::nn::{Conv2d, Mode, NORM_EPS};
use crate::torch::TorchError;

/// A unit as validation runs it, beside the handles that it is folded from.
pub(super) struct FoldedUnit {
    source: ConvUnit,
    folded: Folded,
}

enum Folded {
    /// For the engine's own kernels, whose blocks always have an end.
    Own(kernels::FoldedBlock),
    Libtorch {
        conv: Conv2d,
        bias: Tensor,
    },
    /// Group norm depends on the sample.
    Nothing,
}

impl FoldedUnit {
    /// Allocates the folded tensors; [`refill`](Self::refill) fills them. `has_end`: it is run with one.
    pub(super) fn new(source: ConvUnit, has_end: bool) -> Result<Self, TchError> {
        let weight = &source.conv.weight;
        let folded = match &source.norm {
            Norm::Group(_) => Folded::Nothing,
            // Validation runs in the type of the weights.
            Norm::Batch { .. } if has_end && source.bias.is_none() && source.conv.uses_own_kernels(weight) => {
                Folded::Own(kernels::FoldedBlock::new(weight)?)
            }
            Norm::Batch { norm, .. } => {
                let room =
                    weight.f_new_empty_strided(weight.size(), weight.stride(), (Kind::Float, weight.device()))?;
                Folded::Libtorch {
                    conv: source.conv.with_weight(room),
                    bias: norm.shift.f_zeros_like()?.f_detach()?,
                }
            }
        };
        Ok(Self { source, folded })
    }

    /// w' = w·s and b' = β + (b − μ)·s with s = γ/√(σ² + ε); b is 0 without a bias.
    pub(super) fn refill(&self) -> Result<(), TchError> {
        let Norm::Batch { norm, .. } = &self.source.norm else {
            return Ok(());
        };
        let weight = &self.source.conv.weight;
        match &self.folded {
            Folded::Nothing => Ok(()),
            Folded::Own(block) => block.refill(weight, norm, NORM_EPS),
            Folded::Libtorch { conv, bias } => {
                let scale = scale_of(norm)?;
                let _ = weight.f_mul_out(&conv.weight, &scale.f_view([-1, 1, 1, 1])?)?;
                let mean = match &self.source.bias {
                    Some(own) => norm.running_mean.f_sub(own)?,
                    None => norm.running_mean.shallow_clone(),
                };
                let _ = norm.shift.f_sub_out(bias, &mean.f_mul(&scale)?)?;
                Ok(())
            }
        }
    }

    /// Without an end the norm is the last.
    pub(super) fn forward(&self, x: &Tensor, end: Option<BlockEnd>) -> Result<Tensor, TorchError> {
        Ok(match (&self.folded, end) {
            (Folded::Own(block), Some(end)) if kernels::is_served(x) => block.forward(x, end)?,
            (Folded::Libtorch { conv, bias }, Some(end)) => finish(conv.forward(x, Some(bias))?, end)?,
            (Folded::Libtorch { conv, bias }, None) => conv.forward(x, Some(bias))?,
            (Folded::Nothing | Folded::Own(_), _) => self.source.forward(x, Mode::Eval, end)?,
        })
    }
}

fn scale_of(norm: &BatchNorm) -> Result<Tensor, TchError> {
    norm.running_var.f_add_scalar(NORM_EPS)?.f_rsqrt_()?.f_mul_(&norm.scale)
}
