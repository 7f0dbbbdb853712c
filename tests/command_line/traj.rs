//! Trajectories as a user records, looks at and regenerates them.

use std::fs;
use std::path::Path;
use std::process::Output;

use simic_engine::internals::reward::committed_of_parts;
use simic_engine::internals::scenario::CommittedReward;
use simic_engine::internals::trajectory::{Segment, TrajectorySet};

use crate::program::{engine_at, newest, refused, succeeds, text, tiny};

const RUN: &str = "rounds: 2, n_envs: 2, max_steps: 8";

pub(crate) fn engine(at: &Path, arguments: &[&str]) -> Output {
    engine_at(at, &[&["--threads", "2"], arguments].concat())
}

pub(crate) fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("tiny.ron"), tiny(RUN)).expect("written");
    folder
}

fn segments(set: &Path) -> Vec<Segment> {
    let set = TrajectorySet::open(set).expect("a set");
    let shards = set.manifest.shards.iter();
    shards.flat_map(|shard| set.read(shard).expect("a shard")).collect()
}

/// Whether the folder in which a run was played once more is still there.
fn left_beside(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().contains("playing"))
}

pub(crate) const RECORDED: [&str; 5] = ["run", "tiny.ron", "-q", "--set", "telemetry.trajectories=true"];

#[test]
fn a_run_records_what_its_policy_saw_did_and_was_paid_and_plays_as_without() {
    let place = place();
    succeeds(&engine(place.path(), &["run", "tiny.ron", "-q"]));
    let without = newest(&place.path().join("runs"));
    succeeds(&engine(place.path(), &RECORDED));
    let run = newest(&place.path().join("runs"));

    let recorded = segments(&run);

    assert_eq!(recorded.len(), 4, "an episode of two envs in two rounds each");
    assert!(
        recorded
            .iter()
            .all(|segment| segment.len() == 8 && segment.finish == [2])
    );
    assert_eq!(
        recorded
            .iter()
            .map(|segment| segment.policy_version[0])
            .collect::<Vec<_>>(),
        [0, 0, 1, 1]
    );
    let events = crate::program::reproducible_events(&run);
    let decisions = events.iter().filter(|event| event["type"] == "decision");
    let paid: Vec<f64> = decisions.filter_map(|event| event["data"]["reward"].as_f64()).collect();
    assert_eq!(paid.len(), 32);
    let sum: f64 = recorded.iter().flat_map(|segment| &segment.reward).sum();
    assert!((paid.iter().sum::<f64>() - sum).abs() < 1e-3, "{paid:?} {sum}");
    assert!(
        recorded
            .iter()
            .all(|segment| segment.log_probs.iter().all(|log| *log <= 0.0))
    );
    let told = |run: &Path| -> Vec<serde_json::Value> {
        let events = crate::program::reproducible_events(run).into_iter();
        events.filter(|event| event["type"] != "run_started").collect()
    };
    assert_eq!(told(&run), told(&without));
    let info = succeeds(&engine(place.path(), &["traj", "info", "latest"]));
    assert!(info.contains("32 steps in 4 segments of 2 rounds"), "{info}");
}

/// With the change of committed accuracy, rent and loan of each step again from its parts, and by the same from a lower rent.
#[test]
fn rewards_follow_from_their_parts() {
    let place = place();
    let longer = ["--set", "policy.controller=periodic", "--steps", "20"];
    succeeds(&engine(place.path(), &[&RECORDED[..], &longer[..]].concat()));
    let run = newest(&place.path().join("runs"));
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
            let loan = if step == 19 {
                0.0
            } else {
                0.1 * (kept - committed).max(0.0)
            };
            let expected = 0.1 * gained - 0.1 * price * growth / 20.0 + gamma * loan - lent;
            (lent, all_lent) = (loan, all_lent + loan);
            assert!(
                (reward - expected).abs() < 1e-9,
                "step {step}: {reward}, from its parts {expected}"
            );
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
            assert!(
                (half - whole - rent).abs() < 1e-9,
                "half of the rent: {half}, all of it: {whole}"
            );
        }
    }
    assert!(all_lent > 0.0, "seeds grow");
}

#[test]
fn a_run_that_recorded_none_is_played_once_more() {
    let place = place();
    succeeds(&engine(place.path(), &["run", "tiny.ron", "-q"]));
    succeeds(&engine(place.path(), &["traj", "from-run", "latest", "-o", "old.traj"]));
    succeeds(&engine(place.path(), &RECORDED));

    let (old, new) = (place.path().join("old.traj"), newest(&place.path().join("runs")));

    let bits = |set: &Path| format!("{:?}", segments(set));
    assert_eq!(bits(&old), bits(&new));
    let checked = succeeds(&engine(place.path(), &["traj", "check", "old.traj", "latest"]));
    assert_eq!(checked, "ok: 64 steps in 8 segments of 2 sets\n");
    assert!(!left_beside(place.path()));
    let again = refused(&engine(place.path(), &["traj", "from-run", "latest", "-o", "old.traj"]));
    assert!(again.contains("has recorded its trajectories"), "{again}");
}

#[test]
fn a_run_that_this_build_does_not_repeat_is_named_by_its_first_difference() {
    let place = place();
    succeeds(&engine(place.path(), &["run", "tiny.ron", "-q"]));
    let run = newest(&place.path().join("runs"));
    let events = run.join("events.jsonl");
    let told = fs::read_to_string(&events).expect("there");
    fs::write(&events, told.replacen("\"op\":\"GERMINATE\"", "\"op\":\"WAIT\"", 1)).expect("written");

    let output = engine(place.path(), &["traj", "from-run", "latest", "-o", "old.traj"]);

    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let message = text(&output.stderr);
    assert!(
        message.contains("does not repeat the run") && message.contains("decision"),
        "{message}"
    );
    assert!(!place.path().join("old.traj").exists() && !left_beside(place.path()));
}

#[test]
fn sets_that_do_not_fit_together_or_are_damaged_are_refused_by_field_and_file() {
    let place = place();
    succeeds(&engine(place.path(), &RECORDED));
    let wide = ["--set", "task.slots=Some([\"r0c0\"])", "--tag", "wide"];
    succeeds(&engine(place.path(), &[&RECORDED[..], &wide[..]].concat()));
    let runs: Vec<_> = fs::read_dir(place.path().join("runs"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let mut runs: Vec<String> = runs
        .iter()
        .filter(|run| run.is_dir() && !run.is_symlink())
        .map(|run| run.display().to_string())
        .collect();
    runs.sort();

    let misfit = refused(&engine(place.path(), &["traj", "check", &runs[0], &runs[1]]));
    assert!(
        misfit.contains("cannot be learnt from together") && misfit.contains("of `slots` it has"),
        "{misfit}"
    );
    let set = TrajectorySet::open(Path::new(&runs[0])).expect("a set");
    let shard = Path::new(&runs[0])
        .join("episodes.traj")
        .join(&set.manifest.shards[0].file);
    let bytes = fs::read(&shard).expect("there");
    fs::write(&shard, &bytes[..bytes.len() / 2]).expect("written");
    let damaged = refused(&engine(place.path(), &["traj", "info", &runs[0]]));
    assert!(damaged.contains("its SHA-256 is not that of the manifest"), "{damaged}");
    let none = refused(&engine(place.path(), &["traj", "info", "tiny.ron"]));
    assert!(none.contains("tiny.ron"), "{none}");
}
