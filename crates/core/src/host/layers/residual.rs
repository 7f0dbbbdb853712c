//! Residual blocks of two 3×3 convolutions. Each is one op of a host's line, since features between the two can't bypass it.
//!
//! Post-activation: He et al. 2016, "Deep residual learning for image recognition", arXiv:1512.03385. Pre-activation: He et
//! al. 2016, "Identity mappings in deep residual networks", arXiv:1603.05027.

use tch::{TchError, Tensor};

use super::conv::{ConvUnit, Norm, Run, UnitDesign, conv_weights};
use crate::graph::LayerGraph;
use crate::host::{Features, HostError, Layer, LayerDesign};
use crate::kernels::BlockEnd;
use crate::nn::{Conv2d, Mode, ParamSet};
use crate::scenario::{HostNorm, Shortcut};
use crate::torch::{TorchError, channels_last};

/// Side of both convolutions' kernels.
const KERNEL: i64 = 3;

/// Two 3×3 convolutions and a way around them: `[B, C, H, W]` to `[B, outputs, ⌈H/stride⌉, ⌈W/stride⌉]`.
///
/// Post-activation: relu(norm(conv(relu(norm(conv(x))))) + s(x)). Pre-activation, with o = relu(norm(x)):
/// conv(relu(norm(conv(o)))) + s, where s is x if the shape stays and the shortcut of o or x otherwise. The shortcut of a
/// block that changes the shape is every `stride`-th pixel with zeros for new channels ([`Shortcut::Pad`], of x) or a 1×1
/// convolution ([`Shortcut::Projection`], with a norm after it unless pre-activated, then of o).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidualBlock {
    /// Channels of the output, at least those of the input for [`Shortcut::Pad`].
    pub outputs: i64,
    /// Stride of the first convolution, at least 1.
    pub stride: i64,
    /// Shortcut if the shape changes.
    pub shortcut: Shortcut,
    /// Norm and ReLU before the convolutions and not after them.
    pub pre_activation: bool,
    /// Kind of all norms.
    pub norm: HostNorm,
}

impl ResidualBlock {
    /// Post-activation with batch norm, padded where it has to be.
    pub const fn new(outputs: i64, stride: i64) -> Self {
        Self {
            outputs,
            stride,
            shortcut: Shortcut::Pad,
            pre_activation: false,
            norm: HostNorm::Batch,
        }
    }

    const fn keeps_shape(&self, inputs: i64) -> bool {
        self.stride == 1 && inputs == self.outputs
    }

    const fn unit(&self, kernel: i64, stride: i64) -> UnitDesign {
        UnitDesign {
            outputs: self.outputs,
            kernel,
            stride,
            has_bias: false,
            norm: self.norm,
        }
    }

    fn projects(&self, inputs: i64) -> bool {
        !self.keeps_shape(inputs) && self.shortcut == Shortcut::Projection
    }

    /// The way around the convolutions. `name` of its tensors ends in a dot.
    fn way_around(&self, inputs: i64, name: &str, params: &mut ParamSet) -> Result<WayAround, TchError> {
        if self.keeps_shape(inputs) {
            return Ok(WayAround::Straight);
        }
        if self.shortcut == Shortcut::Pad {
            return Ok(WayAround::Pad {
                stride: self.stride,
                new_channels: self.outputs - inputs,
            });
        }
        if self.pre_activation {
            let conv = Conv2d::new(params, format!("{name}conv.weight"), inputs, self.outputs, 1, 1)?;
            return Ok(WayAround::Bare(conv.strided(self.stride)));
        }
        let unit = self.unit(1, self.stride).build(params, name, inputs)?;
        Ok(WayAround::Normed(unit))
    }
}

impl LayerDesign for ResidualBlock {
    fn output(&self, input: Features) -> Features {
        self.unit(KERNEL, self.stride).output(input)
    }

    fn parameters(&self, input: Features) -> u64 {
        let (inputs, outputs) = (input.channels, self.outputs);
        let norm = |channels: i64| 2 * channels as u64;
        let second = conv_weights(outputs, outputs, KERNEL);
        let around = if self.projects(inputs) {
            conv_weights(inputs, outputs, 1)
        } else {
            0
        };
        let norms = match (self.pre_activation, around) {
            (true, _) => norm(inputs) + norm(outputs),
            (false, 0) => 2 * norm(outputs),
            (false, _) => 3 * norm(outputs),
        };
        conv_weights(inputs, outputs, KERNEL) + second + around + norms
    }

