//! Group norm (Wu & He 2018, arXiv:1803.08494) as hosts and seeds use it.

use tch::{TchError, Tensor};

use super::{Init, NORM_EPS, ParamSet};
use crate::kernels::GroupNormOf;

/// Number of groups for `channels`: as many as leave at least 16 channels in each.
pub fn group_count(channels: i64) -> i64 {
    [32, 16, 8, 4, 2]
        .into_iter()
        .find(|groups| channels % groups == 0 && channels / groups >= 16)
        .unwrap_or(1)
}

/// A GroupNorm layer; a weight of 0 at initialisation silences what it normalises.
#[derive(Debug)]
pub struct GroupNormLayer {
    groups: i64,
    weight: Tensor,
    bias: Tensor,
}

impl GroupNormLayer {
    /// Adds `{name}.weight`, which starts at `weight`, and `{name}.bias`, which starts at 0, to `params`.
    ///
    /// # Errors
    /// Libtorch's, when memory runs out.
    pub fn new(params: &mut ParamSet, name: &str, channels: i64, weight: f32) -> Result<Self, TchError> {
        Ok(Self {
            groups: group_count(channels),
            weight: params.add(format!("{name}.weight"), &[channels], Init::Constant(weight))?,
            bias: params.add(format!("{name}.bias"), &[channels], Init::Constant(0.0))?,
        })
    }

    /// The norm in the form that the engine's own kernels take.
    pub fn for_kernels(&self) -> GroupNormOf<'_> {
        GroupNormOf {
            scale: &self.weight,
            shift: &self.bias,
            groups: self.groups,
            epsilon: NORM_EPS,
        }
    }

    /// Normalises `[B, channels, H, W]`, channels-last in memory.
    ///
    /// # Errors
    /// Libtorch's text where shapes do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        // libtorch's channels-last kernel vectorises over channels and is many times slower with fewer than this.
        const FEW_CHANNELS: i64 = 8;
        if self.weight.size1()? < FEW_CHANNELS {
            return self.over_whole_sample(x);
        }
        if !x.requires_grad() && self.weight.requires_grad() {
            return self.forward_on_input(x);
        }
        x.f_group_norm(self.groups, Some(&self.weight), Some(&self.bias), NORM_EPS, true)
    }

    /// [`forward`](Self::forward) for a module's own input, which is often detached: libtorch 2.11's channels-last
    /// backward of a GroupNorm with weights crashes on an input that needs no gradient.
    ///
    /// # Errors
    /// Libtorch's text where shapes do not fit.
    pub fn forward_on_input(&self, x: &Tensor) -> Result<Tensor, TchError> {
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
