//! Networks without a training, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use tch::{Device, Kind, Tensor};

use super::{DataCard, GrownNetwork, Measures, Origin};
use crate::graph::SeedGraph;
use crate::growth::{AlphaAlgorithm, SlotId, Topology};
use crate::host::HostDesign;
use crate::nn::ParamSet;
use crate::random::{Domain, Draw, RunRng};
use crate::seed::{BlueprintRegistry, GateNetwork};
use crate::torch::{Backend, PlainTensor};

const OPERATORS: [AlphaAlgorithm; 3] = [AlphaAlgorithm::Add, AlphaAlgorithm::Multiply, AlphaAlgorithm::Gate];

/// A seed to be: its slot, the place of its blueprint among those there are, operator and amplitude.
type Planted = (SlotId, usize, AlphaAlgorithm, f64);

/// The design's network with drawn weights, and a seed of every kind and operator in its slots by turns.
pub fn grown(design: &Arc<dyn HostDesign>, classes: i64) -> GrownNetwork {
    let slots = slots_of(design, classes);
    let kinds = blueprints_for(design, classes).iter().count();
    let turns = (0..kinds).map(|turn| (slots[turn % slots.len()], turn, OPERATORS[turn % 3], 0.7));
    planted(design, classes, turns.collect())
}

/// The design's network with drawn weights, and up to two drawn seeds in a slot.
pub fn drawn(design: &Arc<dyn HostDesign>, classes: i64, seed: u64) -> GrownNetwork {
    let mut rng = RunRng::new(seed, Domain::SeedInit, &[]);
    let kinds = blueprints_for(design, classes).iter().count();
    let mut seeds = Vec::new();
    for slot in slots_of(design, classes) {
        for _ in 0..one_of(&mut rng, 3) {
            let operator = OPERATORS[one_of(&mut rng, 3)];
            let amplitude = [1.0, rng.uniform_f64()][one_of(&mut rng, 2)];
            seeds.push((slot, one_of(&mut rng, kinds), operator, amplitude));
        }
    }
    planted(design, classes, seeds)
}

fn one_of(rng: &mut RunRng, count: usize) -> usize {
    rng.below(count as u64) as usize
}

/// Samples as files hold them, on the CPU: images `u8 [count, side, side, channels]`, texts `i64 [count, side]`.
pub fn samples(network: &GrownNetwork, count: i64) -> Tensor {
    let (channels, side) = (network.graph.channels, network.graph.side);
    match network.graph.topology {
        Topology::Image => Tensor::randint(256, [count, side, side, channels], (Kind::Uint8, Device::Cpu)),
        Topology::Tokens => Tensor::randint(channels, [count, side], (Kind::Int64, Device::Cpu)),
    }
}

fn slots_of(design: &Arc<dyn HostDesign>, classes: i64) -> Vec<SlotId> {
    let plan = design.plan(classes);
    plan.injection_specs().iter().map(|spec| spec.slot).collect()
}

fn blueprints_for(design: &Arc<dyn HostDesign>, classes: i64) -> BlueprintRegistry {
    let mut blueprints = BlueprintRegistry::default();
    blueprints.serve(design.plan(classes).topology());
    blueprints
}

/// Seeds that do not fit their slot are left out.
fn planted(design: &Arc<dyn HostDesign>, classes: i64, seeds: Vec<Planted>) -> GrownNetwork {
    let plan = design.plan(classes);
    let mut rng = RunRng::new(3, Domain::HostInit, &[]);
    let host = plan.build(&mut rng, Backend::CPU).unwrap();
    let mut parameters = BTreeMap::new();
    take("", host.params(), &mut parameters);
    let blueprints = blueprints_for(design, classes);
    let mut graph = plan.graph();
    let specs = plan.injection_specs();
    for (slot, kind, operator, amplitude) in seeds {
        let channels = specs.iter().find(|spec| spec.slot == slot).unwrap().channels;
        let (_, blueprint) = blueprints.iter().nth(kind).unwrap();
        let Ok(module) = blueprint.build(channels, &mut rng, Backend::CPU) else {
            continue;
        };
        let seed = SeedGraph {
            slot,
            blueprint: blueprint.id().into(),
            channels,
            module: blueprint.graph(channels),
            operator,
            amplitude,
        };
        let (next, name) = graph.with_seed(seed);
        graph = next;
        take(&format!("{name}."), module.params(), &mut parameters);
        if operator == AlphaAlgorithm::Gate {
            let gate = GateNetwork::new(plan.topology(), channels, &mut rng, Backend::CPU).unwrap();
            take(&format!("{name}."), gate.params(), &mut parameters);
        }
    }
    GrownNetwork {
        graph,
        parameters,
        measures: Measures {
            validation: None,
            test: None,
            parameters: 0,
            macs: 0,
            host_parameters: plan.outline().parameters,
            host_macs: 0,
        },
        data: DataCard {
            task: "t".into(),
            name: "d".into(),
            hash: "h".into(),
            classes: Vec::new(),
            scale: vec![0.01; plan.input().channels as usize],
            offset: vec![-0.5; plan.input().channels as usize],
            full: 255.0,
            validation: None,
            test: Some(vec![3, 5]),
        },
        origin: Origin {
            engine: "0".into(),
            run: None,
            scenario: "s".into(),
            scenario_hash: "h".into(),
            seed: u64::MAX,
            round: 1,
            env: 2,
            steps: 3,
            rollbacks: 0,
        },
        growth: Vec::new(),
        domains: BTreeMap::new(),
    }
}

/// Tensors with noise, so that nothing stays at 0 or 1.
fn take(prefix: &str, params: &ParamSet, into: &mut BTreeMap<String, PlainTensor>) {
    for param in params.all() {
        let tensor = param.tensor.detach();
        let scale = match tensor.size()[..] {
            [_, ref inputs @ ..] if !inputs.is_empty() => 0.5 / (inputs.iter().product::<i64>() as f64).sqrt(),
            _ => 0.1,
        };
        let mut noisy = tensor.randn_like() * scale + &tensor;
        if param.name.ends_with("running_var") {
            noisy = noisy.abs() + 0.1;
        }
        into.insert(format!("{prefix}{}", param.name), PlainTensor::of(&noisy).unwrap());
    }
}
