use smallvec::SmallVec;
use tch::{Device, Kind, Tensor};

use super::fixtures::{Planted, live, separate};
use crate::fixtures::{largest, perturb};
use crate::growth::AlphaAlgorithm;
use crate::host::{self, Host};
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::CnnSpec;
use crate::seed::{BlueprintRegistry, SeedInstance};
use crate::torch::{Backend, NoGrad};
use crate::validation::coalition_tree::{BlockRun, Stop};
use crate::validation::{CoalitionPlan, CoalitionTree, LiveSlot, coalition_forward};

const CPU: (Kind, Device) = (Kind::Float, Device::Cpu);
const KINDS: [(&str, AlphaAlgorithm, f64); 5] = [
    ("conv_light", AlphaAlgorithm::Add, 0.4),
    ("attention", AlphaAlgorithm::Multiply, 0.7),
    ("bottleneck", AlphaAlgorithm::Gate, 1.0),
    ("norm", AlphaAlgorithm::Add, 0.5),
    ("depthwise", AlphaAlgorithm::Multiply, 0.9),
];

/// A host with settled batch-norm statistics and a trained-looking seed in each slot of row 0.
struct Grown {
    host: Box<dyn Host>,
    seeds: Vec<Planted>,
}

impl Grown {
    fn new(n_blocks: usize, seeds: usize) -> Self {
        let spec = CnnSpec {
            in_channels: 3,
            base_channels: 4,
            n_blocks,
            kernel_size: 3,
            pool_layers: n_blocks,
            input_hw: 32,
            ..CnnSpec::default()
        };
        let host = host::build(&spec, 10, &mut RunRng::new(1, Domain::HostInit, &[0]), Backend::CPU).unwrap();
        tch::manual_seed(3);
        let _no_grad = NoGrad::new();
        for _ in 0..3 {
            let _ = host.run(0..host.num_ops(), &images(32), Mode::Train).unwrap();
        }
        let places = host.injection_specs()[..seeds].to_vec();
        let registry = BlueprintRegistry::default();
        let seeds = places.into_iter().zip(KINDS).enumerate();
        let seeds = seeds
            .map(|(slot, (place, (id, algorithm, alpha)))| {
                let index = registry.names().position(|name| name == id).unwrap();
                let mut rng = RunRng::new(2, Domain::SeedInit, &[index as u64]);
                let dim = place.channels;
                let instance =
                    SeedInstance::germinate(&registry, index, dim, algorithm, &mut rng, Backend::CPU).unwrap();
                perturb(instance.params());
                Planted {
                    slot,
                    place,
                    instance,
                    algorithm,
                    alpha,
                }
            })
            .collect();
        Self { host, seeds }
    }

    fn live(&self) -> Vec<LiveSlot<'_>> {
        live(&self.seeds)
    }

    fn assert_equals_separate(&self, plan: &CoalitionPlan, tolerance: f64) {
        let x = images(6);
        let live = self.live();
        let tree = CoalitionTree::new(plan, &live);
        let logits = coalition_forward(&*self.host, &live, &tree, &x).unwrap();
        assert_eq!(logits.size(), [6 * plan.masks.len() as i64, 10]);
        for (k, mask) in plan.masks.iter().enumerate() {
            let block = logits.narrow(0, 6 * tree.places()[k] as i64, 6);
            let difference = largest(&(block - separate(&*self.host, &self.seeds, plan, *mask, &x)));
            assert!(
                difference <= tolerance,
                "mask {mask:#b} of {plan:?} is off by {difference}"
            );
        }
    }
}

fn images(batch: i64) -> Tensor {
    Tensor::randn([batch, 32, 32, 3], CPU).permute([0, 3, 1, 2])
}

fn plan(players: &[usize], masks: &[u64]) -> CoalitionPlan {
    CoalitionPlan {
        players: SmallVec::from_slice(players),
        masks: masks.to_vec(),
    }
}

fn full_factorial(players: &[usize]) -> CoalitionPlan {
    let masks: Vec<u64> = (0..1 << players.len()).rev().collect();
    plan(players, &masks)
}

/// All on, leave-one-out, solo, none, and all pairs of five players.
fn partial_plan_of_five() -> CoalitionPlan {
    let all = 0b11111_u64;
    let mut masks = vec![all];
    masks.extend((0..5).map(|i| all ^ 1 << i));
    masks.extend((0..5).map(|i| 1 << i));
    masks.push(0);
    masks.extend((0..5).flat_map(|i| (0..i).map(move |j| 1 << i | 1 << j)));
    plan(&[0, 1, 2, 3, 4], &masks)
}

#[test]
fn every_configuration_equals_its_separate_evaluation() {
    for players in 0..=3 {
        let mut grown = Grown::new(3, players);
        let slots: Vec<usize> = (0..players).collect();

        grown.assert_equals_separate(&full_factorial(&slots), 1e-6);
        grown.host.refill().unwrap();
        grown.assert_equals_separate(&full_factorial(&slots), 1e-5);
    }
}

#[test]
fn a_partial_plan_of_five_seeds_equals_separate_evaluations() {
    let grown = Grown::new(5, 5);

    grown.assert_equals_separate(&partial_plan_of_five(), 1e-6);
}

#[test]
fn slots_that_are_no_players_stay_as_they_are() {
    let grown = Grown::new(3, 3);

    grown.assert_equals_separate(&full_factorial(&[1]), 1e-6);
    grown.assert_equals_separate(&full_factorial(&[0, 2]), 1e-6);
}

