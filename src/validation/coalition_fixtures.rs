//! Seeds on a host as both kinds of tests of the coalition pass have them, and the brute force that they compare it with.

use tch::Tensor;

use super::{CoalitionPlan, LiveSlot};
use crate::growth::AlphaAlgorithm;
use crate::host::graft::{SlotUse, UseKind, forward};
use crate::host::{CnnHost, InjectionSpec, Mode};
use crate::seed::SeedInstance;
use crate::torch::NoGrad;

/// A seed on the output path.
pub struct Planted {
    /// Policy index.
    pub slot: usize,
    pub place: InjectionSpec,
    pub instance: SeedInstance,
    pub algorithm: AlphaAlgorithm,
    pub alpha: f64,
}

pub fn live(seeds: &[Planted]) -> Vec<LiveSlot<'_>> {
    seeds
        .iter()
        .map(|seed| LiveSlot {
            slot: seed.slot,
            boundary: seed.place.boundary,
            instance: &seed.instance,
            alpha: seed.alpha,
            algorithm: seed.algorithm,
        })
        .collect()
}

/// One configuration of a plan on its own, unfused, as training would run it.
pub fn separate(host: &CnnHost, seeds: &[Planted], plan: &CoalitionPlan, mask: u64, x: &Tensor) -> Tensor {
    let is_on = |seed: &&Planted| {
        let bit = plan.players.iter().position(|&player| player == seed.slot);
        bit.is_none_or(|bit| mask >> bit & 1 == 1)
    };
    let uses: Vec<SlotUse> = seeds
        .iter()
        .filter(is_on)
        .map(|seed| SlotUse {
            boundary: seed.place.boundary,
            instance: &seed.instance,
            kind: UseKind::Blend {
                alpha: seed.alpha,
                algorithm: seed.algorithm,
                isolated: true,
            },
        })
        .collect();
    let _no_grad = NoGrad::new();
    forward(host, &uses, x, Mode::Eval).unwrap()
}
