//! `attention`: channel attention by squeeze and excitation, δ(x) = x·tanh(W₂·silu(W₁·mean(x)) + b₂)
//! (Hu, Shen and Sun 2018, arXiv:1709.01507).
//!
//! The full output is x·(1 + tanh z): a gate in (0, 2) that is exactly 1 at initialisation with slope 1.

use tch::{Kind, TchError, Tensor};

use super::seed_init::{factor_to_unit, leading_directions, turn_rows};
use crate::kernels::{is_served, squeeze_excite};
use crate::nn::{Init, Mode, ParamSet, spatial_mean};
use crate::scenario::SeedInit;
use crate::seed::{InitBatch, SeedModule};
use crate::torch::{NoGrad, TorchError};

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

    /// Gives the hidden channels a mean square of 1.
    fn normalise_squeeze(&self, x: &Tensor) -> Result<(), TchError> {
        let hidden = spatial_mean(x)?.f_linear(&self.squeeze, None::<&Tensor>)?;
        self.squeeze.shallow_clone().f_mul_(&factor_to_unit(&hidden)?).map(drop)
    }

    /// Turns the rows of W₁ along the directions that give W₂, which starts at 0, the largest first gradient.
    ///
    /// With g the gradient of the slot's output, m the spatial mean and q = Σ g·x over positions, the gradient of W₂ is
    /// Σ q·silu(W₁·m)ᵀ over samples, to first order ½·M·W₁ᵀ with M = Σ q·mᵀ. Among orthogonal rows of given norm its
    /// norm is largest for the leading right singular vectors of M: GradMax (Evci et al. 2022, arXiv:2201.05125).
    fn turn_squeeze(&self, seed_init: &InitBatch) -> Result<(), TchError> {
        let mean = spatial_mean(&seed_init.features)?;
        let wanted = seed_init.features.f_mul(&seed_init.gradient)?;
        let wanted = wanted.f_sum_dim_intlist([2_i64, 3].as_slice(), false, Kind::Float)?;
        let matrix = wanted.f_transpose(0, 1)?.f_matmul(&mean)?;
        let forward = mean.f_mean_dim([0_i64].as_slice(), false, Kind::Float)?;
        turn_rows(
            &self.squeeze,
            &leading_directions(&matrix, self.squeeze.size2()?.0, &forward)?,
        )
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

    fn adapt(&self, init: SeedInit, seed_init: &InitBatch) -> Result<(), TorchError> {
        let _no_grad = NoGrad::new();
        match init {
            SeedInit::ZeroGain | SeedInit::ZeroOutput => Ok(()),
            SeedInit::Gradmax => Ok(self.turn_squeeze(seed_init)?),
            SeedInit::Statistics => Ok(self.normalise_squeeze(&seed_init.features)?),
        }
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, _: u64) -> u64 {
        (self.squeeze.numel() + self.excite.numel()) as u64
    }
}
