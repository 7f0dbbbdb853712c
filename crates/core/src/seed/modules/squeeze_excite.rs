//! `attention`: channel attention by squeeze and excitation, δ(x) = x·tanh(W₂·silu(W₁·mean(x)) + b₂)
//! (Hu, Shen and Sun 2018, arXiv:1709.01507).
//!
//! The full output is x·(1 + tanh z): a gate in (0, 2) that is exactly 1 at initialisation with slope 1.

use tch::{TchError, Tensor};

use crate::kernels::{is_served, squeeze_excite};
use crate::nn::{Init, Mode, ParamSet, spatial_mean};
use crate::seed::SeedModule;

pub(super) struct SqueezeExcite {
    squeeze: Tensor,
    excite: Tensor,
    bias: Tensor,
    params: ParamSet,
}

impl SqueezeExcite {
    pub(super) fn new(dim: i64, hidden: i64, mut params: ParamSet) -> Result<Self, TchError> {
        let squeeze = params.add("squeeze.weight", &[hidden, dim], Init::FanIn(dim))?;
        let excite = params.add("excite.weight", &[dim, hidden], Init::Constant(0.0))?;
        let bias = params.add("excite.bias", &[dim], Init::Constant(0.0))?;
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
