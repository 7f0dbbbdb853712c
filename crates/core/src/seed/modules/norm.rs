//! The seed that is nothing but a norm.

use tch::{TchError, Tensor};

use crate::kernels::{is_served, norm_residual};
use crate::nn::{GroupNormLayer, Init, Mode, ParamSet};
use crate::seed::SeedModule;

/// `norm`: δ(x) = tanh(s)·(GN(x) − x), the scalar s starting at 0.
pub(super) struct NormModule {
    strength: Tensor,
    norm: GroupNormLayer,
    params: ParamSet,
}

impl NormModule {
    pub(super) fn new(dim: i64, mut params: ParamSet) -> Result<Self, TchError> {
        let strength = params.add("strength", &[1], Init::Constant(0.0))?;
        let norm = GroupNormLayer::new(&mut params, "norm", dim, 1.0)?;
        Ok(Self { strength, norm, params })
    }
}

impl SeedModule for NormModule {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        if self.params.backend().uses_own_kernels() && is_served(x) {
            return norm_residual(x, self.norm.for_kernels(), &self.strength).map(Some);
        }
        let change = self.norm.forward_on_input(x)?.f_sub(x)?;
        Ok(Some(change.f_mul(&self.strength.f_tanh()?)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }
}
