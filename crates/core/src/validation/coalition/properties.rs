//! The coalition tree against brute force, for seeds of any kind in any places.

use proptest::prelude::*;
use smallvec::SmallVec;
use tch::Tensor;

use super::fixtures::{Planted, live, separate};
use crate::fixtures::largest;
use crate::growth::AlphaAlgorithm;
use crate::host::{self, Host};
use crate::nn::Mode;
use crate::random::{Domain, Draw, RunRng};
use crate::scenario::CnnSpec;
use crate::torch::NoGrad;
use crate::torch::fixtures::{on_device, test_backend, tolerance};
use crate::training::evaluate_rows;
use crate::validation::{CoalitionPlan, CoalitionTree, LiveSlot, coalition_forward};

const SIDE: i64 = 16;
const CLASSES: i64 = 5;
/// A number that isn't a multiple of any chunk below, so that the last chunk is short.
const SAMPLES: i64 = 7;

/// A drawn seed.
#[derive(Clone, Debug)]
struct Drawn {
    /// Policy index of its slot: three before and three after the pools.
    slot: usize,
    blueprint: usize,
    algorithm: AlphaAlgorithm,
    alpha: f64,
    is_player: bool,
}

prop_compose! {
    fn any_seed(slot: usize)(
        blueprint in 1usize..8,
        algorithm in prop::sample::select(&AlphaAlgorithm::ALL),
        alpha in prop_oneof![1 => Just(1.0), 3 => 0.01..1.0f64],
        is_player in prop::bool::weighted(0.8),
    ) -> Drawn {
        Drawn { slot, blueprint, algorithm, alpha, is_player }
    }
}

fn any_seeds() -> impl Strategy<Value = Vec<Drawn>> {
    let slots = prop::sample::subsequence((0..6).collect::<Vec<_>>(), 0..=4);
    slots.prop_flat_map(|slots| slots.into_iter().map(any_seed).collect::<Vec<_>>())
}

/// Unit variance, from its own stream: other tests draw from libtorch's generator at the same time.
fn draw(rng: &mut RunRng, shape: &[i64]) -> Tensor {
    let mut values = vec![0.0; shape.iter().product::<i64>() as usize];
    rng.fill_uniform(&mut values, 3.0_f64.sqrt());
    on_device(Tensor::from_slice(&values)).view(shape)
}

fn images(rng: &mut RunRng, count: i64) -> Tensor {
    draw(rng, &[count, SIDE, SIDE, 3]).permute([0, 3, 1, 2])
}

/// A host with settled norms and seeds that have left the identity.
struct Grown {
    host: Box<dyn Host>,
    seeds: Vec<Planted>,
    /// Slots that may be off.
    players: SmallVec<[usize; 4]>,
    x: Tensor,
    labels: Tensor,
}

impl Grown {
    fn new(mut drawn: Vec<Drawn>, key: u64) -> Self {
        let spec = CnnSpec {
            base_channels: 4,
            input_hw: SIDE,
            ..CnnSpec::default()
        };
        let (mut rng, mut weights) = (RunRng::from_seed(key), RunRng::new(key, Domain::HostInit, &[]));
        let host = host::build(&spec, CLASSES, &mut weights, test_backend()).unwrap();
        let specs = host.injection_specs().to_vec();
        drawn.sort_by_key(|seed| specs[seed.slot].boundary);

        let _no_grad = NoGrad::new();
        let _ = host.run(0..host.num_ops(), &images(&mut rng, 16), Mode::Train).unwrap();
        let players = drawn.iter().filter(|seed| seed.is_player).map(|seed| seed.slot);
        let players = players.collect();
        let plant = |seed: &Drawn| {
            let place = specs[seed.slot];
            let planted = Planted::new(seed.slot, place, seed.blueprint, seed.algorithm, seed.alpha);
            for param in planted.instance.params() {
                let change = draw(&mut rng, &param.tensor.size()) * 0.3;
                let _ = param.tensor.shallow_clone().g_add_(&change);
            }
            planted
        };
        let seeds = drawn.iter().map(plant).collect();
        let labels: Vec<i64> = (0..SAMPLES).map(|_| rng.below(CLASSES as u64) as i64).collect();
        Self {
            x: images(&mut rng, SAMPLES),
            labels: on_device(Tensor::from_slice(&labels)),
            host,
            seeds,
            players,
        }
    }

