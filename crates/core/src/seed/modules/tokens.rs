//! The built-in seed modules for texts: `[B, T, d]` to the same, position t from positions up to t.
//!
//! Each ends in a map or factor that starts at zero, so δ is exactly 0 at initialisation while the gradient already reaches it.

use tch::{TchError, Tensor};

use super::module_of;
use crate::graph::ModuleGraph;
use crate::growth::{Topology, coded_enum};
use crate::nn::{CausalAttention, Init, Linear, Mode, ParamSet};
use crate::random::RunRng;
use crate::seed::{Blueprint, BlueprintError, SeedModule};
use crate::torch::Backend;

coded_enum! {
    /// The built-in kinds; the code is the blueprint index. An index that images have too means the same kind of module.
    TokenBlueprint {
        /// A seed without a residual and parameters.
        Noop = 0 => "noop",
        /// Causal attention over all positions.
        Attention = 2 => "attention",
        /// Layer norm.
        Norm = 3 => "norm",
        /// Two linear maps through few channels.
        Lora = 8 => "lora",
        /// Two linear maps through more channels.
        LoraLarge = 9 => "lora_large",
        /// Two linear maps and GELU.
        MlpSmall = 10 => "mlp_small",
        /// Two linear maps and GELU through more channels.
        Mlp = 11 => "mlp",
        /// Causal attention over a sliding window.
        FlexAttention = 12 => "flex_attention",
    }
}

/// Channels between the two maps of `lora` and `lora_large`.
const RANK: i64 = 8;
const LARGE_RANK: i64 = 32;
/// Channels between the two maps of `mlp_small` and `mlp` over the slot's.
const SMALL_EXPANSION: i64 = 2;
const EXPANSION: i64 = 4;
/// Most heads of an attention.
const MOST_HEADS: i64 = 4;
/// Positions that `flex_attention` sees, its own the last of them.
const WINDOW: i64 = 64;

impl Blueprint for TokenBlueprint {
    fn id(&self) -> &'static str {
        self.name()
    }

    fn topology(&self) -> Topology {
        Topology::Tokens
    }

    fn summary(&self) -> &'static str {
        match self {
            TokenBlueprint::Noop => "no change, no parameters; a placebo for experiments",
            TokenBlueprint::Attention => "causal self-attention",
            TokenBlueprint::Norm => "layer norm, blended in by one learned scale",
            TokenBlueprint::Lora => "two linear maps through few channels",
            TokenBlueprint::LoraLarge => "two linear maps through more channels",
            TokenBlueprint::MlpSmall => "two linear maps and GELU",
            TokenBlueprint::Mlp => "two linear maps and GELU through more channels",
            TokenBlueprint::FlexAttention => "causal self-attention over a sliding window",
        }
    }

    fn param_count(&self, dim: i64) -> u64 {
        self.graph(dim).parameters(dim)
    }

    fn graph(&self, dim: i64) -> ModuleGraph {
        let lora = |hidden| ModuleGraph::TwoMaps { hidden, is_mlp: false };
        let mlp = |expansion| ModuleGraph::TwoMaps {
            hidden: expansion * dim,
            is_mlp: true,
        };
        // The largest number of heads that divides the slot's channels.
        let attention = |window| ModuleGraph::Attention {
            heads: (1..=MOST_HEADS).rev().find(|heads| dim % heads == 0).unwrap_or(1),
            window,
        };
        match self {
            TokenBlueprint::Noop => ModuleGraph::Noop,
            TokenBlueprint::Norm => ModuleGraph::Norm,
            TokenBlueprint::Lora => lora(RANK),
            TokenBlueprint::LoraLarge => lora(LARGE_RANK),
            TokenBlueprint::MlpSmall => mlp(SMALL_EXPANSION),
            TokenBlueprint::Mlp => mlp(EXPANSION),
            TokenBlueprint::Attention => attention(None),
            TokenBlueprint::FlexAttention => attention(Some(WINDOW)),
        }
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let module = module_of(&self.graph(dim), Topology::Tokens, dim, ParamSet::new(backend))?;
        module.params().initialise(rng)?;
        Ok(module)
    }
}

/// `lora`: δ(x) = U·D·x (Hu et al. 2021, arXiv:2106.09685), and `mlp`: δ(x) = W₂·gelu(W₁·x + b₁) + b₂. What leads out starts
/// at 0.
pub(super) struct TwoMaps {
    down: Linear,
    up: Linear,
    is_mlp: bool,
    params: ParamSet,
}

impl TwoMaps {
    pub(super) fn new(dim: i64, hidden: i64, is_mlp: bool, mut params: ParamSet) -> Result<Self, TchError> {
        let bias = |init| is_mlp.then_some(init);
        let (fan_in, zero) = (Init::FanIn(dim), Init::Constant(0.0));
        let down = Linear::new(&mut params, "in", [dim, hidden], fan_in, bias(fan_in))?;
        let up = Linear::new(&mut params, "out", [hidden, dim], zero, bias(zero))?;
        Ok(Self {
            down,
            up,
            is_mlp,
            params,
        })
    }
}

impl SeedModule for TwoMaps {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        let mut hidden = self.down.forward(x)?;
        if self.is_mlp {
            hidden = hidden.f_gelu("none")?;
        }
        Ok(Some(self.up.forward(&hidden)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }
}

/// `attention` and `flex_attention`: δ(x) = W·softmax(q·kᵀ)·v over the positions in reach, W starting at 0.
pub(super) struct AttentionSeed {
    dim: i64,
    attention: CausalAttention,
    params: ParamSet,
}

impl AttentionSeed {
    pub(super) const fn new(dim: i64, attention: CausalAttention, params: ParamSet) -> Self {
        Self { dim, attention, params }
    }
}

impl SeedModule for AttentionSeed {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        self.attention.forward(x).map(Some)
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, positions: u64) -> u64 {
        CausalAttention::macs(self.dim, positions)
    }
}

#[cfg(test)]
mod tests;
