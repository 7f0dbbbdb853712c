//! The seed that consists of a norm: group norm for images and layer norm for texts.

use tch::{TchError, Tensor};

use crate::growth::Topology;
use crate::kernels::{is_served, norm_residual};
use crate::nn::{GroupNormLayer, Init, LayerNorm, Mode, ParamSet};
use crate::seed::SeedModule;

/// `norm`: δ(x) = tanh(s)·(norm(x) − x), the scalar s starting at 0.
pub(super) struct NormModule {
    strength: Tensor,
    norm: Norm,
    params: ParamSet,
}

enum Norm {
    Group(GroupNormLayer),
    Layer(LayerNorm),
}

impl NormModule {
    pub(super) fn new(topology: Topology, dim: i64, mut params: ParamSet) -> Result<Self, TchError> {
        let strength = params.add("strength", &[1], Init::Constant(0.0))?;
        let norm = match topology {
            Topology::Image => Norm::Group(GroupNormLayer::new(&mut params, "norm", dim, 1.0)?),
            Topology::Tokens => Norm::Layer(LayerNorm::new(&mut params, "norm", dim)?),
        };
        Ok(Self { strength, norm, params })
    }
}

impl SeedModule for NormModule {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        let normalised = match &self.norm {
            Norm::Group(norm) if self.params.backend().uses_own_kernels() && is_served(x) => {
                return norm_residual(x, norm.for_kernels(), &self.strength).map(Some);
            }
            Norm::Group(norm) => norm.forward_on_input(x)?,
            Norm::Layer(norm) => norm.forward(x)?,
        };
        Ok(Some(normalised.f_sub(x)?.f_mul(&self.strength.f_tanh()?)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }
}
