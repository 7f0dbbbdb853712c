//! The built-in seed modules: here the modules for images, in [`tokens`] those for texts.
//!
//! Modules for images are SiLU networks with GroupNorm. Each ends in a factor, a norm or a convolution that starts at zero, so
//! δ is exactly 0 at initialisation while the gradient already reaches this last part.

mod conv_stack;
mod norm;
mod squeeze_excite;
mod tokens;

use std::sync::Arc;

use tch::{TchError, Tensor};

use self::conv_stack::{ConvStack, Layer, Start};
use self::norm::NormModule;
use self::squeeze_excite::SqueezeExcite;
pub use self::tokens::TokenBlueprint;
use self::tokens::{AttentionSeed, TwoMaps};
use super::{Blueprint, BlueprintError, BlueprintRegistry, SeedModule};
use crate::graph::{ModuleGraph, StackLayer};
use crate::growth::{Topology, coded_enum};
use crate::nn::{AttentionInit, CausalAttention, Init, Mode, ParamSet, Reach};
use crate::random::RunRng;
use crate::torch::Backend;

coded_enum! {
    /// The built-in kinds for images; the code is the blueprint index.
    CnnBlueprint {
        /// A seed without a residual and parameters.
        Noop = 0 => "noop",
        /// One 3×3 convolution.
        ConvLight = 1 => "conv_light",
        /// Squeeze-and-excite channel gates.
        Attention = 2 => "attention",
        /// Group norm.
        Norm = 3 => "norm",
        /// Depthwise, then pointwise convolution.
        Depthwise = 4 => "depthwise",
        /// 1×1, 3×3 and 1×1 convolutions through fewer channels.
        Bottleneck = 5 => "bottleneck",
        /// One 1×1 convolution.
        ConvSmall = 6 => "conv_small",
        /// Two 3×3 convolutions.
        ConvHeavy = 7 => "conv_heavy",
    }
}

/// The slot's channels over the hidden ones of squeeze-and-excite gates, of which there is at least 1.
const SQUEEZE: i64 = 4;
/// The slot's channels over those of a bottleneck's waist, and the fewest of these.
const NARROWING: i64 = 4;
const LEAST_WAIST: i64 = 8;

impl CnnBlueprint {
    /// The layers of the kinds that are plain stacks.
    fn layers(self, dim: i64) -> Vec<Layer> {
        let conv = |kernel| Layer::conv(dim, dim, kernel, 1);
        let silu = Layer::of(StackLayer::Silu);
        let norm = Layer::of(StackLayer::Norm { channels: dim });
        let last_norm = norm.starting(Start::Zero);
        match self {
            CnnBlueprint::Noop | CnnBlueprint::Attention | CnnBlueprint::Norm => Vec::new(),
            CnnBlueprint::Depthwise => vec![Layer::conv(dim, dim, 3, dim), conv(1), silu, last_norm],
            CnnBlueprint::Bottleneck => {
                let waist = LEAST_WAIST.max(dim / NARROWING);
                vec![
                    Layer::conv(dim, waist, 1, 1),
                    silu,
                    Layer::conv(waist, waist, 3, 1),
                    silu,
                    Layer::conv(waist, dim, 1, 1),
                    last_norm,
                ]
            }
            CnnBlueprint::ConvSmall => vec![conv(1), silu, last_norm],
            CnnBlueprint::ConvLight => vec![conv(3), silu, last_norm],
            CnnBlueprint::ConvHeavy => vec![conv(3), norm, silu, conv(3), silu, last_norm],
        }
    }
}

/// Two 3×3 convolutions through `rank` channels, δ = B∗SiLU(GN(A∗x)): no norm follows the second, so that the amplitude of δ is
/// free, and may be constant.
#[derive(Clone, Copy)]
struct LowRank {
    id: &'static str,
    summary: &'static str,
    rank: Rank,
}

/// Channels between the two convolutions of a [`LowRank`], at most those of the slot.
#[derive(Clone, Copy)]
enum Rank {
    Fixed(i64),
    /// The slot's, divided by this.
    Share(i64),
}

/// The blueprints by rising rank.
const LOW_RANK: [LowRank; 5] = [
    LowRank {
        id: "conv_rank2",
        summary: "3x3 convolutions to 2 channels and back, group norm and SiLU between",
        rank: Rank::Fixed(2),
    },
    LowRank {
        id: "conv_rank4",
        summary: "the same through 4 channels",
        rank: Rank::Fixed(4),
    },
    LowRank {
        id: "conv_quarter",
        summary: "the same through a quarter of the channels",
        rank: Rank::Share(4),
    },
    LowRank {
        id: "conv_half",
        summary: "the same through half of the channels",
        rank: Rank::Share(2),
    },
    LowRank {
        id: "conv_full",
        summary: "the same through all of the channels",
        rank: Rank::Share(1),
    },
];

impl LowRank {
    fn layers(self, dim: i64) -> [Layer; 4] {
        let rank = match self.rank {
            Rank::Fixed(channels) => channels.min(dim),
            Rank::Share(divisor) => (dim / divisor).max(1),
        };
        [
            Layer::conv(dim, rank, 3, 1).starting(Start::He),
            Layer::of(StackLayer::Norm { channels: rank }),
            Layer::of(StackLayer::Silu),
            Layer::conv(rank, dim, 3, 1).starting(Start::Zero),
        ]
    }
}

