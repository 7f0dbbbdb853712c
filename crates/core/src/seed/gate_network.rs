//! The gate of the Gate operator: one value in (0, 1) per image, or per token of a text, learned with the seed.

use tch::{TchError, Tensor};

use crate::growth::Topology;
use crate::nn::{Init, ParamSet, spatial_mean};
use crate::random::RunRng;
use crate::torch::Backend;

/// g = sigmoid(W₂·relu(W₁·mean(x) + b₁) + b₂); W₂ and b₂ start at 0, so g is exactly 0.5 at initialisation. The mean is over the
/// positions of an image; for a token it is the token itself, as later tokens must not be seen.
pub struct GateNetwork {
    hidden_weight: Tensor,
    hidden_bias: Tensor,
    output_weight: Tensor,
    output_bias: Tensor,
    params: ParamSet,
    topology: Topology,
}

impl GateNetwork {
    const fn hidden(dim: i64) -> i64 {
        let reduced = dim / 4;
        if reduced < 8 { 8 } else { reduced }
    }

    /// Trainable values of a gate over `dim` channels.
    pub const fn param_count(dim: i64) -> u64 {
        let hidden = Self::hidden(dim);
        (dim * hidden + 2 * hidden + 1) as u64
    }

    /// A gate over `dim` channels of such features, its weights drawn from `rng`.
    pub fn new(topology: Topology, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Self, TchError> {
        let gate = Self::over(topology, dim, ParamSet::new(backend))?;
        gate.params.initialise(rng)?;
        Ok(gate)
    }

    /// A gate network with the tensors of `params`, and their values.
    pub fn over(topology: Topology, dim: i64, mut params: ParamSet) -> Result<Self, TchError> {
        let hidden = Self::hidden(dim);
        let hidden_weight = params.add("gate.hidden.weight", &[hidden, dim], Init::FanIn(dim))?;
        let hidden_bias = params.add("gate.hidden.bias", &[hidden], Init::FanIn(dim))?;
        let output_weight = params.add("gate.output.weight", &[1, hidden], Init::Constant(0.0))?;
        let output_bias = params.add("gate.output.bias", &[1], Init::Constant(0.0))?;
        Ok(Self {
            hidden_weight,
            hidden_bias,
            output_weight,
            output_bias,
            params,
            topology,
        })
    }

    /// `[B, C, H, W]` to `[B, 1, 1, 1]`, `[B, T, C]` to `[B, T, 1]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        match self.topology {
            Topology::Image => self.gate(&spatial_mean(x)?)?.f_view([-1, 1, 1, 1]),
            Topology::Tokens => self.gate(x),
        }
    }

    /// `[.., C]` to `[.., 1]`.
    fn gate(&self, features: &Tensor) -> Result<Tensor, TchError> {
        features
            .f_linear(&self.hidden_weight, Some(&self.hidden_bias))?
            .f_relu()?
            .f_linear(&self.output_weight, Some(&self.output_bias))?
            .f_sigmoid()
    }

    /// Every tensor of the gate.
    pub fn params(&self) -> &ParamSet {
        &self.params
    }

    /// Multiply-accumulates per sample over `positions` spatial positions, or tokens.
    pub fn macs(&self, positions: u64) -> u64 {
        let dim = self.hidden_weight.size().last().copied().unwrap_or(0);
        Self::macs_of(self.topology, dim, positions)
    }

    /// Multiply-accumulates of a gate over `dim` channels.
    pub const fn macs_of(topology: Topology, dim: i64, positions: u64) -> u64 {
        let once = ((dim + 1) * Self::hidden(dim)) as u64;
        match topology {
            Topology::Image => once,
            Topology::Tokens => once.saturating_mul(positions),
        }
    }
}
