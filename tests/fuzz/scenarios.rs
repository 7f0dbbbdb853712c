//! Scenarios: the file, what overrides it, and what it comes to.

use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use simic_engine::internals::engine::Prepared;
use simic_engine::internals::scenario::{Override, resolved_ron};

use super::damage::{damaged, damages};
use super::harness::{fuzz, in_bounds, names};
use crate::recorded::{CATALOG, load};

/// All scenarios that come with the engine.
fn shipped() -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["scenarios", "src/prior_art/scenarios/cifar"].map(|folder| root.join(folder));
    let read = |folder: &PathBuf| std::fs::read_dir(folder).expect("a folder");
    let entries = folders.iter().flat_map(read).flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ron"));
    paths.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).expect("it is read"));
    paths.into_iter().map(read).collect()
}

#[test]
fn scenario_files() {
    let shipped = shipped();
    fuzz((any::<Index>(), damages()), |(which, damages)| {
        let (path, whole) = which.get(&shipped);
        let bytes = damaged(whole, &damages);
        let label = path.display().to_string();
        let read = in_bounds(bytes.len(), || Prepared::from_bytes(&label, bytes, &[], &CATALOG))?;
        read.map_or_else(|error| names(&error, path), |_| Ok(()))
    });
}

/// Assignments of every kind of value.
const ASSIGNMENTS: [&str; 14] = [
    "run.rounds=3",
    "run.seed=18446744073709551615",
    "run.early_stop=Some(3)",
    "name=\"a name\"",
    "task=preset(\"digits_minimal\", (batches_per_step: count(1)))",
    "task.augment=Some((cutout: 4))",
    "policy.controller=actor_critic",
    "policy.net_cfg.hidden_dim=0x40",
    "learner.lr=3e-4",
    "training.host_lr=cosine(end: 0.1)",
    "lifecycle.slots=[\"r0c0\", \"r1c0\"]",
    "reward=contribution(shaped((contribution_weight: 0.5)))",
    "governor.max_rollbacks_per_episode=-1",
    "lifecycle.gates.min_training_steps=/* many */ 10",
];

#[test]
fn overrides() {
    let one = (select(&ASSIGNMENTS[..]), prop::option::of(damages()));
    fuzz(vec(one, 1..4), |drawn| {
        let texts = drawn.iter().map(|(text, damages)| {
            let damages = damages.as_deref().unwrap_or_default();
            String::from_utf8_lossy(&damaged(text.as_bytes(), damages)).into_owned()
        });
        let texts: Vec<String> = texts.collect();
        let overrides: Vec<Override> = texts.iter().filter_map(|text| Override::parse(text).ok()).collect();
        let bytes = texts.iter().map(String::len).sum();
        if let Err(error) = in_bounds(bytes, || Prepared::from_ron("x.ron", "()", &overrides, &CATALOG))? {
            let message = error.to_string();
            prop_assert!(message.contains("--set ") || message.contains("x.ron"), "{message}");
        }
        Ok(())
    });
}

#[test]
fn what_a_scenario_comes_to_is_read_as_the_same_scenario() {
    let shipped = shipped();
    fuzz((any::<Index>(), damages()), |(which, damages)| {
        let (_, whole) = which.get(&shipped);
        let text = String::from_utf8_lossy(&damaged(whole, &damages)).into_owned();
        let read = |label, text: &str| load(label, text, &[], &CATALOG);
        if let Ok(first) = read("first.ron", &text) {
            let resolved = resolved_ron(&first.scenario).expect("it can be written");
            let second = read("resolved.ron", &resolved);
            let second = second.map_err(|report| TestCaseError::fail(format!("{report}\n{resolved}")))?;
            prop_assert_eq!(second.scenario, first.scenario);
            prop_assert_eq!((second.task, second.slots), (first.task, first.slots));
        }
        Ok(())
    });
}
