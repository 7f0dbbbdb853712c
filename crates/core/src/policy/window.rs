//! A core that looks back on the last steps: attention over a window in the place of a recurrent memory. Its state is what it
//! has seen, so that it decides online, step by step, as in training on whole sequences.

use tch::{Kind, TchError, Tensor};

use super::cores::{CoreOutput, NetCore};
use super::recurrent::Packing;
use super::trainable::RecurrentState;
use crate::nn::{Init, LayerNorm, Linear, ParamSet};
use crate::scenario::NetConfig;

/// Steps that a decision looks back on, its own included.
const WINDOW: i64 = 16;
/// Heads of the attention.
const HEADS: i64 = 2;
/// Score of a place in which nothing was seen.
const UNSEEN: f64 = -1.0e4;

/// `x ← x + LayerNorm(attention of x to the last 16 x)`, with a learned score for how long ago a step was (Vaswani et al. 2017;
/// relative positions: Shaw et al. 2018).
#[derive(Debug)]
pub struct WindowCore {
    width: i64,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    /// `[HEADS, WINDOW]`, the current step last.
    ages: Tensor,
    norm: LayerNorm,
}

impl WindowCore {
    /// A core as wide as the features.
    ///
    /// # Errors
    /// libtorch's.
    pub fn new(config: &NetConfig, params: &mut ParamSet) -> Result<Self, TchError> {
        let width = config.hidden_dim as i64;
        let mut linear = |part: &str| {
            let name = format!("core.window.{part}");
            Linear::new(
                params,
                &name,
                [width, width],
                Init::Orthogonal(1.0),
                Some(Init::Constant(0.0)),
            )
        };
        Ok(Self {
            width,
            query: linear("query")?,
            key: linear("key")?,
            value: linear("value")?,
            output: linear("output")?,
            ages: params.add("core.window.ages", &[HEADS, WINDOW], Init::Constant(0.0))?,
            norm: LayerNorm::new(params, "core.window.ln", width)?,
        })
    }

    /// Attends from `x [B, T, H]` to `seen [B, WINDOW + T, H]`, whose last T steps are `x`.
    /// `known [B, WINDOW + T, 1]` is 0 where nothing was seen.
    fn attend(&self, x: &Tensor, seen: &Tensor, known: &Tensor) -> Result<Tensor, TchError> {
        let size = self.width / HEADS;
        // The window that ends with each step: `[B, T, C, WINDOW]`.
        let windows = |of: &Tensor| of.f_narrow(1, 1, of.size()[1] - 1)?.f_unfold(1, WINDOW, 1);
        let by_head = |of: Tensor| windows(&of)?.f_unflatten(2, [HEADS, size]);
        let (key, value) = (by_head(self.key.forward(seen)?)?, by_head(self.value.forward(seen)?)?);
        let query = self.query.forward(x)?.f_unflatten(2, [HEADS, size])?.f_unsqueeze(-1)?;
        let products = (query * key).f_sum_dim_intlist(-2, false, Kind::Float)?;
        let scores = products / (size as f64).sqrt() + &self.ages;
        let weights = scores
            .f_where_scalarother(&windows(known)?.gt(0.0), UNSEEN)?
            .f_softmax(-1, Kind::Float)?;
        let mixed = (value * weights.f_unsqueeze(-2)?).f_sum_dim_intlist(-1, false, Kind::Float)?;
        self.output.forward(&mixed.f_flatten(-2, -1)?)
    }
}

impl NetCore for WindowCore {
    /// The features that were seen, and 1 where something was seen.
    fn state_shapes(&self, rows: i64) -> Vec<[i64; 3]> {
        vec![[WINDOW, rows, self.width], [WINDOW, rows, 1]]
    }

    fn forward(&self, x: &Tensor, state: &RecurrentState, packing: Option<&Packing>) -> Result<CoreOutput, TchError> {
        let x = packing.map_or_else(|| x.shallow_clone(), |packing| packing.unpack(x));
        let (rows, steps, _) = x.size3()?;
        let now = [
            x.to_kind(Kind::Float),
            Tensor::ones([rows, steps, 1], (Kind::Float, x.device())),
        ];
        let with_earlier = |(earlier, now): (&Tensor, &Tensor)| Tensor::f_cat(&[&earlier.transpose(0, 1), now], 1);
        let seen: Vec<Tensor> = state.0.iter().zip(&now).map(with_earlier).collect::<Result<_, _>>()?;
        let y = &x + self.norm.forward(&self.attend(&x, &seen[0], &seen[1])?)?;

        // The window that ends with the last step of each row.
        let whole = || Tensor::full([rows], steps, (Kind::Int64, x.device()));
        let lengths = packing.map_or_else(whole, |packing| packing.lengths.shallow_clone());
        let places = lengths.unsqueeze(-1) + Tensor::arange(WINDOW, (Kind::Int64, x.device()));
        let last = |seen: &Tensor| {
            let places = places.unsqueeze(-1).f_expand([rows, WINDOW, seen.size()[2]], false)?;
            Ok(seen.f_gather(1, &places, false)?.transpose(0, 1))
        };
        let after = seen.iter().map(last).collect::<Result<_, TchError>>()?;
        Ok((
            packing.map_or_else(|| y.shallow_clone(), |packing| packing.pack(&y)),
            RecurrentState(after),
        ))
    }
}