#[test]
fn chunks_do_not_change_the_logits() {
    let grown = Grown::new(3, 3);
    let (live, x) = (grown.live(), images(10));
    let tree = CoalitionTree::new(&full_factorial(&[0, 1, 2]), &live);
    let whole = coalition_forward(&*grown.host, &live, &tree, &x)
        .unwrap()
        .view([8, 10, 10]);

    for (start, samples) in [(0, 4), (4, 4), (8, 2)] {
        let chunk = coalition_forward(&*grown.host, &live, &tree, &x.narrow(0, start, samples)).unwrap();
        let expected = whole.narrow(1, start, samples);
        assert!(largest(&(chunk.view([8, samples, 10]) - expected)) <= 1e-5);
    }
}

#[test]
fn a_diverged_seed_spoils_only_the_configurations_that_have_it_on() {
    let grown = Grown::new(3, 2);
    for param in grown.seeds[0].instance.module.params().trainable() {
        let _no_grad = NoGrad::new();
        let _ = param.tensor.shallow_clone().fill_(f64::NAN);
    }
    let (live, x) = (grown.live(), images(4));
    let tree = CoalitionTree::new(&full_factorial(&[0, 1]), &live);

    let logits = coalition_forward(&*grown.host, &live, &tree, &x).unwrap().view([4, -1]);
    let has_nan: Vec<bool> = Vec::try_from(logits.isnan().any_dim(1, false)).unwrap();
    let has_nan: Vec<bool> = tree.places().iter().map(|&place| has_nan[place]).collect();
    assert_eq!(has_nan, [true, false, true, false]);
}

#[test]
fn the_pass_changes_no_state() {
    let grown = Grown::new(3, 3);
    let state = || -> Vec<Tensor> {
        let seeds = grown.seeds.iter().flat_map(|seed| seed.instance.params());
        grown
            .host
            .params()
            .all()
            .chain(seeds)
            .map(|param| param.tensor.detach().copy())
            .collect()
    };
    let (before, live, x) = (state(), grown.live(), images(4));
    let input = x.copy();
    let tree = CoalitionTree::new(&full_factorial(&[0, 1, 2]), &live);

    let _ = coalition_forward(&*grown.host, &live, &tree, &x).unwrap();
    assert!(state().iter().zip(&before).all(|(now, then)| now.equal(then)));
    assert!(x.equal(&input));
}

#[test]
fn a_full_factorial_doubles_the_blocks_at_each_player() {
    let grown = Grown::new(3, 3);
    let tree = CoalitionTree::new(&full_factorial(&[0, 1, 2]), &grown.live());

    let doubling = |slot: usize| {
        let arriving = 1 << slot;
        let run = |to, blended| BlockRun {
            from: 0,
            to,
            count: arriving,
            blended,
        };
        let runs = vec![run(0, false), run(arriving, true)];
        Stop {
            slot,
            arriving,
            seed_blocks: arriving,
            leaving: 2 * arriving,
            runs,
        }
    };
    assert_eq!(tree.stops, [doubling(0), doubling(1), doubling(2)]);
    assert_eq!(tree.widest(), 8);
    assert_eq!(tree.chunk_samples(Device::Cpu), 128);
    assert_eq!(tree.chunk_samples(Device::Cuda(0)), 1024);
}

#[test]
fn a_partial_plan_runs_each_seed_only_where_it_is_on() {
    let grown = Grown::new(3, 2);
    let live = grown.live();
    // On together and alone first: where the first seed is off, the second is, too.
    let tree = CoalitionTree::new(&plan(&[0, 1], &[0b11, 0b01, 0b00]), &live);

    let blocks: Vec<_> = tree
        .stops
        .iter()
        .map(|stop| (stop.arriving, stop.seed_blocks, stop.leaving))
        .collect();
    assert_eq!(blocks, [(1, 1, 2), (2, 1, 3)]);
    grown.assert_equals_separate(&plan(&[0, 1], &[0b11, 0b01, 0b00]), 1e-6);
}

/// Host 8-16-32 on 32×32: 3·8·9·1024 + 8·16·9·256 + 16·32·9·64 + 320 MACs; conv_light at r0c1 (C 16, 16×16).
#[test]
fn work_is_counted_per_distinct_prefix() {
    let spec = CnnSpec {
        in_channels: 3,
        base_channels: 8,
        n_blocks: 3,
        kernel_size: 3,
        pool_layers: 3,
        input_hw: 32,
        ..CnnSpec::default()
    };
    let host = host::build(&spec, 10, &mut RunRng::new(1, Domain::HostInit, &[0]), Backend::CPU).unwrap();
    let registry = BlueprintRegistry::default();
    let mut rng = RunRng::new(2, Domain::SeedInit, &[0]);
    let instance = SeedInstance::germinate(&registry, 1, 16, AlphaAlgorithm::Add, &mut rng, Backend::CPU).unwrap();
    let live = [LiveSlot {
        slot: 1,
        boundary: 3,
        instance: &instance,
        alpha: 1.0,
        algorithm: AlphaAlgorithm::Add,
    }];
    let tree = CoalitionTree::new(&full_factorial(&[1]), &live);

    let (before, after, seed) = (221_184 + 294_912, 294_912 + 320, 589_824);
    assert_eq!(tree.macs(host.op_costs(), &live), before + seed + 2 * after);
}
