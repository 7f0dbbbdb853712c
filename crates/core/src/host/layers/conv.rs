//! A convolution with norm and ReLU, the parts that pre-activation networks also need, and the piece that blocks are made of: a
//! convolution with a norm after it.

use tch::{Device, TchError, Tensor};

use super::folded::Folded;
use crate::graph::LayerGraph;
use crate::host::{Features, HostError, Layer, LayerDesign};
use crate::kernels::{BatchNorm, BlockEnd, FoldedBlock, conv_block, is_served};
use crate::nn::{BATCH_NORM_MOMENTUM, Conv2d, GroupNormLayer, Init, Mode, NORM_EPS, ParamSet, max_pool_2x2};
use crate::scenario::HostNorm;
use crate::torch::{NoGrad, TorchError, channels_last};

/// A convolution with "same" padding, a norm and ReLU: `[B, C, H, W]` to `[B, outputs, ⌈H/stride⌉, ⌈W/stride⌉]`.
///
/// Computed in one pass, with the pool after it, on the engine's own kernels if they support it. Batch norm is folded
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

/// A convolution with a norm after it, as designed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitDesign {
    pub outputs: i64,
    /// Odd.
    pub kernel: i64,
    pub stride: i64,
    /// The convolution has a bias.
    pub has_bias: bool,
    pub norm: HostNorm,
}

impl UnitDesign {
    pub(super) const fn output(&self, input: Features) -> Features {
        Features {
            channels: self.outputs,
            side: strided(input.side, self.stride),
        }
    }

    pub(super) fn parameters(&self, inputs: i64) -> u64 {
        let per_channel = 2 + i64::from(self.has_bias);
        conv_weights(inputs, self.outputs, self.kernel) + (self.outputs * per_channel) as u64
    }

    pub(super) fn macs(&self, input: Features) -> u64 {
        conv_weights(input.channels, self.outputs, self.kernel).saturating_mul(self.output(input).positions() as u64)
    }

    /// Adds `{name}conv.weight`, the bias and `{name}norm.*`.
    pub(super) fn build(&self, params: &mut ParamSet, name: &str, inputs: i64) -> Result<ConvUnit, TchError> {
        let Self { outputs, kernel, .. } = *self;
        let conv = Conv2d::new(params, format!("{name}conv.weight"), inputs, outputs, kernel, 1)?;
        let fan_in = Init::FanIn(inputs * kernel * kernel);
        let mut bias = || params.add(format!("{name}conv.bias"), &[outputs], fan_in);
        Ok(ConvUnit {
            conv: conv.strided(self.stride),
            bias: self.has_bias.then(&mut bias).transpose()?,
            norm: Norm::new(params, &format!("{name}norm"), outputs, self.norm)?,
            folded: None,
        })
    }
}

/// The length of a side after a convolution with "same" padding.
const fn strided(side: i64, stride: i64) -> i64 {
    (side + stride - 1) / stride
}

/// Values of a dense convolution's weight.
pub(super) const fn conv_weights(inputs: i64, outputs: i64, kernel: i64) -> u64 {
    (inputs * outputs * kernel * kernel) as u64
}

/// A norm over the channels of a host.
#[derive(Debug)]
pub(super) enum Norm {
    Batch {
        norm: BatchNorm,
        /// libtorch's channels-last batch norm on CPU vectorises over channels; with 2 to 7 it is ten times slower than a
        /// detour over NCHW. (One channel lies the same way in both.)
        few_channels: bool,
    },
    Group(GroupNormLayer),
}

impl Norm {
    /// Adds `{name}.weight`, `{name}.bias` and, for batch norm, the running statistics.
    pub(super) fn new(params: &mut ParamSet, name: &str, channels: i64, kind: HostNorm) -> Result<Self, TchError> {
        let of = |part: &str| format!("{name}.{part}");
        Ok(match kind {
            HostNorm::Batch => Self::Batch {
                norm: BatchNorm {
                    scale: params.add(of("weight"), &[channels], Init::Constant(1.0))?,
                    shift: params.add(of("bias"), &[channels], Init::Constant(0.0))?,
                    running_mean: params.add_buffer(of("running_mean"), &[channels], 0.0)?,
                    running_var: params.add_buffer(of("running_var"), &[channels], 1.0)?,
                },
                few_channels: params.device() == Device::Cpu && (2..8).contains(&channels),
            },
            HostNorm::Group => Self::Group(GroupNormLayer::new(params, name, channels, 1.0)?),
        })
    }

