//! A convolution with norm and ReLU, and what pre-activation networks need beside it.

use tch::Tensor;

use super::unit::{ConvUnit, Norm, Run, UnitDesign, conv_weights};
use crate::graph::LayerGraph;
use crate::host::{Features, HostError, Layer, LayerDesign};
use crate::kernels::BlockEnd;
use crate::nn::{Conv2d, Mode, ParamSet};
use crate::scenario::HostNorm;

/// A convolution with "same" padding, a norm and ReLU: `[B, C, H, W]` to `[B, outputs, ⌈H/stride⌉, ⌈W/stride⌉]`.
///
/// Computed in one pass, with the pool behind it, on the engine's own kernels where they serve it; batch norm is folded
/// into the convolution for validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    unit: UnitDesign,
    is_bare: bool,
}

impl Conv {
    /// With square kernels `kernel` wide, an odd number, batch norm, stride 1 and no bias before the norm.
    pub const fn new(outputs: i64, kernel: i64) -> Self {
        Self {
            unit: UnitDesign {
                outputs,
                kernel,
                stride: 1,
                has_bias: false,
                norm: HostNorm::Batch,
            },
            is_bare: false,
        }
    }

    /// With this norm.
    #[must_use]
    pub const fn norm(mut self, norm: HostNorm) -> Self {
        self.unit.norm = norm;
        self
    }

    /// At every `stride`-th row and column, at least 1.
    #[must_use]
    pub const fn stride(mut self, stride: i64) -> Self {
        self.unit.stride = stride;
        self
    }

    /// With a bias between convolution and norm. It changes nothing that the norm's own shift could not, but networks
    /// have it.
    #[must_use]
    pub const fn biased(mut self) -> Self {
        self.unit.has_bias = true;
        self
    }

    /// The convolution alone: no norm, no ReLU, no bias.
    #[must_use]
    pub const fn bare(mut self) -> Self {
        self.is_bare = true;
        self
    }
}

impl LayerDesign for Conv {
    fn output(&self, input: Features) -> Features {
        self.unit.output(input)
    }

    fn parameters(&self, input: Features) -> u64 {
        if self.is_bare {
            return conv_weights(input.channels, self.unit.outputs, self.unit.kernel);
        }
        self.unit.parameters(input.channels)
    }

    fn macs(&self, input: Features) -> u64 {
        self.unit.macs(input)
    }

    fn batch_norm_side(&self, input: Features) -> Option<i64> {
        let is_normed = !self.is_bare && self.unit.norm == HostNorm::Batch;
        is_normed.then(|| self.output(input).side)
    }

    fn graph(&self, input: Features) -> LayerGraph {
        LayerGraph::Conv {
            inputs: input.channels,
            outputs: self.unit.outputs,
            kernel: self.unit.kernel,
            stride: self.unit.stride,
            bias: self.unit.has_bias && !self.is_bare,
            norm: (!self.is_bare).then_some(self.unit.norm),
        }
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let UnitDesign {
            outputs,
            kernel,
            stride,
            ..
        } = self.unit;
        if self.is_bare {
            let conv = Conv2d::new(params, format!("{name}.weight"), input.channels, outputs, kernel, 1)?;
            return Ok(Box::new(BareConv(conv.strided(stride))));
        }
        Ok(Box::new(ConvLayer(self.unit.build(
            params,
            &format!("{name}."),
            input.channels,
        )?)))
    }
}

struct ConvLayer(ConvUnit);

impl Layer for ConvLayer {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        Ok(self.0.forward(x, Run::Plain(mode), Some(BlockEnd::Relu))?)
    }

    fn forward_pooled(&self, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        Ok(self.0.forward(x, Run::Plain(mode), Some(BlockEnd::ReluAndPool))?)
    }

    fn evaluate(&self, x: &Tensor) -> Result<Tensor, HostError> {
        Ok(self.0.forward(x, Run::Folded, Some(BlockEnd::Relu))?)
    }

    fn evaluate_pooled(&self, x: &Tensor) -> Result<Tensor, HostError> {
        Ok(self.0.forward(x, Run::Folded, Some(BlockEnd::ReluAndPool))?)
    }

    fn refill(&mut self) -> Result<(), HostError> {
        Ok(self.0.refill(true)?)
    }
}

struct BareConv(Conv2d);

impl Layer for BareConv {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        Ok(self.0.forward(x, None)?)
    }
}

/// A norm and ReLU without a convolution in front, as pre-activation networks end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormRelu(pub HostNorm);

impl LayerDesign for NormRelu {
    fn output(&self, input: Features) -> Features {
        input
    }

    fn parameters(&self, input: Features) -> u64 {
        2 * input.channels as u64
    }

    fn macs(&self, _: Features) -> u64 {
        0
    }

    fn batch_norm_side(&self, input: Features) -> Option<i64> {
        (self.0 == HostNorm::Batch).then_some(input.side)
    }

    fn graph(&self, input: Features) -> LayerGraph {
        LayerGraph::NormRelu {
            channels: input.channels,
            norm: self.0,
        }
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        Ok(Box::new(NormReluLayer(Norm::new(
            params,
            name,
            input.channels,
            self.0,
        )?)))
    }
}

struct NormReluLayer(Norm);

impl Layer for NormReluLayer {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        Ok(self.0.forward(x, mode)?.f_relu_()?)
    }
}
