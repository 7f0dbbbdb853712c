//! Hosts as validation runs them: in evaluation mode, batch norm folded into the convolutions (spec 01 §3.2).
//!
//! With running statistics, batch norm is a fixed scale and shift per channel, so convolution and norm are one
//! convolution with a bias. The folded tensors are allocated once per env and refilled in place once per step.

use std::ops::Range;

use tch::{Kind, TchError, Tensor};

use crate::host::{
    CnnHost, CnnOp, Conv2d, ConvBlock, Head, Host, HostError, Mode, NORM_EPS, OpCost, check_range, max_pool,
};
use crate::torch::NoGrad;

/// A line of ops in evaluation mode; the laws of [`Host`] hold.
pub trait EvalHost {
    fn num_ops(&self) -> usize;

    /// One entry an op.
    fn op_costs(&self) -> &[OpCost];

    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError>;
}

/// Any host evaluates itself, at the price of its unfolded norms.
impl<H: Host + ?Sized> EvalHost for H {
    fn num_ops(&self) -> usize {
        Host::num_ops(self)
    }

    fn op_costs(&self) -> &[OpCost] {
        Host::op_costs(self)
    }

    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError> {
        self.run(ops, x, Mode::Eval)
    }
}

/// A block's convolution with its norm folded in, beside the handles that it is folded from.
#[derive(Debug)]
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

/// A convolutional host whose norms are folded; it reads the host's own tensors, which are only ever written in place.
#[derive(Debug)]
pub struct FoldedHost {
    ops: Vec<CnnOp>,
    costs: Vec<OpCost>,
    blocks: Vec<FoldedBlock>,
    head: Head,
}

impl FoldedHost {
    /// Allocates the folded tensors and fills them.
    ///
    /// # Errors
    /// [`HostError::Torch`] if the device refuses.
    pub fn new(host: &CnnHost) -> Result<Self, HostError> {
        let mut folded = Self {
            ops: host.ops().to_vec(),
            costs: Host::op_costs(host).to_vec(),
            blocks: host
                .blocks()
                .iter()
                .map(|block| FoldedBlock::new(block.share()))
                .collect::<Result<_, _>>()?,
            head: host.head().share(),
        };
        folded.refill()?;
        Ok(folded)
    }

    /// Takes over the host's present weights and statistics: once per step, after its last training batch.
    ///
    /// # Errors
    /// [`HostError::Torch`] if the device refuses.
    pub fn refill(&mut self) -> Result<(), HostError> {
        let _no_grad = NoGrad::new();
        for block in &mut self.blocks {
            block.refill()?;
        }
        Ok(())
    }
}

impl EvalHost for FoldedHost {
    fn num_ops(&self) -> usize {
        self.ops.len()
    }

    fn op_costs(&self) -> &[OpCost] {
        &self.costs
    }

    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError> {
        check_range(&ops, self.ops.len())?;
        let mut features = x.shallow_clone();
        for op in &self.ops[ops] {
            features = match *op {
                CnnOp::Block(block) => self.blocks[block].forward(&features)?,
                CnnOp::Pool => max_pool(&features)?,
                CnnOp::Head => self.head.forward(&features)?,
            };
        }
        Ok(features)
    }
}