    /// The norm alone, into a new tensor.
    pub(super) fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, TorchError> {
        match self {
            Self::Batch {
                norm,
                few_channels: true,
            } => channels_last(&by_batch(norm, &x.f_contiguous()?, mode)?),
            Self::Batch { norm, .. } => Ok(by_batch(norm, x, mode)?),
            // CUDA's group norm answers in NCHW.
            Self::Group(norm) => channels_last(&norm.forward(x)?),
        }
    }
}

/// The end of a block by libtorch's operators. In place: the backward pass of a norm needs its input, not its output.
fn finish(normalised: Tensor, end: BlockEnd) -> Result<Tensor, TchError> {
    let mut features = normalised;
    match end {
        BlockEnd::Relu => features.f_relu_(),
        BlockEnd::ReluAndPool => max_pool_2x2(&features.f_relu_()?),
        BlockEnd::AddAndRelu(residual) => features.f_add_(residual)?.f_relu_(),
    }
}

fn by_batch(norm: &BatchNorm, x: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
    x.f_batch_norm(
        Some(&norm.scale),
        Some(&norm.shift),
        Some(&norm.running_mean),
        Some(&norm.running_var),
        mode == Mode::Train,
        BATCH_NORM_MOMENTUM,
        NORM_EPS,
        true,
    )
}

/// The way in which a layer is run.
#[derive(Clone, Copy)]
pub(super) enum Run {
    Plain(Mode),
    /// In [`Mode::Eval`], by what was folded last.
    Folded,
}

impl Run {
    pub(super) const fn mode(self) -> Mode {
        match self {
            Self::Plain(mode) => mode,
            Self::Folded => Mode::Eval,
        }
    }
}

/// A convolution with a norm after it, as handles of its tensors.
#[derive(Debug)]
pub(super) struct ConvUnit {
    conv: Conv2d,
    bias: Option<Tensor>,
    norm: Norm,
    folded: Option<Folded>,
}

impl ConvUnit {
    /// `[B, inputs, H, W]` to `[B, outputs, ⌈H/stride⌉, ⌈W/stride⌉]`, before the pool. Without an end the norm is the last.
    pub(super) fn forward(&self, x: &Tensor, run: Run, end: Option<BlockEnd>) -> Result<Tensor, TorchError> {
        let mode = run.mode();
        let features = match (run, &self.folded, end) {
            (Run::Folded, Some(Folded::Own(block)), Some(end)) if is_served(x) => return Ok(block.forward(x, end)?),
            (Run::Folded, Some(Folded::Libtorch { conv, bias }), _) => conv.forward(x, Some(bias))?,
            _ => {
                if let Some(end) = end
                    && let Some(features) = self.in_one_node(x, mode, end)?
                {
                    return Ok(features);
                }
                let features = self.conv.forward(x, self.bias.as_ref())?;
                self.norm.forward(&features, mode)?
            }
        };
        Ok(match end {
            Some(end) => finish(features, end)?,
            None => features,
        })
    }

    /// Folds the current weights and statistics; `has_end`: the unit is run with one. Group norm depends on the sample.
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
                Folded::Own(FoldedBlock::new(weight)?)
            }
            None => Folded::new(&self.conv, norm)?,
        };
        self.folded.insert(folded).refill(weight, self.bias.as_ref(), norm)
    }

    /// By the engine's own kernels, where they compute all of it.
    fn in_one_node(&self, x: &Tensor, mode: Mode, end: BlockEnd) -> Result<Option<Tensor>, TchError> {
        let Norm::Batch { norm, .. } = &self.norm else {
            return Ok(None);
        };
        if mode != Mode::Train || self.bias.is_some() || !self.conv.uses_own_block(x) {
            return Ok(None);
        }
        let Conv2d { weight, .. } = &self.conv;
        conv_block(x, weight, self.conv.stride(), norm, BATCH_NORM_MOMENTUM, NORM_EPS, end).map(Some)
    }
}
