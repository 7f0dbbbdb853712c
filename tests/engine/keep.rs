//! The networks that a run keeps are those that were measured.

use std::path::Path;

use simic_engine::extend::{GrownNetwork, KeptNetworks, LayerGraph, NetworkShelf};
use simic_engine::internals::data::TaskData;
use simic_engine::internals::env::LoadedData;
use simic_engine::internals::export::export_network;
use simic_engine::internals::keep::{KeptFile, TestPart};
use simic_engine::prelude::*;

use crate::recorded::directory;

const SCENARIO: &str = r#"(
    name: "kept",
    preset: "manual", task: preset("digits_baseline", (batches_per_step: count(3))),
    run: (rounds: 2, n_envs: 3, max_steps: 14, seed: 5, RUN),
    lifecycle: (
        slots: ["r0c0", "r0c1"],
        auto_forward: true,
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 1, command: germinate(slot: "r0c1", blueprint: "conv_heavy", style: "gated_gate", tempo: "fast", target: "full")),
        (step: 2, command: germinate(slot: "r0c0", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full")),
        (step: 12, command: commit(slot: "r0c1")),
        (step: 13, command: commit(slot: "r0c0")),
    ])),
)"#;

/// The networks of a recorded run as values and as files, and its data.
fn played(run: &str, runs: &Path) -> (KeptNetworks, NetworkShelf, TaskData) {
    let engine = Engine::builder().threads(1).recorded(runs);
    let engine = engine.from_ron(&SCENARIO.replace("RUN", run));
    let mut engine = engine.unwrap_or_else(|error| panic!("{error}"));
    let report = engine.run().unwrap_or_else(|error| panic!("{error}"));
    let data = engine.world().resource::<LoadedData>().set.clone();
    let shelf = NetworkShelf::of(&directory(&report));
    (report.networks, shelf, data)
}

/// Percent of a part that a network with its seeds at these amplitudes gets right, set by hand.
fn reached(network: &GrownNetwork, amplitudes: [f64; 2], part: &TestPart) -> f64 {
    let (mut network, mut amplitudes) = (network.clone(), amplitudes.into_iter());
    for layer in &mut network.graph.layers {
        if let LayerGraph::Seed(seed) = &mut layer.layer {
            seed.amplitude = amplitudes.next().unwrap();
        }
    }
    let right = part.right(&network).unwrap();
    100.0 * right.iter().filter(|&&hit| hit).count() as f64 / right.len() as f64
}

/// Networks of the last round have the accuracies of their files, to the sample, and say what each seed adds to just these.
fn assert_measured(kept: &KeptNetworks, data: &TaskData) {
    let mut validation = data.clone();
    if let TaskData::Images(set) = &mut validation {
        set.test = set.val.clone();
    }
    let [test, validation] = [data, &validation].map(|data| TestPart::of(data).unwrap().unwrap());
    for network in &kept.last {
        let parts = [network.measures.test, network.measures.validation];
        let [tested, validated] = parts.map(|part| part.unwrap().accuracy);
        let combinations = [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]];
        let [both, first, second, none] = combinations.map(|on| reached(network, on, &validation));
        assert_eq!((tested, validated), (reached(network, [1.0, 1.0], &test), both));
        let exported = export_network(network, Vec::new(), None).unwrap();
        let source = String::from_utf8_lossy(&exported[0].1);
        assert_eq!(network.growth.len(), 2);
        let seeds = [("conv_light", first, second), ("conv_heavy", second, first)];
        for (seed, (blueprint, alone, other)) in network.growth.iter().zip(seeds) {
            let measures = seed.measures.unwrap();
            assert_eq!((&*seed.blueprint, measures.contribution), (blueprint, both - other));
            let share = (alone - none + both - other) / 2.0;
            assert!((measures.shapley.unwrap() - share).abs() < 1e-9, "{measures} {share}");
            let expected = format!("contributes {:+.2} points", both - other);
            assert!(source.contains(&expected), "{expected}: {source}");
        }
        let values: usize = network.parameters.values().map(|tensor| tensor.numel()).sum();
        // The running statistics of 4, 8 and 16 channels aren't parameters.
        assert_eq!(network.measures.parameters as usize, values - 2 * (4 + 8 + 16));
        assert_eq!(network.data.test.as_ref().map(Vec::len), Some(176));
    }
    let best = kept.best.as_ref().expect("one is the best");
    assert!(!kept.last.iter().any(|other| other.is_better_than(best)));
}

#[test]
#[ignore = "long tier"]
fn the_field_keep_says_whose_networks_stay_as_values_and_as_files() {
    for (keep, values, files) in [("best", 3, 4), ("last", 3, 3), ("all", 3, 6), ("none", 0, 0)] {
        let runs = tempfile::tempdir().unwrap();
        let (kept, shelf, _) = played(&format!("keep: {keep}"), runs.path());
        let origins = kept.last.iter().map(|network| &network.origin);
        let places = origins.map(|origin| (origin.round, origin.env));
        assert!(places.eq((0..values).map(|env: u32| (1_u32, env))), "{keep}");
        assert_eq!(kept.best.is_some(), keep != "none", "{keep}");
        let there = shelf.list().unwrap();
        assert_eq!(there.len(), files, "{keep}: {there:?}");
        assert_eq!(shelf.best().unwrap(), kept.best, "{keep}");
    }
}

#[test]
fn kept_networks_are_measured_and_where_the_limit_is_reached_older_ones_go_and_the_best_stays() {
    let runs = tempfile::tempdir().unwrap();
    let (kept, shelf, data) = played("keep: all", runs.path());
    assert_measured(&kept, &data);
    let best = kept.best.expect("one is the best");
    let place = tempfile::tempdir().unwrap();
    let full = NetworkShelf::of(place.path());

    for file in shelf.list().unwrap() {
        let network = GrownNetwork::load(&file.path).unwrap();
        // A network has some 16 KiB; its values alone are counted before it is written.
        full.put(&network, 21_000, Some(&best)).unwrap();
    }

    let there = full.list().unwrap();
    assert!(there.len() < 6, "{there:?}");
    let is_best = |file: &KeptFile| (file.round, file.env) == (best.origin.round, best.origin.env);
    assert!(there.iter().any(is_best), "{there:?}");
}
