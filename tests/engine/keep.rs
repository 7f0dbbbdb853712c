//! Which networks a run keeps, and that they are those that were measured.

use std::path::Path;

use simic_engine::extend::{GrownNetwork, KeptNetworks, NetworkShelf};
use simic_engine::internals::data::TaskData;
use simic_engine::internals::env::LoadedData;
use simic_engine::internals::keep::TestPart;
use simic_engine::prelude::*;

const SCENARIO: &str = r#"(
    name: "kept",
    preset: "manual", task: preset("digits_baseline", (batches_per_step: count(3))),
    run: (rounds: 2, n_envs: 3, max_steps: 14, seed: 5, RUN),
    lifecycle: (
        slots: ["r0c1"],
        auto_forward: (g1: true, g2: true, g3: true),
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 1, command: germinate(slot: "r0c1", blueprint: "conv_heavy", style: "gated_gate", tempo: "fast", target: "full")),
        (step: 12, command: commit(slot: "r0c1")),
    ])),
)"#;

/// The run's networks as values, and its data.
fn played(run: &str, runs: Option<&Path>) -> (KeptNetworks, TaskData) {
    let mut builder = Engine::builder().threads(1);
    if let Some(runs) = runs {
        builder = builder.recorded(runs);
    }
    let mut engine = builder
        .from_ron(&SCENARIO.replace("RUN", run))
        .unwrap_or_else(|error| panic!("{error}"));
    let report = engine.run().unwrap_or_else(|error| panic!("{error}"));
    let data = engine.world().resource::<LoadedData>().set.clone();
    (report.networks, data)
}

fn places(networks: &[GrownNetwork]) -> Vec<(u32, u32)> {
    let places = networks
        .iter()
        .map(|network| (network.origin.round, network.origin.env));
    places.collect()
}

#[test]
fn a_kept_network_has_the_accuracies_of_its_episode_to_the_sample() {
    let (kept, data) = played("keep: all", None);
    let test = TestPart::of(&data).unwrap().expect("there is a test part");
    assert_eq!(kept.last.len(), 3);
    for network in &kept.last {
        let right = test.right(network).unwrap();
        let measured = network.measures.test.expect("it was measured");
        let hits = right.iter().filter(|&&hit| hit).count();
        assert_eq!(measured.samples as usize, right.len());
        assert!((100.0 * hits as f64 / right.len() as f64 - measured.accuracy).abs() < 1e-9);
        let seeds: Vec<_> = network
            .graph
            .seeds()
            .map(|seed| (seed.blueprint.as_str(), seed.amplitude))
            .collect();
        assert_eq!(seeds, [("conv_heavy", 1.0)]);
        let values: usize = network.parameters.values().map(|tensor| tensor.numel()).sum();
        // The running statistics of 4, 8 and 16 channels are no parameters.
        assert_eq!(network.measures.parameters as usize, values - 2 * (4 + 8 + 16));
        assert_eq!(network.data.test.as_ref().map(Vec::len), Some(right.len()));
    }
    let best = kept.best.expect("one is the best");
    let others = kept.last.iter().filter(|other| other.is_better_than(&best));
    assert_eq!(others.count(), 0);
}

#[test]
fn the_field_keep_says_whose_networks_stay_as_values_and_as_files() {
    for (keep, values, files) in [
        ("best", vec![(1, 0), (1, 1), (1, 2)], 4),
        ("last", vec![(1, 0), (1, 1), (1, 2)], 3),
        ("all", vec![(1, 0), (1, 1), (1, 2)], 6),
        ("none", vec![], 0),
    ] {
        let runs = tempfile::tempdir().unwrap();
        let (kept, _) = played(&format!("keep: {keep}"), Some(runs.path()));
        assert_eq!(places(&kept.last), values, "{keep}");
        assert_eq!(kept.best.is_some(), keep != "none", "{keep}");
        let run = std::fs::read_to_string(runs.path().join("latest")).unwrap();
        let shelf = NetworkShelf::of(&runs.path().join(run.trim()));
        let there = shelf.list().unwrap();
        assert_eq!(there.len(), files, "{keep}: {there:?}");
        assert_eq!(shelf.best().unwrap(), kept.best, "{keep}");
    }
}

#[test]
fn where_the_limit_is_reached_older_networks_go_and_the_best_stays() {
    let runs = tempfile::tempdir().unwrap();
    // A network has some 16 KiB; its values alone are counted before it is written.
    let (kept, _) = played("keep: all, keep_limit_gib: 2e-5", Some(runs.path()));
    let run = std::fs::read_to_string(runs.path().join("latest")).unwrap();
    let there = NetworkShelf::of(&runs.path().join(run.trim())).list().unwrap();
    assert!(there.len() < 6, "{there:?}");
    let best = kept.best.expect("one is the best").origin;
    assert!(
        there
            .iter()
            .any(|file| (file.round, file.env) == (best.round, best.env)),
        "{there:?}"
    );
}
