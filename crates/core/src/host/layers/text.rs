//! Layers of a decoder-only language model: embedding, pre-norm block, tied head (Radford et al. 2019, GPT-2).

use tch::Tensor;

use crate::graph::LayerGraph;
use crate::host::{Features, HostError, Layer, LayerDesign};
use crate::nn::{AttentionInit, CausalAttention, Init, LayerNorm, Linear, Mode, ParamSet, Reach, Rotary};
use crate::scenario::Positions;

/// Deviation of weights and embeddings, as in GPT-2. Logits of the tied head are small then, and the first loss is that of
/// guessing.
const DEVIATION: f64 = 0.02;

/// Token ids `[B, T]`, integers in `0..vocab`, to features `[B, T, width]`; with learned positions these are added.
///
/// Its weight is also that of the [`TextHead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// Channels of the features.
    pub width: i64,
    /// The encoding of positions.
    pub positions: Positions,
}

impl LayerDesign for Embedding {
    fn output(&self, input: Features) -> Features {
        Features {
            channels: self.width,
            ..input
        }
    }

    fn parameters(&self, input: Features) -> u64 {
        let rows = match self.positions {
            Positions::Learned => input.channels + input.side,
            Positions::Rotary => input.channels,
        };
        (rows * self.width) as u64
    }

    fn macs(&self, _: Features) -> u64 {
        0
    }

    fn graph(&self, input: Features) -> LayerGraph {
        LayerGraph::Embedding {
            vocab: input.channels,
            width: self.width,
            block: input.side,
            positions: self.positions,
        }
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let init = Init::Normal(DEVIATION);
        let tokens = params.add(format!("{name}.tokens"), &[input.channels, self.width], init)?;
        let positions = match self.positions {
            Positions::Learned => Some(params.add(format!("{name}.positions"), &[input.side, self.width], init)?),
            Positions::Rotary => None,
        };
        Ok(Box::new(EmbeddingLayer {
            tokens,
            positions,
            block: input.side,
        }))
    }
}

struct EmbeddingLayer {
    tokens: Tensor,
    positions: Option<Tensor>,
    /// Most tokens at a time.
    block: i64,
}

impl Layer for EmbeddingLayer {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        let (_, tokens) = x.size2()?;
        if tokens > self.block {
            let block = self.block;
            return Err(HostError::TextTooLong { tokens, block });
        }
        let features = Tensor::f_embedding(&self.tokens, x, -1, false, false)?;
        Ok(match &self.positions {
            Some(positions) => features.f_add(&positions.f_narrow(0, 0, tokens)?)?,
            None => features,
        })
    }
}

/// `x += attention(norm(x)); x += mlp(norm(x))`, the second over four times the channels with exact GELU. `[B, T, d]` to the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextBlock {
    /// Number of heads of the attention, a divisor of the channels.
    pub heads: i64,
    /// The encoding of positions.
    pub positions: Positions,
    /// Blocks of the network: what two maps of each add to the features starts the smaller the more there are.
    pub depth: usize,
}

/// Channels between the two maps of a block, in multiples of the block's.
const EXPANSION: i64 = 4;

impl LayerDesign for TextBlock {
    fn output(&self, input: Features) -> Features {
        input
    }

    fn parameters(&self, Features { channels: d, .. }: Features) -> u64 {
        let mlp = 2 * EXPANSION * d * d + EXPANSION * d + d;
        CausalAttention::param_count(d) + (mlp + 4 * d) as u64
    }

    fn macs(&self, Features { channels, side }: Features) -> u64 {
        let mlp = 2 * EXPANSION * channels * channels * side;
        CausalAttention::macs(channels, side as u64) + mlp as u64
    }

    fn graph(&self, input: Features) -> LayerGraph {
        LayerGraph::Text {
            width: input.channels,
            heads: self.heads,
            block: input.side,
            positions: self.positions,
        }
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let (dim, zero) = (input.channels, Init::Constant(0.0));
        let (weight, out) = (
            Init::Normal(DEVIATION),
            Init::Normal(DEVIATION / (2.0 * self.depth as f64).sqrt()),
        );
        let rotary = match self.positions {
            Positions::Learned => None,
            Positions::Rotary => Some(Rotary::new(input.side, dim / self.heads, params.device())?),
        };
        let init = AttentionInit {
            weight,
            bias: zero,
            out,
        };
        let part = |part: &str| format!("{name}.{part}");
        Ok(Box::new(TextBlockLayer {
            first_norm: LayerNorm::new(params, &part("norm1"), dim)?,
            attention: CausalAttention::new(
                params,
                &part("attention"),
                (dim, self.heads),
                init,
                (Reach::All, rotary),
            )?,
            second_norm: LayerNorm::new(params, &part("norm2"), dim)?,
            up: Linear::new(params, &part("up"), [dim, EXPANSION * dim], weight, Some(zero))?,
            down: Linear::new(params, &part("down"), [EXPANSION * dim, dim], out, Some(zero))?,
        }))
    }
}

struct TextBlockLayer {
    first_norm: LayerNorm,
    attention: CausalAttention,
    second_norm: LayerNorm,
    up: Linear,
    down: Linear,
}

impl Layer for TextBlockLayer {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        let x = x.f_add(&self.attention.forward(&self.first_norm.forward(x)?)?)?;
        let hidden = self.up.forward(&self.second_norm.forward(&x)?)?.f_gelu("none")?;
        Ok(x.f_add(&self.down.forward(&hidden)?)?)
    }
}

/// A norm, then logits by the weight of the [`Embedding`] that the line begins with (Press & Wolf 2017,
/// arXiv:1608.05859): `[B, T, d]` to `[B, T, vocab]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextHead {
    /// Different tokens.
    pub vocab: i64,
    /// Name of the op that embeds.
    pub embedding: String,
}

impl LayerDesign for TextHead {
    fn output(&self, input: Features) -> Features {
        Features {
            channels: self.vocab,
            ..input
        }
    }

    fn parameters(&self, input: Features) -> u64 {
        2 * input.channels as u64
    }

    fn macs(&self, Features { channels, side }: Features) -> u64 {
        (channels * self.vocab * side) as u64
    }

    fn graph(&self, input: Features) -> LayerGraph {
        LayerGraph::TextHead {
            width: input.channels,
            vocab: self.vocab,
            embedding: self.embedding.clone(),
        }
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let tied = format!("{}.tokens", self.embedding);
        let weight = params.all().find(|param| param.name == tied);
        let Some(weight) = weight.map(|param| param.tensor.shallow_clone()) else {
            let message = format!("op {name} uses the weight {tied}, which no earlier op has");
            return Err(HostError::Broken(message));
        };
        Ok(Box::new(TextHeadLayer {
            norm: LayerNorm::new(params, &format!("{name}.norm"), input.channels)?,
            weight,
        }))
    }
}

struct TextHeadLayer {
    norm: LayerNorm,
    weight: Tensor,
}

impl Layer for TextHeadLayer {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        let features = self.norm.forward(x)?;
        Ok(features.f_linear(&self.weight, None::<&Tensor>)?)
    }
}
