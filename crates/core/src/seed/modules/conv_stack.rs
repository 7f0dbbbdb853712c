//! Seeds that are plain stacks of convolutions, described by a list of layers.

use tch::{Kind, TchError, Tensor};

use super::seed_init::{factor_to_unit, turn_rows};
use crate::graph::StackLayer;
use crate::kernels::{GroupNormOf, Onto, Silu, backward, conv_layer};
use crate::nn::{Conv2d, GroupNormLayer, Mode, ParamSet};
use crate::scenario::SeedInit;
use crate::seed::{BlendError, InitBatch, SeedModule, fit_residual};
use crate::torch::{NoGrad, TorchError};

/// A layer as a blueprint describes it. Convolutions keep height and width and have no bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layer {
    pub(super) graph: StackLayer,
    /// Its weights start at 0.
    pub(super) is_silent: bool,
}

impl Layer {
    /// A layer whose weights are drawn, and norms start at 1.
    pub(super) const fn of(graph: StackLayer) -> Self {
        Self {
            graph,
            is_silent: false,
        }
    }

    /// `groups` of the channels, each with filters of its own.
    pub(super) const fn conv(inputs: i64, outputs: i64, kernel: i64, groups: i64) -> Self {
        Self::of(StackLayer::Conv {
            inputs,
            outputs,
            kernel,
            groups,
        })
    }

    /// A stack with its output silenced by the last convolution instead of the norm at its end, which goes.
    pub(super) fn silence_output(layers: &mut Vec<Self>) {
        layers.pop_if(|layer| matches!(layer.graph, StackLayer::Norm { .. }));
        let mut convs = layers
            .iter_mut()
            .filter(|layer| matches!(layer.graph, StackLayer::Conv { .. }));
        if let Some(last) = convs.next_back() {
            last.is_silent = true;
        }
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
                let build = if layer.is_silent { Conv2d::silent } else { Conv2d::new };
                Self::Conv(build(params, name, inputs, outputs, kernel, groups)?)
            }
            StackLayer::Silu => Self::Silu,
            StackLayer::Norm { channels } => {
                let weight = if layer.is_silent { 0.0 } else { 1.0 };
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
        while let [layer, behind @ ..] = rest {
            (features, rest) = match layer {
                BuiltLayer::Conv(conv) if conv.uses_own_kernels(&features) => {
                    let (norm, silu, behind) = at_once(behind);
                    let onto = onto.filter(|_| behind.is_empty());
                    has_entered = onto.is_some();
                    (conv_layer(&features, &conv.weight, norm, silu, onto)?, behind)
                }
                _ => (layer.forward(&features)?, behind),
            };
        }
        Ok((features, has_entered))
    }

    /// Scales every convolution, first to last, to outputs with a mean square of 1.
    fn normalise_maps(&self, x: &Tensor) -> Result<(), TchError> {
        let _no_grad = NoGrad::new();
        let mut features = x.shallow_clone();
        for layer in &self.layers {
            features = layer.forward(&features)?;
            if let BuiltLayer::Conv(conv) = layer {
                let factor = factor_to_unit(&features)?;
                let _ = conv.weight.shallow_clone().f_mul_(&factor)?;
                features = features.f_mul(&factor)?;
            }
        }
        Ok(())
    }

    /// Turns each filter of the last convolution along what its output's gradient asks of it: of all filters of that
    /// norm, the one with the largest first gradient of the gain behind it.
    ///
    /// The gain γ_c of channel c starts at 0 and has the gradient Σ g_c·n_c over samples and positions, g the gradient
    /// of the slot's output. Where n is taken as linear in what the filter yields, n_c = w_c·u with u the
    /// convolution's input, that is w_c·M_c with M_c = Σ g_c·u, largest in size for w_c along M_c. This is GradMax
    /// (Evci et al. 2022, arXiv:2201.05125) for a zero factor that is a gain a channel: the singular vector of each M_c,
    /// a matrix of one row, is its own direction.
    fn turn_last_map(&self, seed_init: &InitBatch) -> Result<(), TorchError> {
        let is_conv = |layer: &BuiltLayer| matches!(layer, BuiltLayer::Conv(_));
        let Some(last) = self.layers.iter().rposition(is_conv) else {
            return Ok(());
        };
        let (before, BuiltLayer::Conv(conv)) = (&self.layers[..last], &self.layers[last]) else {
            return Ok(());
        };
        let input = {
            let _no_grad = NoGrad::new();
            let features = seed_init.features.shallow_clone();
            before.iter().try_fold(features, |x, layer| layer.forward(&x))?
        };
        // A convolution is linear in its weights: their gradient under g is M for any weights.
        let weight = conv.weight.f_detach()?.f_set_requires_grad(true)?;
        let output = conv.with_weight(weight.shallow_clone()).forward(&input, None)?;
        let objective = output.f_mul(&seed_init.gradient)?.f_sum(Kind::Float)?;
        backward(&objective, self.params.backend())?;
        let _no_grad = NoGrad::new();
        Ok(turn_rows(&conv.weight, &weight.f_grad()?)?)
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

    fn adapt(&self, init: SeedInit, seed_init: &InitBatch) -> Result<(), TorchError> {
        match init {
            SeedInit::ZeroGain | SeedInit::ZeroOutput => Ok(()),
            SeedInit::Gradmax => self.turn_last_map(seed_init),
            SeedInit::Statistics => Ok(self.normalise_maps(&seed_init.features)?),
        }
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }
}

/// What follows a convolution, as far as the engine's kernels compute it together; and what is left.
fn at_once(behind: &[BuiltLayer]) -> (Option<GroupNormOf<'_>>, Silu, &[BuiltLayer]) {
    let (before_norm, behind) = match behind {
        [BuiltLayer::Silu, behind @ ..] => (true, behind),
        _ => (false, behind),
    };
    let (norm, behind) = match behind {
        [BuiltLayer::Norm(norm), behind @ ..] => (Some(norm.for_kernels()), behind),
        _ => (None, behind),
    };
    let (after_norm, behind) = match behind {
        [BuiltLayer::Silu, behind @ ..] if norm.is_some() => (true, behind),
        _ => (false, behind),
    };
    let silu = Silu {
        before_norm,
        after_norm,
    };
    (norm, silu, behind)
}
