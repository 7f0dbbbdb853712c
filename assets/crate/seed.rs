//! A seed module: one learned factor a channel.

use simic_engine::prelude::*;

/// A kind of seed: one learned factor a channel.
pub struct ChannelScale;

struct ChannelScaleModule {
    weight: Tensor,
    params: ParamSet,
}

impl Blueprint for ChannelScale {
    fn id(&self) -> &'static str {
        "channel_scale"
    }

    fn summary(&self) -> &'static str {
        "one learned factor a channel"
    }

    fn param_count(&self, dim: i64) -> u64 {
        dim as u64
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let mut params = ParamSet::new(backend);
        // A fresh seed must not change its host: the factors start at 0.
        let weight = params.add("weight", &[dim, 1, 1], Init::Constant(0.0))?;
        params.initialise(rng)?;
        Ok(Box::new(ChannelScaleModule { weight, params }))
    }
}

impl SeedModule for ChannelScaleModule {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        Ok(Some(x.f_mul(&self.weight)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, positions: u64) -> u64 {
        self.params.count() * positions
    }
}
