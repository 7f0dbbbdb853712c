//! Which networks a run keeps, and that they are those that were measured.

use std::path::Path;

use simic_engine::extend::{KeptNetworks, NetworkShelf};
use simic_engine::internals::data::TaskData;
use simic_engine::internals::env::LoadedData;
use simic_engine::internals::keep::{KeptFile, TestPart};
use simic_engine::prelude::*;

use crate::recorded::directory;

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

/// Networks of the last round have the accuracies of their episodes, to the sample.
fn assert_measured(kept: &KeptNetworks, data: &TaskData) {
    let test = TestPart::of(data).unwrap().expect("there is a test part");
    for network in &kept.last {
        let right = test.right(network).unwrap();
        let measured = network.measures.test.expect("it was measured");
        let hits = right.iter().filter(|&&hit| hit).count();
        assert_eq!(measured.samples as usize, right.len());
        assert!((100.0 * hits as f64 / right.len() as f64 - measured.accuracy).abs() < 1e-9);
        let seeds = network.graph.seeds();
        let seeds: Vec<_> = seeds.map(|seed| (seed.blueprint.as_str(), seed.amplitude)).collect();
        assert_eq!(seeds, [("conv_heavy", 1.0)]);
        let values: usize = network.parameters.values().map(|tensor| tensor.numel()).sum();
        // The running statistics of 4, 8 and 16 channels are no parameters.
        assert_eq!(network.measures.parameters as usize, values - 2 * (4 + 8 + 16));
        assert_eq!(network.data.test.as_ref().map(Vec::len), Some(right.len()));
    }
    let best = kept.best.as_ref().expect("one is the best");
    assert!(!kept.last.iter().any(|other| other.is_better_than(best)));
}

#[test]
#[ignore = "long tier"]
fn the_field_keep_says_whose_networks_stay_as_values_and_as_files() {
    for (keep, values, files) in [("best", 3, 4), ("last", 3, 3), ("all", 3, 6), ("none", 0, 0)] {
        let runs = tempfile::tempdir().unwrap();
        let (kept, shelf, data) = played(&format!("keep: {keep}"), runs.path());
        let origins = kept.last.iter().map(|network| &network.origin);
        let places = origins.map(|origin| (origin.round, origin.env));
        assert!(places.eq((0..values).map(|env: u32| (1_u32, env))), "{keep}");
        assert_eq!(kept.best.is_some(), keep != "none", "{keep}");
        let there = shelf.list().unwrap();
        assert_eq!(there.len(), files, "{keep}: {there:?}");
        assert_eq!(shelf.best().unwrap(), kept.best, "{keep}");
        if keep == "all" {
            assert_measured(&kept, &data);
        }
    }
}

#[test]
fn where_the_limit_is_reached_older_networks_go_and_the_best_stays() {
    let runs = tempfile::tempdir().unwrap();
    // A network has some 16 KiB; its values alone are counted before it is written.
    let (kept, shelf, _) = played("keep: all, keep_limit_gib: 2e-5", runs.path());
    let there = shelf.list().unwrap();
    assert!(there.len() < 6, "{there:?}");
    let best = kept.best.expect("one is the best").origin;
    let is_best = |file: &KeptFile| (file.round, file.env) == (best.round, best.env);
    assert!(there.iter().any(is_best), "{there:?}");
}
