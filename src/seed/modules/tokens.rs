//! The built-in seed modules for texts: `[B, T, d]` to the same, position t from positions up to t.
//!
//! Each ends in a map or factor that starts at zero, so δ is exactly 0 at birth while the gradient already reaches it.

use tch::{TchError, Tensor};

use super::Noop;
use crate::growth::{Topology, coded_enum};
use crate::random::RunRng;
use crate::seed::{Blueprint, BlueprintError, SeedModule};
use crate::torch::{AttentionInit, Backend, CausalAttention, Init, LayerNorm, Linear, Mode, ParamSet, Reach};

coded_enum! {
    /// The built-in kinds; the code is the blueprint index. Indices that images have as well are the same kind of thing.
    TokenBlueprint {
        /// No residual and no parameters.
        Noop = 0 => "noop",
        /// Causal attention over all positions.
        Attention = 2 => "attention",
        /// Layer norm.
        Norm = 3 => "norm",
        /// Two linear maps through 8 channels.
        Lora = 8 => "lora",
        /// Two linear maps through 32 channels.
        LoraLarge = 9 => "lora_large",
        /// Two linear maps through twice the channels.
        MlpSmall = 10 => "mlp_small",
        /// Two linear maps through four times the channels.
        Mlp = 11 => "mlp",
        /// Causal attention over a sliding window.
        FlexAttention = 12 => "flex_attention",
    }
}

/// Heads of an attention.
const HEADS: i64 = 4;
/// Positions that a sliding window shows.
const WINDOW: i64 = 64;

/// The two maps of a module that has nothing else.
#[derive(Clone, Copy)]
struct Maps {
    /// Channels between them.
    hidden: i64,
    /// GELU between them, and biases.
    is_mlp: bool,
}

impl TokenBlueprint {
    /// All of them with their indices.
    pub(super) fn all() -> impl Iterator<Item = (usize, Box<dyn Blueprint>)> {
        Self::ALL
            .iter()
            .map(|&blueprint| (blueprint.code(), Box::new(blueprint) as _))
    }

    const fn maps(self, dim: i64) -> Option<Maps> {
        let (hidden, is_mlp) = match self {
            Self::Lora => (8, false),
            Self::LoraLarge => (32, false),
            Self::MlpSmall => (2 * dim, true),
            Self::Mlp => (4 * dim, true),
            Self::Noop | Self::Attention | Self::Norm | Self::FlexAttention => return None,
        };
        Some(Maps { hidden, is_mlp })
    }
}

impl Blueprint for TokenBlueprint {
    fn id(&self) -> &'static str {
        self.name()
    }

    fn topology(&self) -> Topology {
        Topology::Tokens
    }

    fn summary(&self) -> &'static str {
        match self {
            Self::Noop => "no change, no parameters; a placebo for experiments",
            Self::Attention => "causal self-attention, 4 heads",
            Self::Norm => "layer norm, blended in by one learned scale",
            Self::Lora => "two linear maps through 8 channels",
            Self::LoraLarge => "two linear maps through 32 channels",
            Self::MlpSmall => "two linear maps and GELU through twice the channels",
            Self::Mlp => "two linear maps and GELU through four times the channels",
            Self::FlexAttention => "causal self-attention over the last 64 positions, 4 heads",
        }
    }

    fn param_count(&self, dim: i64) -> u64 {
        match (self, self.maps(dim)) {
            (_, Some(Maps { hidden, is_mlp: false })) => (2 * dim * hidden) as u64,
            (_, Some(Maps { hidden, is_mlp: true })) => (2 * dim * hidden + hidden + dim) as u64,
            (Self::Norm, None) => (2 * dim + 1) as u64,
            (Self::Attention | Self::FlexAttention, None) => CausalAttention::param_count(dim),
            (_, None) => 0,
        }
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let mut params = ParamSet::new(backend);
        if let Some(maps) = self.maps(dim) {
            return Ok(Box::new(TwoMaps::new(maps, dim, params, rng)?));
        }
        Ok(match self {
            Self::Norm => Box::new(TokenNorm::new(dim, params, rng)?),
            Self::Attention | Self::FlexAttention if dim % HEADS != 0 => {
                return Err(BlueprintError::Unfit {
                    id: self.id(),
                    dim,
                    why: format!("its {HEADS} heads need a multiple of {HEADS} channels"),
                });
            }
            Self::Attention | Self::FlexAttention => {
                let reach = match self {
                    Self::FlexAttention => Reach::Window(WINDOW),
                    _ => Reach::All,
                };
                let fan_in = Init::FanIn(dim);
                let init = AttentionInit {
                    weight: fan_in,
                    bias: fan_in,
                    out: Init::Constant(0.0),
                };
                let attention = CausalAttention::new(&mut params, "attention", (dim, HEADS), init, (reach, None))?;
                params.initialise(rng)?;
                Box::new(AttentionSeed { dim, attention, params })
            }
            _ => Box::new(Noop { params }),
        })
    }
}

/// `norm`: δ(x) = tanh(s)·(LN(x) − x), the scalar s starting at 0.
struct TokenNorm {
    strength: Tensor,
    norm: LayerNorm,
    params: ParamSet,
}

impl TokenNorm {
    fn new(dim: i64, mut params: ParamSet, rng: &mut RunRng) -> Result<Self, TchError> {
        let strength = params.add("strength", &[1], Init::Constant(0.0))?;
        let norm = LayerNorm::new(&mut params, "norm", dim)?;
        params.initialise(rng)?;
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

    fn macs(&self, _: u64) -> u64 {
        0
    }
}

/// `lora`: δ(x) = U·D·x (Hu et al. 2021, arXiv:2106.09685), and `mlp`: δ(x) = W₂·gelu(W₁·x + b₁) + b₂. What leads out starts
/// at 0.
struct TwoMaps {
    down: Linear,
    up: Linear,
    is_mlp: bool,
    params: ParamSet,
}

impl TwoMaps {
    fn new(maps: Maps, dim: i64, mut params: ParamSet, rng: &mut RunRng) -> Result<Self, TchError> {
        let Maps { hidden, is_mlp } = maps;
        let bias = |init| is_mlp.then_some(init);
        let (fan_in, zero) = (Init::FanIn(dim), Init::Constant(0.0));
        let down = Linear::new(&mut params, "in", [dim, hidden], fan_in, bias(fan_in))?;
        let up = Linear::new(&mut params, "out", [hidden, dim], zero, bias(zero))?;
        params.initialise(rng)?;
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

    fn macs(&self, positions: u64) -> u64 {
        let weights = self.params.trainable().iter().filter(|param| param.tensor.dim() == 2);
        weights.map(|weight| weight.tensor.numel() as u64).sum::<u64>() * positions
    }
}

/// `attention` and `flex_attention`: δ(x) = W·softmax(q·kᵀ)·v over the positions in reach, W starting at 0.
struct AttentionSeed {
    dim: i64,
    attention: CausalAttention,
    params: ParamSet,
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
