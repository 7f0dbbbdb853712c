use smallvec::SmallVec;
use tch::{Device, Tensor};

use super::fixtures::{Planted, live};
use crate::fixtures::images;
use crate::growth::AlphaAlgorithm;
use crate::host::{self, Host};
use crate::random::{Domain, RunRng};
use crate::scenario::CnnSpec;
use crate::torch::NoGrad;
use crate::torch::fixtures::test_backend;
use crate::validation::coalition_tree::{BlockRun, Stop};
use crate::validation::{CoalitionPlan, CoalitionTree, LiveSlot, coalition_forward};

/// A host with a seed in each of the first slots of row 0.
struct Grown {
    host: Box<dyn Host>,
    seeds: Vec<Planted>,
}

impl Grown {
    fn new(seeds: usize) -> Self {
        let spec = CnnSpec {
            base_channels: 4,
            ..CnnSpec::default()
        };
        let mut rng = RunRng::new(1, Domain::HostInit, &[0]);
        let host = host::build(&spec, 10, &mut rng, test_backend()).unwrap();
        let places = host.injection_specs().iter().zip(AlphaAlgorithm::ALL).enumerate();
        let plant = |(slot, (&place, algorithm))| Planted::new(slot, place, slot + 1, algorithm, 0.4);
        let seeds = places.take(seeds).map(plant).collect();
        Self { host, seeds }
    }

    fn live(&self) -> Vec<LiveSlot<'_>> {
        live(&self.seeds)
    }
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

#[test]
fn a_diverged_seed_spoils_only_the_configurations_that_have_it_on() {
    let grown = Grown::new(2);
    for param in grown.seeds[0].instance.module.params().trainable() {
        let _no_grad = NoGrad::new();
        let _ = param.tensor.shallow_clone().fill_(f64::NAN);
    }
    let (live, x) = (grown.live(), images(4, 3, 32));
    let tree = CoalitionTree::new(&full_factorial(&[0, 1]), &live);

    let logits = coalition_forward(&*grown.host, &live, &tree, &x).unwrap().view([4, -1]);
    let has_nan: Vec<bool> = Vec::try_from(logits.isnan().any_dim(1, false)).unwrap();
    let has_nan = tree.places().iter().map(|&place| has_nan[place]);
    assert_eq!(has_nan.collect::<Vec<_>>(), [true, false, true, false]);
}

#[test]
fn the_pass_changes_no_state() {
    let grown = Grown::new(3);
    let state = || -> Vec<Tensor> {
        let seeds = grown.seeds.iter().flat_map(|seed| seed.instance.params());
        let params = grown.host.params().all().chain(seeds);
        params.map(|param| param.tensor.detach().copy()).collect()
    };
    let (before, live, x) = (state(), grown.live(), images(4, 3, 32));
    let input = x.copy();
    let tree = CoalitionTree::new(&full_factorial(&[0, 1, 2]), &live);

    let _ = coalition_forward(&*grown.host, &live, &tree, &x).unwrap();
    assert!(state().iter().zip(&before).all(|(now, then)| now.equal(then)));
    assert!(x.equal(&input));
}

#[test]
fn a_full_factorial_doubles_the_blocks_at_each_player() {
    let grown = Grown::new(3);
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
    let grown = Grown::new(2);
    let live = grown.live();
    // Both seeds on, then the first alone: where the first is off, the second is too.
    let tree = CoalitionTree::new(&plan(&[0, 1], &[0b11, 0b01, 0b00]), &live);

    let blocks = tree
        .stops
        .iter()
        .map(|stop| (stop.arriving, stop.seed_blocks, stop.leaving));
    assert_eq!(blocks.collect::<Vec<_>>(), [(1, 1, 2), (2, 1, 3)]);
}

/// Host 8-16-32 on 32×32: 3·8·9·1024 + 8·16·9·256 + 16·32·9·64 + 320 MACs; conv_light at r0c1 (C 16, 16×16).
#[test]
fn work_is_counted_per_distinct_prefix() {
    let spec = CnnSpec {
        base_channels: 8,
        ..CnnSpec::default()
    };
    let mut rng = RunRng::new(1, Domain::HostInit, &[0]);
    let host = host::build(&spec, 10, &mut rng, test_backend()).unwrap();
    let place = host.injection_specs()[1];
    let seeds = [Planted::new(1, place, 1, AlphaAlgorithm::Add, 1.0)];
    let live = live(&seeds);
    let tree = CoalitionTree::new(&full_factorial(&[1]), &live);

    let (before, after, seed) = (221_184 + 294_912, 294_912 + 320, 589_824);
    assert_eq!(tree.macs(host.op_costs(), &live), before + seed + 2 * after);
}
