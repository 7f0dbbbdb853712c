//! Causal self-attention of texts, for hosts and seeds: scaled dot products by libtorch's fused kernel (Vaswani et al. 2017,
//! arXiv:1706.03762), over all positions so far or a window of them, with rotary positions or without.

use std::cell::RefCell;

use tch::{Device, Kind, TchError, Tensor};

use super::{Init, Linear, ParamSet};

/// The initial values of the two maps of an attention.
#[derive(Clone, Copy, Debug)]
pub struct AttentionInit {
    /// Weights of queries, keys and values.
    pub weight: Init,
    /// Biases of queries, keys and values.
    pub bias: Init,
    /// Weights of the map back.
    pub out: Init,
}

/// The positions that a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All positions up to its own.
    All,
    /// This number of positions up to its own, at least 1.
    Window(i64),
}

/// `x + W·softmax(q·kᵀ/√(d/heads))·v` without the `x`: `[B, T, d]` to the same, position t from positions up to t.
#[derive(Debug)]
pub struct CausalAttention {
    qkv: Linear,
    out: Linear,
    heads: i64,
    reach: Reach,
    rotary: Option<Rotary>,
    /// The last window that was laid out. One thread at a time runs the attention.
    mask: RefCell<Option<Tensor>>,
}

impl CausalAttention {
    /// Number of trainable values.
    pub const fn param_count(dim: i64) -> u64 {
        (4 * dim * dim + 4 * dim) as u64
    }

    /// Multiply-accumulates of a text of `tokens` tokens: the maps, then both products of every pair of positions.
    pub const fn macs(dim: i64, tokens: u64) -> u64 {
        let dim = dim as u64;
        (4 * dim * dim + 2 * tokens * dim) * tokens
    }

    /// Adds `{name}.qkv` and `{name}.out`. `dim` is a multiple of `heads`; with [`Rotary`] an even one.
    ///
    /// # Errors
    /// libtorch's, when memory runs out.
    pub fn new(
        params: &mut ParamSet,
        name: &str,
        (dim, heads): (i64, i64),
        init: AttentionInit,
        (reach, rotary): (Reach, Option<Rotary>),
    ) -> Result<Self, TchError> {
        let (qkv, out) = (format!("{name}.qkv"), format!("{name}.out"));
        Ok(Self {
            qkv: Linear::new(params, &qkv, [dim, 3 * dim], init.weight, Some(init.bias))?,
            out: Linear::new(params, &out, [dim, dim], init.out, Some(Init::Constant(0.0)))?,
            heads,
            reach,
            rotary,
            mask: RefCell::new(None),
        })
    }

    /// `[B, T, d]` to the same.
    ///
    /// # Errors
    /// libtorch's, where shapes do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        let (batch, tokens, dim) = x.size3()?;
        let qkv = self
            .qkv
            .forward(x)?
            .f_view([batch, tokens, 3, self.heads, dim / self.heads])?
            .f_permute([2, 0, 3, 1, 4])?;
        let (mut q, mut k, v) = (qkv.f_get(0)?, qkv.f_get(1)?, qkv.f_get(2)?);
        if let Some(rotary) = &self.rotary {
            (q, k) = (rotary.turn(&q)?, rotary.turn(&k)?);
        }
        let mask = self.mask(tokens, x.device())?;
        let is_causal = mask.is_none();
        let seen = Tensor::f_scaled_dot_product_attention(&q, &k, &v, mask.as_ref(), 0.0, is_causal, None, false)?;
        self.out
            .forward(&seen.f_transpose(1, 2)?.f_reshape([batch, tokens, dim])?)
    }

    /// Positions that each query sees, `bool [T, T]`; `None` where they are all up to its own, since the kernel makes that mask
    /// itself.
    fn mask(&self, tokens: i64, device: Device) -> Result<Option<Tensor>, TchError> {
        let Reach::Window(width) = self.reach else {
            return Ok(None);
        };
        if tokens <= width {
            return Ok(None);
        }
        let mut kept = self.mask.borrow_mut();
        let fits = |mask: &Tensor| mask.size() == [tokens, tokens] && mask.device() == device;
        if !kept.as_ref().is_some_and(fits) {
            let ones = Tensor::f_ones([tokens, tokens], (Kind::Bool, device))?;
            *kept = Some(ones.f_tril(0)?.f_triu(1 - width)?);
        }
        Ok(kept.as_ref().map(Tensor::shallow_clone))
    }
}

/// Positions as rotations of queries and keys, so that products depend only on distances (Su et al. 2021,
/// arXiv:2104.09864). Pairs are the two halves of a head.
#[derive(Debug)]
pub struct Rotary {
    /// `f32 [positions, d/heads/2]`.
    cos: Tensor,
    sin: Tensor,
}

impl Rotary {
    /// Rotations for up to `positions` tokens and heads of `channels` channels, an even number.
    ///
    /// # Errors
    /// libtorch's, when memory runs out.
    pub fn new(positions: i64, channels: i64, device: Device) -> Result<Self, TchError> {
        /// Slowest turn, in radians a position: 1/BASE.
        const BASE: f64 = 10_000.0;
        let pairs = channels / 2;
        let turns = (0..positions).flat_map(|position| {
            (0..pairs).map(move |pair| position as f64 * BASE.powf(-(pair as f64) / pairs as f64))
        });
        let angles: Vec<f64> = turns.collect();
        let table = |of: fn(f64) -> f64| {
            let values: Vec<f32> = angles.iter().map(|&angle| of(angle) as f32).collect();
            Tensor::f_from_slice(&values)?
                .f_view([positions, pairs])?
                .f_to_device(device)
        };
        Ok(Self {
            cos: table(f64::cos)?,
            sin: table(f64::sin)?,
        })
    }

    /// `[B, heads, T, channels]` turned by position.
    fn turn(&self, x: &Tensor) -> Result<Tensor, TchError> {
        let (_, _, tokens, channels) = x.size4()?;
        let table = |table: &Tensor| table.f_narrow(0, 0, tokens)?.f_to_kind(x.kind());
        let (cos, sin) = (table(&self.cos)?, table(&self.sin)?);
        let (first, second) = (
            x.f_narrow(3, 0, channels / 2)?,
            x.f_narrow(3, channels / 2, channels / 2)?,
        );
        let turned = [
            first.f_mul(&cos)?.f_sub(&second.f_mul(&sin)?)?,
            second.f_mul(&cos)?.f_add(&first.f_mul(&sin)?)?,
        ];
        Tensor::f_cat(&turned, 3)
    }
}

#[cfg(test)]
mod tests;
