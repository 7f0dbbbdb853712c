//! `attention`: channel attention by squeeze and excitation, δ(x) = x·tanh(W₂·silu(W₁·mean(x)) + b₂)
//! (Hu, Shen and Sun 2018, arXiv:1709.01507).
//!
//! The full output is x·(1 + tanh z): a gate in (0, 2) that is exactly 1 at birth with slope 1.

use tch::{TchError, Tensor};

use crate::random::RunRng;
use crate::seed::SeedModule;
use crate::torch::{Backend, Init, Mode, ParamSet, is_served, spatial_mean, squeeze_excite};

const REDUCTION: i64 = 4;

const fn hidden(dim: i64) -> i64 {
    let reduced = dim / REDUCTION;
    if reduced < 1 { 1 } else { reduced }
}

pub(super) struct SqueezeExcite {
    squeeze: Tensor,
    excite: Tensor,
    bias: Tensor,
    params: ParamSet,
}

impl SqueezeExcite {
    pub(super) const fn param_count(dim: i64) -> u64 {
        (2 * dim * hidden(dim) + dim) as u64
    }

    pub(super) fn new(dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Self, TchError> {
        let mut params = ParamSet::new(backend);
        let squeeze = params.add("squeeze.weight", &[hidden(dim), dim], Init::FanIn(dim))?;
        let excite = params.add("excite.weight", &[dim, hidden(dim)], Init::Constant(0.0))?;
        let bias = params.add("excite.bias", &[dim], Init::Constant(0.0))?;
        params.initialise(rng)?;
        Ok(Self {
            squeeze,
            excite,
            bias,
            params,
        })
    }
}

impl SeedModule for SqueezeExcite {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        if self.params.backend().uses_own_kernels() && is_served(x) {
            return squeeze_excite(x, &self.squeeze, &self.excite, &self.bias).map(Some);
        }
        let (batch, channels, ..) = x.size4()?;
        let gate = spatial_mean(x)?
            .f_linear(&self.squeeze, None::<&Tensor>)?
            .f_silu()?
            .f_linear(&self.excite, Some(&self.bias))?
            .f_tanh()?
            .f_view([batch, channels, 1, 1])?;
        Ok(Some(x.f_mul(&gate)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, _: u64) -> u64 {
        (self.squeeze.numel() + self.excite.numel()) as u64
    }
}
