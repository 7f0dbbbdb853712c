//! Seeds on a host as both kinds of tests of the coalition pass have them, and the brute force that they compare it with.

use tch::Tensor;

use crate::env::grafted::{Graft, GraftKind, forward};
use crate::growth::AlphaAlgorithm;
use crate::host::{Host, InjectionSpec};
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::seed::{BlueprintRegistry, SeedInstance};
use crate::torch::NoGrad;
use crate::torch::fixtures::test_backend;
use crate::validation::{CoalitionPlan, LiveSlot};

/// A seed on the output path.
pub struct Planted {
    /// Policy index.
    pub slot: usize,
    pub place: InjectionSpec,
    pub instance: SeedInstance,
    pub algorithm: AlphaAlgorithm,
    pub alpha: f64,
}

impl Planted {
    /// A fresh seed of this blueprint.
    pub fn new(slot: usize, place: InjectionSpec, index: usize, algorithm: AlphaAlgorithm, alpha: f64) -> Self {
        let mut rng = RunRng::new(2, Domain::SeedInit, &[index as u64]);
        let (registry, dim) = (BlueprintRegistry::default(), place.channels);
        let instance = SeedInstance::germinate(&registry, index, dim, algorithm, &mut rng, test_backend());
        Self {
            slot,
            place,
            instance: instance.unwrap(),
            algorithm,
            alpha,
        }
    }
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
pub fn separate(host: &dyn Host, seeds: &[Planted], plan: &CoalitionPlan, mask: u64, x: &Tensor) -> Tensor {
    let is_on = |seed: &&Planted| {
        let bit = plan.players.iter().position(|&player| player == seed.slot);
        bit.is_none_or(|bit| mask >> bit & 1 == 1)
    };
    let uses: Vec<Graft> = seeds
        .iter()
        .filter(is_on)
        .map(|seed| Graft {
            boundary: seed.place.boundary,
            instance: &seed.instance,
            kind: GraftKind::Blend {
                alpha: seed.alpha,
                algorithm: seed.algorithm,
                isolated: true,
            },
        })
        .collect();
    let _no_grad = NoGrad::new();
    forward(host, &uses, x, Mode::Eval).unwrap()
}
