//! A run's record depends on its scenario and seed alone: neither on threads nor on when it was played.

use std::path::{Path, PathBuf};

use serde_json::Value;
use simic_engine::internals::inspect::{DiffKind, Extent, diff};

use crate::program::{call, ended, newest, succeeds};
use crate::support::{assert_same_run, lines};

/// Runs a short quickstart into `out`, with some fields changed, and returns its run directory.
fn play(out: &Path, threads: usize, seed: u64, set: &[&str]) -> PathBuf {
    let mut call = call(&["run", "scenarios/quickstart.ron", "--progress", "none"]);
    call.args(["--rounds", "1", "--steps", "22", "--envs", "3"])
        .args(["--threads", &threads.to_string(), "--seed", &seed.to_string()])
        .args(set.iter().flat_map(|set| ["--set", set]))
        .arg("--out")
        .arg(out);
    succeeds(&ended(&mut call));
    newest(out)
}

/// Beyond the seed that they began with: in what an env measured in a step.
fn assert_events_differ(one: &Path, other: &Path) {
    let found = diff(one, other, &[DiffKind::Events], Extent::OfEvery(100)).expect("both runs can be read");
    let is_measured = |event: &Option<String>| event.as_deref() == Some("env_step");
    assert!(
        found
            .differences
            .iter()
            .any(|difference| is_measured(&difference.event))
    );
}

fn kinds(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

#[test]
fn events_do_not_depend_on_threads_or_on_the_moment() {
    let set = ["policy.controller=heuristic"];
    let folder = tempfile::tempdir().expect("a temporary folder");

    let one = play(&folder.path().join("one"), 1, 42, &set);
    let two = play(&folder.path().join("two"), 2, 42, &set);
    let again = play(&folder.path().join("again"), 2, 42, &set);
    let other = play(&folder.path().join("other"), 2, 43, &set);

    assert_same_run(&one, &two);
    assert_same_run(&two, &again);
    assert_events_differ(&one, &other);
    // The comparison means something: the run trained, grew and measured.
    let one = lines(&one);
    assert_eq!(kinds(&one, "env_step"), 3 * 22);
    assert!(kinds(&one, "seed_germinated") > 0);
    assert!(kinds(&one, "counterfactual_matrix") > 0);
    assert_eq!(kinds(&one, "episode_finished"), 3);
    assert_eq!(kinds(&one, "baseline_measured"), 1);
}

/// The network's draws depend on seed, round, step and env alone.
#[test]
fn a_policy_network_decides_the_same_with_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let set = ["policy.controller=actor_critic", "policy.preset=lstm_small"];

    let one = play(&folder.path().join("one"), 1, 42, &set);
    let two = play(&folder.path().join("two"), 2, 42, &set);
    let other = play(&folder.path().join("other"), 2, 43, &set);

    assert_same_run(&one, &two);
    assert_events_differ(&one, &other);
    assert!(kinds(&lines(&one), "seed_germinated") > 0);
}
