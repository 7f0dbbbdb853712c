//! A network as plain data: its line of layers with their sizes, grown seeds among them, and the places where it can grow.
//!
//! A [`HostPlan`](crate::host::HostPlan) of the engine's own layers and a seed of its own modules say what they are in these
//! words; from them the same network is built again ([`network`](crate::network)), or written in another language. Tensors
//! belong to a layer by its name: `{layer}.{tensor}`.

use serde::{Deserialize, Serialize};

use crate::growth::{AlphaAlgorithm, SlotId, Topology};
use crate::scenario::{HostNorm, Positions, Shortcut};

/// A whole network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Kind of its features.
    pub topology: Topology,
    /// Channels of the images that it reads, or tokens of the vocabulary for texts.
    pub channels: i64,
    /// Height and width of the images that it reads, or the largest number of tokens at a time for texts.
    pub side: i64,
    /// The layers in order; the last makes logits.
    pub layers: Vec<NamedLayer>,
    /// Places for growth: the slot, and the layers in front of it.
    pub slots: Vec<(SlotId, usize)>,
}

/// A layer in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedLayer {
    /// The names of its tensors begin with it. No other layer with tensors has it.
    pub name: String,
    /// The layer's operation.
    pub layer: LayerGraph,
}

/// Operation of a layer; formulas are in `docs/reference/hosts.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "sizes have the same names as in the designs of the layers")]
pub enum LayerGraph {
    /// Convolution with "same" padding, norm and ReLU; without a norm the convolution alone.
    Conv {
        inputs: i64,
        outputs: i64,
        kernel: i64,
        stride: i64,
        bias: bool,
        norm: Option<HostNorm>,
    },
    /// 2×2 max pool with stride 2.
    Pool,
    /// Max pool of another kind, with rows and columns of −∞ around the image.
    MaxPool { kernel: i64, stride: i64, padding: i64 },
    /// Norm and ReLU.
    NormRelu { channels: i64, norm: HostNorm },
    /// Two 3×3 convolutions and a way around them.
    Residual {
        inputs: i64,
        outputs: i64,
        stride: i64,
        shortcut: Shortcut,
        pre_activation: bool,
        norm: HostNorm,
    },
    /// Mean over positions and a linear map.
    Head { inputs: i64, classes: i64 },
    /// Tokens to features.
    Embedding {
        vocab: i64,
        width: i64,
        block: i64,
        positions: Positions,
    },
    /// Attention and two linear maps, each with a norm in front and a way around.
    Text {
        width: i64,
        heads: i64,
        block: i64,
        positions: Positions,
    },
    /// A norm, and logits by the weight of the layer `embedding`.
    TextHead { width: i64, vocab: i64, embedding: String },
    /// A seed that has become part of the network.
    Seed(SeedGraph),
    /// A layer of an application's, whose sources alone say what it computes.
    Custom,
}

/// A seed: x to x + a·δ(x), x·(1 + a·tanh δ(x)) or x + a·g(x)·δ(x), by its operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedGraph {
    /// The slot in which it grew.
    pub slot: SlotId,
    /// Id of its blueprint.
    pub blueprint: String,
    /// Channels of the features.
    pub channels: i64,
    /// δ.
    pub module: ModuleGraph,
    /// The operator by which δ enters the features.
    pub operator: AlphaAlgorithm,
    /// The amplitude a, from 0 to 1.
    pub amplitude: f64,
}

/// The residual of a seed; formulas are in `docs/reference/hosts.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "sizes have the same names as in the modules")]
pub enum ModuleGraph {
    /// Nothing.
    Noop,
    /// Convolutions, activations and norms in order.
    Stack(Vec<StackLayer>),
    /// tanh(s)·(norm(x) − x): group norm for images, layer norm for texts.
    Norm,
    /// x·tanh(W₂·silu(W₁·mean(x)) + b₂).
    SqueezeExcite { hidden: i64 },
    /// Two linear maps; with GELU between them and biases.
    TwoMaps { hidden: i64, is_mlp: bool },
    /// Causal attention, over all positions or the last `window`.
    Attention { heads: i64, window: Option<i64> },
    /// A module of an application's, whose sources alone say what it computes.
    Custom,
}