    fn macs(&self, input: Features) -> u64 {
        let output = self.output(input);
        let around = if self.projects(input.channels) {
            self.unit(1, self.stride).macs(input)
        } else {
            0
        };
        let first = self.unit(KERNEL, self.stride).macs(input);
        let second = self.unit(KERNEL, 1).macs(output);
        first.saturating_add(second).saturating_add(around)
    }

    fn batch_norm_side(&self, input: Features) -> Option<i64> {
        (self.norm == HostNorm::Batch).then(|| self.output(input).side)
    }

    fn graph(&self, input: Features) -> LayerGraph {
        LayerGraph::Residual {
            inputs: input.channels,
            outputs: self.outputs,
            stride: self.stride,
            shortcut: self.shortcut,
            pre_activation: self.pre_activation,
            norm: self.norm,
        }
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let inputs = input.channels;
        let first = self.unit(KERNEL, self.stride);
        if self.pre_activation {
            let entry = Norm::new(params, &format!("{name}.entry"), inputs, self.norm)?;
            let first = first.build(params, &format!("{name}.first."), inputs)?;
            let weight = format!("{name}.second.conv.weight");
            let second = Conv2d::new(params, weight, self.outputs, self.outputs, KERNEL, 1)?;
            let around = self.way_around(inputs, &format!("{name}.shortcut."), params)?;
            return Ok(Box::new(PreActivation {
                entry,
                first,
                second,
                around,
            }));
        }
        Ok(Box::new(PostActivation {
            first: first.build(params, &format!("{name}.first."), inputs)?,
            second: self
                .unit(KERNEL, 1)
                .build(params, &format!("{name}.second."), self.outputs)?,
            around: self.way_around(inputs, &format!("{name}.shortcut."), params)?,
        }))
    }
}

/// Shortcut around the convolutions of a block.
enum WayAround {
    Straight,
    Pad { stride: i64, new_channels: i64 },
    Normed(ConvUnit),
    Bare(Conv2d),
}

impl WayAround {
    /// `x` enters the block, `activated` its first convolution. They differ only with pre-activation.
    fn forward(&self, x: &Tensor, activated: &Tensor, run: Run) -> Result<Tensor, TorchError> {
        match self {
            Self::Straight => Ok(x.shallow_clone()),
            Self::Pad { stride, new_channels } => pad(x, *stride, *new_channels),
            Self::Normed(unit) => unit.forward(x, run, None),
            Self::Bare(conv) => Ok(conv.forward(activated, None)?),
        }
    }
}

/// Every `stride`-th pixel, with zeros for the new channels after the old ones.
fn pad(x: &Tensor, stride: i64, new_channels: i64) -> Result<Tensor, TorchError> {
    let kept = x.f_slice(2, None, None, stride)?.f_slice(3, None, None, stride)?;
    let padded = kept.f_constant_pad_nd([0, 0, 0, 0, 0, new_channels].as_slice())?;
    channels_last(&padded)
}

struct PostActivation {
    first: ConvUnit,
    second: ConvUnit,
    around: WayAround,
}

impl PostActivation {
    fn run(&self, x: &Tensor, run: Run) -> Result<Tensor, HostError> {
        let inner = self.first.forward(x, run, Some(BlockEnd::Relu))?;
        let around = self.around.forward(x, x, run)?;
        let end = BlockEnd::AddAndRelu(&around);
        Ok(self.second.forward(&inner, run, Some(end))?)
    }
}

impl Layer for PostActivation {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        self.run(x, Run::Plain(mode))
    }

    fn evaluate(&self, x: &Tensor) -> Result<Tensor, HostError> {
        self.run(x, Run::Folded)
    }

    fn refill(&mut self) -> Result<(), HostError> {
        self.first.refill(true)?;
        self.second.refill(true)?;
        if let WayAround::Normed(unit) = &mut self.around {
            unit.refill(false)?;
        }
        Ok(())
    }
}

/// The entry norm has no preceding convolution that it could be folded into.
struct PreActivation {
    entry: Norm,
    first: ConvUnit,
    second: Conv2d,
    around: WayAround,
}

impl PreActivation {
    fn run(&self, x: &Tensor, run: Run) -> Result<Tensor, HostError> {
        let activated = self.entry.forward(x, run.mode())?.f_relu_()?;
        let first = self.first.forward(&activated, run, Some(BlockEnd::Relu))?;
        let outer = self.second.forward(&first, None)?;
        Ok(outer.f_add(&self.around.forward(x, &activated, run)?)?)
    }
}

impl Layer for PreActivation {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        self.run(x, Run::Plain(mode))
    }

    fn evaluate(&self, x: &Tensor) -> Result<Tensor, HostError> {
        self.run(x, Run::Folded)
    }

    fn refill(&mut self) -> Result<(), HostError> {
        Ok(self.first.refill(true)?)
    }
}
