//! GroupNorm as every seed uses it, and the seed that is nothing but a norm.

use tch::{TchError, Tensor};

use crate::random::RunRng;
use crate::seed::SeedModule;
use crate::torch::{Backend, GroupNormOf, Init, Mode, NORM_EPS, ParamSet, is_served, norm_residual};

/// Number of groups for `channels`: as many as leave at least 16 channels in each.
pub(super) fn groups(channels: i64) -> i64 {
    [32, 16, 8, 4, 2]
        .into_iter()
        .find(|groups| channels % groups == 0 && channels / groups >= 16)
        .unwrap_or(1)
}

/// A GroupNorm layer; a weight of 0 at birth silences what it normalises.
pub(super) struct GroupNorm {
    groups: i64,
    weight: Tensor,
    bias: Tensor,
}

impl GroupNorm {
    pub(super) fn new(params: &mut ParamSet, name: &str, channels: i64, weight: f32) -> Result<Self, TchError> {
        Ok(Self {
            groups: groups(channels),
            weight: params.add(format!("{name}.weight"), &[channels], Init::Constant(weight))?,
            bias: params.add(format!("{name}.bias"), &[channels], Init::Constant(0.0))?,
        })
    }

    /// As the engine's own kernels want it.
    pub(super) fn for_kernels(&self) -> GroupNormOf<'_> {
        GroupNormOf {
            scale: &self.weight,
            shift: &self.bias,
            groups: self.groups,
            epsilon: NORM_EPS,
        }
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        // libtorch's channels-last kernel vectorises over channels and is many times slower with fewer than this.
        const FEW_CHANNELS: i64 = 8;
        if self.weight.size1()? < FEW_CHANNELS {
            return self.over_whole_sample(x);
        }
        x.f_group_norm(self.groups, Some(&self.weight), Some(&self.bias), NORM_EPS, true)
    }

    /// [`forward`](Self::forward) for a module's own input, which is often detached: libtorch 2.11's channels-last
    /// backward of a GroupNorm with weights crashes on an input that needs no gradient.
    fn forward_on_input(&self, x: &Tensor) -> Result<Tensor, TchError> {
        if self.groups == 1 {
            return self.over_whole_sample(x);
        }
        let normalised = x.f_group_norm(self.groups, None::<&Tensor>, None, NORM_EPS, true)?;
        let per_channel = |tensor: &Tensor| tensor.f_view([-1, 1, 1]);
        per_channel(&self.bias)?.f_addcmul(&normalised, &per_channel(&self.weight)?)
    }

    /// One group is a layer norm over the sample as it lies in memory, with the weights repeated at each position.
    fn over_whole_sample(&self, x: &Tensor) -> Result<Tensor, TchError> {
        let (_, channels, height, width) = x.size4()?;
        let sample = [height, width, channels];
        let repeat = |tensor: &Tensor| tensor.f_expand(sample, false)?.f_reshape(sample);
        x.f_permute([0, 2, 3, 1])?
            .f_layer_norm(
                sample,
                Some(&repeat(&self.weight)?),
                Some(&repeat(&self.bias)?),
                NORM_EPS,
                true,
            )?
            .f_permute([0, 3, 1, 2])
    }
}

/// `norm`: δ(x) = tanh(s)·(GN(x) − x), the scalar s starting at 0.
pub(super) struct NormModule {
    strength: Tensor,
    norm: GroupNorm,
    params: ParamSet,
}

impl NormModule {
    pub(super) const fn param_count(dim: i64) -> u64 {
        (2 * dim + 1) as u64
    }

    pub(super) fn new(dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Self, TchError> {
        let mut params = ParamSet::new(backend);
        let strength = params.add("strength", &[1], Init::Constant(0.0))?;
        let norm = GroupNorm::new(&mut params, "norm", dim, 1.0)?;
        params.initialise(rng)?;
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

    fn macs(&self, _: u64) -> u64 {
        0
    }
}