impl Blueprint for LowRank {
    fn id(&self) -> &'static str {
        self.id
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn param_count(&self, dim: i64) -> u64 {
        self.graph(dim).parameters(dim)
    }

    fn graph(&self, dim: i64) -> ModuleGraph {
        ModuleGraph::Stack(self.layers(dim).map(|layer| layer.graph).into())
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let module = ConvStack::new(&self.layers(dim), ParamSet::new(backend))?;
        module.params().initialise(rng)?;
        Ok(Box::new(module))
    }
}

impl Default for BlueprintRegistry {
    /// The built-in blueprints.
    fn default() -> Self {
        let images = CnnBlueprint::ALL.map(|kind| (kind.code(), Arc::new(kind) as Arc<dyn Blueprint>));
        let texts = TokenBlueprint::ALL.map(|kind| (kind.code(), Arc::new(kind) as Arc<dyn Blueprint>));
        let on_request = LOW_RANK.map(|kind| Arc::new(kind) as Arc<dyn Blueprint>);
        Self::of(images.into_iter().chain(texts), on_request)
    }
}

impl Blueprint for CnnBlueprint {
    fn id(&self) -> &'static str {
        self.name()
    }

    fn summary(&self) -> &'static str {
        match self {
            CnnBlueprint::Noop => "no change, no parameters; a placebo for experiments",
            CnnBlueprint::ConvLight => "one 3x3 convolution, SiLU, group norm",
            CnnBlueprint::Attention => "squeeze-and-excite channel gates",
            CnnBlueprint::Norm => "group norm, blended in by one learned scale",
            CnnBlueprint::Depthwise => "depthwise 3x3, then pointwise convolution",
            CnnBlueprint::Bottleneck => "1x1, 3x3, 1x1 convolutions through fewer channels",
            CnnBlueprint::ConvSmall => "one 1x1 convolution, SiLU, group norm",
            CnnBlueprint::ConvHeavy => "two 3x3 convolutions, SiLU, group norm",
        }
    }

    fn param_count(&self, dim: i64) -> u64 {
        self.graph(dim).parameters(dim)
    }

    fn graph(&self, dim: i64) -> ModuleGraph {
        match self {
            CnnBlueprint::Noop => ModuleGraph::Noop,
            CnnBlueprint::Norm => ModuleGraph::Norm,
            CnnBlueprint::Attention => ModuleGraph::SqueezeExcite {
                hidden: (dim / SQUEEZE).max(1),
            },
            _ => ModuleGraph::Stack(self.layers(dim).into_iter().map(|layer| layer.graph).collect()),
        }
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let params = ParamSet::new(backend);
        let module: Box<dyn SeedModule> = match self.graph(dim) {
            // The graph doesn't describe initial values.
            ModuleGraph::Stack(_) => Box::new(ConvStack::new(&self.layers(dim), params)?),
            graph => module_of(&graph, Topology::Image, dim, params)?,
        };
        module.params().initialise(rng)?;
        Ok(module)
    }
}

/// The module that `graph` describes for features of `dim` channels; its tensors are those of `params`, and hold what these
/// hold. A module of an application is [`Noop`] here: a caller that needs it asks before.
///
/// # Errors
/// Out of memory.
pub fn module_of(
    graph: &ModuleGraph,
    topology: Topology,
    dim: i64,
    mut params: ParamSet,
) -> Result<Box<dyn SeedModule>, TchError> {
    Ok(match (graph, topology) {
        (ModuleGraph::Noop | ModuleGraph::Custom, _) => Box::new(Noop { params }),
        (ModuleGraph::Stack(layers), _) => {
            let layers: Vec<Layer> = layers.iter().copied().map(Layer::of).collect();
            Box::new(ConvStack::new(&layers, params)?)
        }
        (ModuleGraph::Norm, topology) => Box::new(NormModule::new(topology, dim, params)?),
        (&ModuleGraph::SqueezeExcite { hidden }, _) => Box::new(SqueezeExcite::new(dim, hidden, params)?),
        (&ModuleGraph::TwoMaps { hidden, is_mlp }, _) => Box::new(TwoMaps::new(dim, hidden, is_mlp, params)?),
        (&ModuleGraph::Attention { heads, window }, _) => {
            let fan_in = Init::FanIn(dim);
            let init = AttentionInit {
                weight: fan_in,
                bias: fan_in,
                out: Init::Constant(0.0),
            };
            let reach = window.map_or(Reach::All, Reach::Window);
            let attention = CausalAttention::new(&mut params, "attention", (dim, heads), init, (reach, None))?;
            Box::new(AttentionSeed::new(dim, attention, params))
        }
    })
}

/// A placebo: no residual, no parameters.
struct Noop {
    params: ParamSet,
}

impl SeedModule for Noop {
    fn delta(&self, _: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        Ok(None)
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }
}

#[cfg(test)]
mod tests;
