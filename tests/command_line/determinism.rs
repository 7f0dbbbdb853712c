//! A run's record depends on its scenario and seed alone: neither on threads nor on when it was played.

use std::path::{Path, PathBuf};

use serde_json::Value;
use simic_engine::internals::inspect::{DiffKind, Extent, diff};

use crate::program::{engine_at, folder, newest, succeeds};
use crate::support::{assert_same_run, lines};

/// Runs a short quickstart into `out`, a place in the folder, and returns its run directory.
fn play(folder: &Path, out: &str, words: &str) -> PathBuf {
    let run = "run scenarios/quickstart.ron --progress none --rounds 1 --steps 22 --envs 3";
    succeeds(&engine_at(folder, &format!("{run} --out {out} {words}")));
    newest(&folder.join(out))
}

/// Beyond the seed that they began with: in what an env measured in a step.
fn assert_events_differ(one: &Path, other: &Path) {
    let found = diff(one, other, &[DiffKind::Events], Extent::OfEvery(100)).expect("both runs can be read");
    let mut events = found.differences.iter().map(|difference| difference.event.as_deref());
    assert!(events.any(|event| event == Some("env_step")));
}

fn kinds(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

#[test]
fn events_do_not_depend_on_threads_or_on_the_moment() {
    let folder = folder();
    let play = |out: &str, words: &str| {
        let rules = "--set policy.controller=heuristic";
        play(folder.path(), out, &format!("{rules} {words}"))
    };

    let one = play("one", "--threads 1 --seed 42");
    let two = play("two", "--threads 2 --seed 42");
    let again = play("again", "--threads 2 --seed 42");
    let other = play("other", "--threads 2 --seed 43");

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
#[ignore = "long tier"]
fn a_policy_network_decides_the_same_with_any_number_of_threads() {
    let folder = folder();
    let play = |out: &str, words: &str| {
        let learned = "--set policy.controller=actor_critic";
        play(folder.path(), out, &format!("{learned} {words}"))
    };

    let one = play("one", "--threads 1 --seed 42");
    let two = play("two", "--threads 2 --seed 42");
    let other = play("other", "--threads 2 --seed 43");

    assert_same_run(&one, &two);
    assert_events_differ(&one, &other);
    assert!(kinds(&lines(&one), "seed_germinated") > 0);
}