/// A layer of a [`ModuleGraph::Stack`]. Its tensors are named after its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "sizes have the same names as in the modules")]
pub enum StackLayer {
    /// Convolution with "same" padding and no bias.
    Conv {
        inputs: i64,
        outputs: i64,
        kernel: i64,
        groups: i64,
    },
    /// x·sigmoid(x).
    Silu,
    /// Group norm.
    Norm { channels: i64 },
}

impl ModuleGraph {
    /// Trainable values of a module for `dim` channels. [`Self::Custom`] has none that are known here.
    pub fn parameters(&self, dim: i64) -> u64 {
        let values = match self {
            Self::Noop | Self::Custom => 0,
            Self::Stack(layers) => layers.iter().map(|layer| layer.parameters()).sum(),
            Self::Norm => dim.saturating_mul(2).saturating_add(1),
            Self::SqueezeExcite { hidden } => dim.saturating_mul(2 * hidden + 1),
            Self::TwoMaps { hidden, is_mlp } => {
                let biases = if *is_mlp { hidden + dim } else { 0 };
                (2 * dim).saturating_mul(*hidden).saturating_add(biases)
            }
            Self::Attention { .. } => dim.saturating_mul(dim).saturating_add(dim).saturating_mul(4),
        };
        values.max(0).unsigned_abs()
    }

    /// Multiply-accumulates of a module for `dim` channels, per sample over `positions` positions, or tokens.
    pub fn macs(&self, dim: i64, positions: u64) -> u64 {
        let width = dim.max(0).unsigned_abs();
        match self {
            Self::Noop | Self::Norm | Self::Custom => 0,
            Self::Stack(layers) => {
                let weights = layers.iter().filter(|layer| matches!(layer, StackLayer::Conv { .. }));
                let weights: i64 = weights.map(|layer| layer.parameters()).sum();
                positions.saturating_mul(weights.max(0).unsigned_abs())
            }
            Self::SqueezeExcite { hidden } => 2 * width * hidden.max(&0).unsigned_abs(),
            Self::TwoMaps { hidden, .. } => positions.saturating_mul(2 * width * hidden.max(&0).unsigned_abs()),
            Self::Attention { .. } => {
                let of_a_token = (4 * width * width).saturating_add(2 * positions * width);
                positions.saturating_mul(of_a_token)
            }
        }
    }
}

impl StackLayer {
    const fn parameters(self) -> i64 {
        match self {
            Self::Conv {
                inputs,
                outputs,
                kernel,
                groups,
            } => (inputs / groups)
                .saturating_mul(outputs)
                .saturating_mul(kernel * kernel),
            Self::Silu => 0,
            Self::Norm { channels } => 2 * channels,
        }
    }
}

impl Graph {
    /// The seeds that are part of it, in order.
    pub fn seeds(&self) -> impl Iterator<Item = &SeedGraph> {
        self.layers.iter().filter_map(|named| match &named.layer {
            LayerGraph::Seed(seed) => Some(seed),
            _ => None,
        })
    }

    /// The first layer or seed that only an application's sources describe.
    pub fn custom(&self) -> Option<&NamedLayer> {
        self.layers.iter().find(|named| match &named.layer {
            LayerGraph::Custom => true,
            LayerGraph::Seed(seed) => seed.module == ModuleGraph::Custom,
            _ => false,
        })
    }

    /// The network with one more seed, after those that are in its slot already, and the name of its layer. A seed can't
    /// have grown in a slot that the network doesn't have.
    #[must_use]
    pub fn with_seed(mut self, seed: SeedGraph) -> (Self, String) {
        let slot = seed.slot;
        let place = self.slots.iter().find(|(known, _)| *known == slot);
        let boundary = place.map_or(self.layers.len(), |(_, boundary)| *boundary);
        let stands = self.seeds().filter(|other| other.slot == slot).count();
        let name = match stands {
            0 => format!("{slot}"),
            more => format!("{slot}_{}", more + 1),
        };
        let layer = LayerGraph::Seed(seed);
        let named = NamedLayer {
            name: name.clone(),
            layer,
        };
        self.layers.insert(boundary, named);
        for (other, place) in &mut self.slots {
            *place += usize::from(*place > boundary || *other == slot);
        }
        (self, name)
    }
}

#[cfg(test)]
mod tests;
