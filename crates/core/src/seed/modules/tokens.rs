//! The built-in seed modules for texts: `[B, T, d]` to the same, position t from positions up to t.
//!
//! Each ends in a map or factor that starts at zero, so δ is exactly 0 at initialisation while the gradient already reaches it.

use std::sync::Arc;

use tch::{TchError, Tensor};

use super::module_of;
use crate::graph::ModuleGraph;
use crate::growth::{Topology, coded_enum};
use crate::nn::{CausalAttention, Init, LayerNorm, Linear, Mode, ParamSet};
use crate::random::RunRng;
use crate::scenario::BlueprintsConfig;
use crate::seed::{Blueprint, BlueprintError, SeedModule};
use crate::torch::Backend;

coded_enum! {
    /// The built-in kinds; the code is the blueprint index. Indices that images have as well are the same kind of thing.
    TokenBlueprint {
        /// No residual and no parameters.
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

/// A built-in kind with what a scenario has chosen about it.
pub(super) struct BuiltIn {
    kind: TokenBlueprint,
    options: BlueprintsConfig,
}

impl BuiltIn {
    /// All of them with their indices.
    pub(super) fn all(options: BlueprintsConfig) -> impl Iterator<Item = (usize, Arc<dyn Blueprint>)> {
        TokenBlueprint::ALL
            .iter()
            .map(move |&kind| (kind.code(), Arc::new(Self { kind, options }) as _))
    }
}

impl Blueprint for BuiltIn {
    fn id(&self) -> &'static str {
        self.kind.name()
    }

    fn topology(&self) -> Topology {
        Topology::Tokens
    }

    fn summary(&self) -> &'static str {
        match self.kind {
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
        let options = &self.options;
        let lora = |hidden| ModuleGraph::TwoMaps { hidden, is_mlp: false };
        let mlp = |expansion| ModuleGraph::TwoMaps {
            hidden: expansion * dim,
            is_mlp: true,
        };
        match self.kind {
            TokenBlueprint::Noop => ModuleGraph::Noop,
            TokenBlueprint::Norm => ModuleGraph::Norm,
            TokenBlueprint::Lora => lora(options.lora.rank),
            TokenBlueprint::LoraLarge => lora(options.lora_large.rank),
            TokenBlueprint::MlpSmall => mlp(options.mlp_small.expansion),
            TokenBlueprint::Mlp => mlp(options.mlp.expansion),
            TokenBlueprint::Attention => ModuleGraph::Attention {
                heads: options.attention.heads,
                window: None,
            },
            TokenBlueprint::FlexAttention => ModuleGraph::Attention {
                heads: options.flex_attention.heads,
                window: Some(options.flex_attention.window),
            },
        }
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let graph = self.graph(dim);
        if let ModuleGraph::Attention { heads, .. } = graph
            && dim % heads != 0
        {
            return Err(BlueprintError::Unfit {
                id: self.id(),
                dim,
                why: format!("its {heads} heads need a multiple of {heads} channels"),
            });
        }
        let module = module_of(&graph, Topology::Tokens, dim, ParamSet::new(backend))?;
        module.params().initialise(rng)?;
        Ok(module)
    }
}

/// `norm`: δ(x) = tanh(s)·(LN(x) − x), the scalar s starting at 0.
pub(super) struct TokenNorm {
    strength: Tensor,
    norm: LayerNorm,
    params: ParamSet,
}

impl TokenNorm {
    pub(super) fn new(dim: i64, mut params: ParamSet) -> Result<Self, TchError> {
        let strength = params.add("strength", &[1], Init::Constant(0.0))?;
        let norm = LayerNorm::new(&mut params, "norm", dim)?;
        Ok(Self { strength, norm, params })
    }
}

impl SeedModule for TokenNorm {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        let change = self.norm.forward(x)?.f_sub(x)?;
        Ok(Some(change.f_mul(&self.strength.f_tanh()?)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
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
