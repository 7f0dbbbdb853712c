//! The convolutional host in evaluation mode, batch norm folded into the convolutions.
//!
//! With running statistics, batch norm is a fixed scale and shift per channel, so convolution and norm are one
//! convolution with a bias. The folded tensors are allocated once per env and refilled in place once per step.

use std::ops::Range;

use tch::{Kind, TchError, Tensor};

use super::{CnnHost, ConvBlock, OpLine, pool_by_libtorch};
use crate::host::{FoldedHost, HostError, OpCost};
use crate::torch::{self, Conv2d, NORM_EPS, NoGrad};

/// A block's convolution with its norm folded in, beside the handles that it is folded from.
struct FoldedBlock {
    source: ConvBlock,
    folded: Folded,
}

enum Folded {
    /// For the engine's own kernels.
    Own(torch::FoldedBlock),
    Libtorch {
        conv: Conv2d,
        bias: Tensor,
    },
}

impl FoldedBlock {
    fn new(source: ConvBlock) -> Result<Self, TchError> {
        let weight = &source.conv.weight;
        // Validation runs in the type of the weights.
        let folded = if source.conv.uses_own_kernels(weight) {
            Folded::Own(torch::FoldedBlock::new(weight)?)
        } else {
            let room = weight.f_new_empty_strided(weight.size(), weight.stride(), (Kind::Float, weight.device()))?;
            Folded::Libtorch {
                conv: source.conv.with_weight(room),
                bias: source.norm.shift.f_zeros_like()?.f_detach()?,
            }
        };
        Ok(Self { source, folded })
    }

    /// w' = w·s and b' = β − μ·s with s = γ/√(σ² + ε).
    fn refill(&self) -> Result<(), TchError> {
        let (weight, norm) = (&self.source.conv.weight, &self.source.norm);
        match &self.folded {
            Folded::Own(block) => block.refill(weight, norm, NORM_EPS),
            Folded::Libtorch { conv, bias } => {
                let scale = norm
                    .running_var
                    .f_add_scalar(NORM_EPS)?
                    .f_rsqrt_()?
                    .f_mul_(&norm.scale)?;
                let _ = weight.f_mul_out(&conv.weight, &scale.f_view([-1, 1, 1, 1])?)?;
                let _ = norm.shift.f_sub_out(bias, &norm.running_mean.f_mul(&scale)?)?;
                Ok(())
            }
        }
    }

    fn forward(&self, x: &Tensor, pooled: bool) -> Result<Tensor, TchError> {
        match &self.folded {
            Folded::Own(block) => block.forward(x, pooled),
            Folded::Libtorch { conv, bias } => {
                let features = conv.forward(x, Some(bias))?.f_relu_()?;
                if pooled {
                    return pool_by_libtorch(&features);
                }
                Ok(features)
            }
        }
    }
}

/// A convolutional host whose norms are folded.
pub(super) struct FoldedCnn {
    line: OpLine,
    blocks: Vec<FoldedBlock>,
}

impl FoldedCnn {
    /// Allocates the folded tensors and fills them.
    pub(super) fn new(host: &CnnHost) -> Result<Self, HostError> {
        let mut folded = Self {
            line: host.line.share(),
            blocks: host
                .blocks
                .iter()
                .map(|block| FoldedBlock::new(block.share()))
                .collect::<Result<_, _>>()?,
        };
        folded.refill()?;
        Ok(folded)
    }
}

impl FoldedHost for FoldedCnn {
    fn num_ops(&self) -> usize {
        self.line.ops.len()
    }

    fn op_costs(&self) -> &[OpCost] {
        &self.line.costs
    }

    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError> {
        self.line
            .run(ops, x, |block, x, pooled| self.blocks[block].forward(x, pooled))
    }

    fn refill(&mut self) -> Result<(), HostError> {
        let _no_grad = NoGrad::new();
        for block in &self.blocks {
            block.refill()?;
        }
        Ok(())
    }
}
