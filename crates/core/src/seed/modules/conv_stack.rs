//! Seeds that are plain stacks of convolutions, described by a list of layers.

use tch::{TchError, Tensor};

use crate::graph::StackLayer;
use crate::kernels::{GroupNormOf, Onto, Silu, conv_layer};
use crate::nn::{Conv2d, GroupNormLayer, Init, Mode, ParamSet};
use crate::seed::{BlendError, SeedModule, fit_residual};

/// A layer as a blueprint describes it. Convolutions keep height and width and have no bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layer {
    pub(super) graph: StackLayer,
    pub(super) start: Start,
}

/// Weights of a layer at initialisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Start {
    /// Uniform by fan-in; 1 for a norm.
    Usual,
    /// N(0, 2/fan-in) (He et al. 2015, arXiv:1502.01852).
    He,
    /// 0.
    Zero,
}

impl Layer {
    /// A layer whose weights are drawn as usual.
    pub(super) const fn of(graph: StackLayer) -> Self {
        let start = Start::Usual;
        Self { graph, start }
    }

    /// This layer with other weights at initialisation.
    pub(super) const fn starting(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// A convolution in `groups` of the channels, each with its own filters.
    pub(super) const fn conv(inputs: i64, outputs: i64, kernel: i64, groups: i64) -> Self {
        Self::of(StackLayer::Conv {
            inputs,
            outputs,
            kernel,
            groups,
        })
    }
}

enum BuiltLayer {
    Conv(Conv2d),
    Silu,
    Norm(GroupNormLayer),
}

impl BuiltLayer {
    fn new(layer: Layer, position: usize, params: &mut ParamSet) -> Result<Self, TchError> {
        let name = format!("{position}.weight");
        Ok(match layer.graph {
            StackLayer::Conv {
                inputs,
                outputs,
                kernel,
                groups,
            } => {
                let fan_in = inputs / groups * kernel * kernel;
                let init = match layer.start {
                    Start::Usual => Init::FanIn(fan_in),
                    Start::He => Init::Normal((2.0 / fan_in as f64).sqrt()),
                    Start::Zero => Init::Constant(0.0),
                };
                Self::Conv(Conv2d::drawn(params, name, [inputs, outputs], kernel, groups, init)?)
            }
            StackLayer::Silu => Self::Silu,
            StackLayer::Norm { channels } => {
                let weight = if layer.start == Start::Zero { 0.0 } else { 1.0 };
                Self::Norm(GroupNormLayer::new(params, &position.to_string(), channels, weight)?)
            }
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        match self {
            Self::Conv(conv) => conv.forward(x, None),
            Self::Silu => x.f_silu(),
            Self::Norm(norm) => norm.forward(x),
        }
    }
}

/// Layers in order.
pub(super) struct ConvStack {
    layers: Vec<BuiltLayer>,
    params: ParamSet,
}

impl ConvStack {
    pub(super) fn new(layers: &[Layer], mut params: ParamSet) -> Result<Self, TchError> {
        let built = layers
            .iter()
            .enumerate()
            .map(|(position, &layer)| BuiltLayer::new(layer, position, &mut params))
            .collect::<Result<_, _>>()?;
        Ok(Self { layers: built, params })
    }

    /// δ(x) and false; or the features that it has entered and true, where the engine's kernels compute the last layer.
    fn run(&self, x: &Tensor, onto: Option<Onto>) -> Result<(Tensor, bool), TchError> {
        let mut features = x.shallow_clone();
        let mut rest = self.layers.as_slice();
        let mut has_entered = false;
        while let [layer, following @ ..] = rest {
            (features, rest) = match layer {
                BuiltLayer::Conv(conv) if conv.uses_own_kernels(&features) => {
                    let (norm, silu, following) = at_once(following);
                    let onto = onto.filter(|_| following.is_empty());
                    has_entered = onto.is_some();
                    (conv_layer(&features, &conv.weight, norm, silu, onto)?, following)
                }
                _ => (layer.forward(&features)?, following),
            };
        }
        Ok((features, has_entered))
    }
}

impl SeedModule for ConvStack {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        let (delta, _) = self.run(x, None)?;
        Ok(Some(delta))
    }

    fn delta_onto(&self, x: &Tensor, onto: Onto, _: Mode) -> Result<Option<Tensor>, BlendError> {
        let (result, has_entered) = self.run(x, Some(onto))?;
        if has_entered {
            return Ok(Some(result));
        }
        Ok(Some(onto.enter(&fit_residual(result, onto.features())?)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }
}

/// Layers after a convolution, as far as the engine's kernels compute them together; and the remaining ones.
fn at_once(rest: &[BuiltLayer]) -> (Option<GroupNormOf<'_>>, Silu, &[BuiltLayer]) {
    let (before_norm, rest) = match rest {
        [BuiltLayer::Silu, rest @ ..] => (true, rest),
        _ => (false, rest),
    };
    let (norm, rest) = match rest {
        [BuiltLayer::Norm(norm), rest @ ..] => (Some(norm.for_kernels()), rest),
        _ => (None, rest),
    };
    let (after_norm, rest) = match rest {
        [BuiltLayer::Silu, rest @ ..] if norm.is_some() => (true, rest),
        _ => (false, rest),
    };
    let silu = Silu {
        before_norm,
        after_norm,
    };
    (norm, silu, rest)
}