    /// Configurations of the players in the order of `keys`, the first `count` of them.
    fn plan(&self, keys: &[u64], count: usize) -> CoalitionPlan {
        let players = self.players.clone();
        let mut masks: Vec<u64> = (0..1 << players.len()).collect();
        masks.sort_by_key(|&mask| keys[mask as usize]);
        masks.truncate(count);
        CoalitionPlan { players, masks }
    }

    fn live(&self) -> Vec<LiveSlot<'_>> {
        live(&self.seeds)
    }

    fn separate(&self, plan: &CoalitionPlan, mask: u64) -> Tensor {
        separate(&*self.host, &self.seeds, plan, mask, &self.x)
    }

    /// Correct samples of each configuration, evaluated `chunk` samples at a time.
    fn correct(&self, plan: &CoalitionPlan, chunk: i64) -> Vec<i64> {
        let live = self.live();
        let tree = CoalitionTree::new(plan, &live);
        let mut correct = vec![0; plan.masks.len()];
        let mut first = 0;
        while first < SAMPLES {
            let count = chunk.min(SAMPLES - first);
            let x = self.x.narrow(0, first, count);
            let logits = coalition_forward(&*self.host, &live, &tree, &x).unwrap();
            let (_, is_correct) = evaluate_rows(&logits, &self.labels.narrow(0, first, count)).unwrap();
            let counts = is_correct.sum_dim_intlist(1i64, false, tch::Kind::Int64);
            let counts = Vec::<i64>::try_from(counts).unwrap();
            for (sum, &place) in correct.iter_mut().zip(tree.places()) {
                *sum += counts[place];
            }
            first += count;
        }
        correct
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_tree_equals_brute_force(
        drawn in any_seeds(),
        key in any::<u64>(),
        order in prop::collection::vec(any::<u64>(), 16),
        count in 1usize..=8,
    ) {
        let mut grown = Grown::new(drawn, key);
        let plan = grown.plan(&order, count);
        let fused = |grown: &Grown| {
            let live = grown.live();
            coalition_forward(&*grown.host, &live, &CoalitionTree::new(&plan, &live), &grown.x).unwrap()
        };
        let unfolded = fused(&grown);
        grown.host.refill().unwrap();
        let fused = [unfolded, fused(&grown)];
        let tree = CoalitionTree::new(&plan, &grown.live());
        for (k, &mask) in plan.masks.iter().enumerate() {
            let expected = grown.separate(&plan, mask);
            let bound = tolerance(1e-5, 1e-4) * largest(&expected).max(1.0);
            for logits in &fused {
                let block = logits.narrow(0, tree.places()[k] as i64 * SAMPLES, SAMPLES);
                let difference = largest(&(block - &expected));
                prop_assert!(difference <= bound, "mask {mask:#b} is off by {difference}");
            }
        }
    }

    #[test]
    fn counts_do_not_depend_on_chunks_and_are_those_of_separate_passes(
        drawn in any_seeds(),
        key in any::<u64>(),
        order in prop::collection::vec(any::<u64>(), 16),
    ) {
        let grown = Grown::new(drawn, key);
        let plan = grown.plan(&order, 8);
        let separate = plan.masks.iter().map(|&mask| {
            let (_, is_correct) = evaluate_rows(&grown.separate(&plan, mask), &grown.labels).unwrap();
            i64::try_from(is_correct.sum(tch::Kind::Int64)).unwrap()
        });
        let separate: Vec<i64> = separate.collect();
        for chunk in [1, 3, SAMPLES] {
            prop_assert_eq!(&grown.correct(&plan, chunk), &separate);
        }
    }
}
