//! The convolutional host in evaluation mode, batch norm folded into the convolutions.
//!
//! With running statistics, batch norm is a fixed scale and shift per channel, so convolution and norm are one
//! convolution with a bias. The folded tensors are allocated once per env and refilled in place once per step.

use std::ops::Range;

use tch::{Kind, TchError, Tensor};

use super::{CnnHost, ConvBlock, OpLine};
use crate::host::{FoldedHost, HostError, OpCost};
use crate::torch::{Conv2d, NORM_EPS, NoGrad};

/// A block's convolution with its norm folded in, beside the handles that it is folded from.
struct FoldedBlock {
    source: ConvBlock,
    conv: Conv2d,
    bias: Tensor,
}

impl FoldedBlock {
    fn new(source: ConvBlock) -> Result<Self, TchError> {
        let weight = &source.conv.weight;
        let folded = weight.f_new_empty_strided(weight.size(), weight.stride(), (Kind::Float, weight.device()))?;
        let bias = source.shift.f_zeros_like()?.f_detach()?;
        Ok(Self {
            conv: source.conv.with_weight(folded),
            bias,
            source,
        })
    }

    /// w' = w·s and b' = β − μ·s with s = γ/√(σ² + ε).
    fn refill(&mut self) -> Result<(), TchError> {
        let source = &self.source;
        let scale = source
            .running_var
            .f_add_scalar(NORM_EPS)?
            .f_rsqrt_()?
            .f_mul_(&source.scale)?;
        let _ = source
            .conv
            .weight
            .f_mul_out(&self.conv.weight, &scale.f_view([-1, 1, 1, 1])?)?;
        let _ = source
            .shift
            .f_sub_out(&self.bias, &source.running_mean.f_mul(&scale)?)?;
        Ok(())
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        self.conv.forward(x, Some(&self.bias))?.f_relu_()
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
        self.line.run(ops, x, |block, x| self.blocks[block].forward(x))
    }

    fn refill(&mut self) -> Result<(), HostError> {
        let _no_grad = NoGrad::new();
        for block in &mut self.blocks {
            block.refill()?;
        }
        Ok(())
    }
}
