//! Trajectories as a user records them and looks at them.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::LazyLock;

use serde_json::Value;
use simic_engine::internals::reward::committed_of_parts;
use simic_engine::internals::scenario::CommittedReward;
use simic_engine::internals::trajectory::{Segment, TrajectorySet};

use crate::program::{
    assert_has, copy_of, engine_at, events, played, refused, reproducible_events, succeeds, tiny, write,
};

const RUN: &str = "rounds: 2, n_envs: 2, max_steps: 8";

/// The engine in a folder, with two workers.
pub fn engine(at: &Path, line: &str) -> Output {
    engine_at(at, &format!("{line} --threads 2"))
}

/// Plays the scenario and records trajectories.
const RECORDED: &str = "run tiny.ron -q --set run.trajectories=true";

/// A folder with a scenario and runs of it: `plain`, `recorded` with its trajectories, and `narrow` with only one slot.
pub fn runs() -> tempfile::TempDir {
    static RUNS: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("tiny.ron"), tiny(RUN));
            succeeds(&engine(folder, "run tiny.ron -q --id plain"));
            for more in ["--id recorded", r#"--id narrow --set task.slots=Some(["r0c0"])"#] {
                succeeds(&engine(folder, &format!("{RECORDED} {more}")));
            }
        })
    });
    copy_of(&RUNS)
}

fn segments(set: &Path) -> Vec<Segment> {
    let set = TrajectorySet::open(set).expect("a set");
    let shards = set.manifest.shards.iter();
    shards.flat_map(|shard| set.read(shard).expect("a shard")).collect()
}

#[test]
fn a_run_records_what_its_policy_saw_did_and_was_paid_and_plays_as_without() {
    let place = runs();
    let [run, without] = ["recorded", "plain"].map(|name| place.path().join("runs").join(name));

    let recorded = segments(&run);

    // An episode of two envs in two rounds each.
    let versions = recorded.iter().map(|segment| segment.policy_version[0]);
    assert_eq!(versions.collect::<Vec<_>>(), [0, 0, 1, 1]);
    for segment in &recorded {
        assert_eq!((segment.len(), &segment.finish[..]), (8, &[2][..]));
        assert!(segment.log_probs.iter().all(|log| *log <= 0.0));
    }
    let decisions = events(&run, "decision").into_iter();
    let paid: Vec<f64> = decisions.filter_map(|event| event["data"]["reward"].as_f64()).collect();
    assert_eq!(paid.len(), 32);
    let sum: f64 = recorded.iter().flat_map(|segment| &segment.reward).sum();
    assert!((paid.iter().sum::<f64>() - sum).abs() < 1e-3, "{paid:?} {sum}");
    let [with, without] = [&run, &without].map(|run| -> Vec<Value> {
        let events = reproducible_events(run).into_iter();
        events.filter(|event| event["type"] != "run_started").collect()
    });
    assert_eq!(with, without);
    let info = succeeds(&engine(place.path(), "traj info recorded"));
    assert_has(&info, &["32 steps in 4 segments of 2 rounds"]);
}

/// With the change of committed accuracy, rent and loan of each step again from its parts, and by the same from a lower rent.
#[test]
fn rewards_follow_from_their_parts() {
    let place = runs();
    let longer = format!("{RECORDED} --set policy.controller=periodic --steps 20 --id longer");
    succeeds(&engine(place.path(), &longer));
    let run = place.path().join("runs/longer");
    let set = TrajectorySet::open(&run).expect("a set");
    let (gamma, price) = (set.manifest.gamma, set.manifest.price.expect("a price"));
    let mut all_lent = 0.0;

    for segment in segments(&run) {
        let (mut before, mut lent) = (None, 0.0);
        for (step, (parts, reward)) in segment.parts.chunks(5).zip(&segment.reward).enumerate() {
            let [_, committed, kept, _, growth] = parts else {
                panic!("five parts")
            };
            let gained = before.map_or(0.0, |before| committed - before);
            before = Some(committed);
            // The weight of accuracy is 0.1 by default, and nothing is lent in the last step.
            let weight = if step == 19 { 0.0 } else { 0.1 };
            let loan = weight * (kept - committed).max(0.0);
            let expected = 0.1 * gained - 0.1 * price * growth / 20.0 + gamma * loan - lent;
            (lent, all_lent) = (loan, all_lent + loan);
            let distance = (reward - expected).abs();
            assert!(distance < 1e-9, "step {step}: {reward}, from its parts {expected}");
        }
        let parts: Vec<[f64; 5]> = segment.parts.as_chunks().0.to_vec();
        let paid = |rent: f64| {
            let reward = CommittedReward {
                rent,
                ..CommittedReward::default()
            };
            committed_of_parts(&reward, &parts, (20, gamma), true).expect("all was measured")
        };
        assert_eq!(paid(price), segment.reward, "as it was paid");
        let rents = segment.parts.chunks(5).map(|parts| 0.1 * 0.5 * price * parts[4] / 20.0);
        for ((half, whole), rent) in paid(0.5 * price).iter().zip(&segment.reward).zip(rents) {
            let distance = (half - whole - rent).abs();
            assert!(distance < 1e-9, "half of the rent: {half}, all of it: {whole}");
        }
    }
    assert!(all_lent > 0.0, "seeds grow");
}

#[test]
#[ignore = "long tier"]
fn a_run_that_recorded_none_is_played_once_more() {
    let place = runs();
    let again = "run runs/plain/resolved.ron -q --set run.trajectories=true --id again";
    succeeds(&engine(place.path(), again));

    let bits = |run: &str| format!("{:?}", segments(&place.path().join("runs").join(run)));
    assert_eq!(bits("again"), bits("recorded"));
    let checked = succeeds(&engine(place.path(), "traj check again recorded"));
    assert_eq!(checked, "ok: 64 steps in 8 segments of 2 sets\n");
}

#[test]
fn sets_that_do_not_fit_together_or_are_damaged_are_refused_by_field_and_file() {
    let place = runs();
    let run = place.path().join("runs/recorded");

    let misfit = refused(&engine(place.path(), "traj check recorded narrow"));
    let set = TrajectorySet::open(&run).expect("a set");
    let shard = run.join("episodes.traj").join(&set.manifest.shards[0].file);
    let bytes = fs::read(&shard).expect("there");
    write(&shard, &bytes[..bytes.len() / 2]);
    let damaged = refused(&engine(place.path(), "traj info recorded"));
    let none = refused(&engine(place.path(), "traj info tiny.ron"));

    assert_has(&misfit, &["cannot be learnt from together", "in `slots` it has"]);
    assert_has(&damaged, &["its SHA-256 differs from the manifest's"]);
    assert_has(&none, &["tiny.ron"]);
}
