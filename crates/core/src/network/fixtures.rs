//! Networks without a training, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{DataCard, GrownNetwork, Measures, Origin};
use crate::graph::SeedGraph;
use crate::growth::AlphaAlgorithm;
use crate::host::HostDesign;
use crate::nn::ParamSet;
use crate::random::{Domain, RunRng};
use crate::seed::{BlueprintRegistry, GateNetwork};
use crate::torch::{Backend, PlainTensor};

/// The design's network with freshly drawn weights, and a seed of every kind and operator in its slots by turns.
pub fn grown(design: &Arc<dyn HostDesign>, classes: i64) -> GrownNetwork {
    let plan = design.plan(classes);
    let mut rng = RunRng::new(3, Domain::HostInit, &[]);
    let host = plan.build(&mut rng, Backend::CPU).unwrap();
    let mut parameters = BTreeMap::new();
    let mut take = |prefix: &str, params: &ParamSet| {
        for param in params.all() {
            let noise = param.tensor.randn_like() * 0.1 + &param.tensor.detach();
            let noise = noise.abs().copy(); // Running variances are not negative.
            parameters.insert(format!("{prefix}{}", param.name), PlainTensor::of(&noise).unwrap());
        }
    };
    take("", host.params());
    let mut blueprints = BlueprintRegistry::default();
    blueprints.serve(plan.topology());
    let mut graph = plan.graph();
    let operators = [AlphaAlgorithm::Add, AlphaAlgorithm::Multiply, AlphaAlgorithm::Gate];
    let slots = plan.injection_specs();
    for (turn, (_, blueprint)) in blueprints.iter().enumerate() {
        let spec = &slots[turn % slots.len()];
        let Ok(module) = blueprint.build(spec.channels, &mut rng, Backend::CPU) else {
            continue;
        };
        let operator = operators[turn % 3];
        let seed = SeedGraph {
            slot: spec.slot,
            blueprint: blueprint.id().into(),
            channels: spec.channels,
            module: blueprint.graph(spec.channels),
            operator,
            amplitude: 0.7,
        };
        let (next, name) = graph.with_seed(seed);
        graph = next;
        take(&format!("{name}."), module.params());
        if operator == AlphaAlgorithm::Gate {
            let gate = GateNetwork::new(plan.topology(), spec.channels, &mut rng, Backend::CPU).unwrap();
            take(&format!("{name}."), gate.params());
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
    }
}
