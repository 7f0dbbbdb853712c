//! Sweeps: the file, and the folder that workers share.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use simic_engine::internals::compare::TrainingRecord;
use simic_engine::internals::inspect::check;
use simic_engine::internals::report::sweep_tables;
use simic_engine::internals::scenario::read_declared;
use simic_engine::internals::sweep::{
    AxisValues, Collected, Drawing, Leases, Plan, Results, SweepFile, SweepFolder, SweepState, TrialEnd, TrialResult,
    plan, read_result, write_rung,
};
use tempfile::TempDir;

use super::damage::{damaged, damages};
use super::events::EXAMPLES;
use super::found::{Folder, harms};
use super::harness::{fuzz, in_bounds};
use crate::recorded::CATALOG;

const SWEEP: &str = r#"(
    name: "small",
    scenario: "short.ron",
    set: [(path: "run.n_envs", value: 1)],
    axes: [
        (path: "policy.controller", values: list(["heuristic", "random"])),
        (path: "lifecycle.gates.min_training_steps", values: integer(low: 1, high: 3)),
    ],
    draw: random(points: 2, seed: 1),
    replicates: 1,
    budget: (parallel: 1, threads: 1),
    early_stop: Some((first_rounds: 1, factor: 2)),
    evaluation: Some((episodes: 1, seeds: [7], mode: greedy)),
    tags: ["a"],
)"#;
const SCENARIO: &str = r#"(task: preset("digits_minimal"), run: (rounds: 4, max_steps: 2))"#;
/// Trials beyond which a plan is only slow, since each is resolved.
const MANY: u64 = 20;

/// At most.
fn trials(sweep: &SweepFile) -> u64 {
    let size = |values: &AxisValues| match values {
        AxisValues::List(values) => values.len() as u64,
        _ => 1,
    };
    let drawn: u64 = match sweep.draw {
        Drawing::Grid => sweep.axes.iter().map(|axis| size(&axis.values)).product(),
        Drawing::Random { points, .. } => points.into(),
    };
    let points = drawn.saturating_mul(sweep.points.len().max(1) as u64);
    points.saturating_mul(sweep.replicates.into())
}

/// A folder with the sweep and its scenario.
fn written() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let path = place.path().join("sweep.ron");
    fs::write(place.path().join("short.ron"), SCENARIO).expect("a scenario");
    fs::write(&path, SWEEP).expect("a sweep");
    (place, path)
}

#[test]
fn sweep_files() {
    let (place, path) = written();
    fuzz(damages(), |damages| {
        let bytes = damaged(SWEEP.as_bytes(), &damages);
        fs::write(&path, &bytes).expect("a sweep");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let label = path.display().to_string();
        let declared = in_bounds(bytes.len(), || read_declared::<SweepFile>(&label, &text, &CATALOG))?;
        if declared.is_ok_and(|declared| trials(&declared.value) >= MANY) {
            return Ok(());
        }
        match in_bounds(bytes.len(), || plan(&path, &[], &CATALOG))? {
            Ok(planned) => {
                let out = tempfile::tempdir().expect("a temporary folder");
                let sweep = SweepFolder::of(&planned.plan.name, Some(out.path()));
                sweep.begin(&planned, false).expect("it is begun");
                let opened = SweepFolder::open(sweep.path(), None);
                let (_, read) = opened.map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(read, planned.plan);
            }
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.contains(&place.path().display().to_string()), "{message}");
            }
        }
        Ok(())
    });
}

/// A sweep one of whose trials has ended, while the other is played.
fn begun() -> (Folder, SweepFolder) {
    let (place, path) = written();
    let planned = plan(&path, &[], &CATALOG).unwrap_or_else(|error| panic!("{error}"));
    let sweep = SweepFolder::of("small", Some(&place.path().join("out")));
    sweep.begin(&planned, false).expect("it is begun");
    let [first, second] = &planned.plan.trials[..] else {
        panic!("there are two trials");
    };
    let run = place.path().join("run");
    fs::create_dir(&run).expect("a folder");
    let events = format!("{{\"type\":\"header\",\"schema\":1}}\n{EXAMPLES}");
    fs::write(run.join("events.jsonl"), events).expect("events");
    let result = TrialResult {
        training: Some(TrainingRecord::of_run(&run).expect("it is whole")),
        ..TrialResult::new(TrialEnd::Done, 1, 2.5)
    };
    result.write(&sweep, &first.id).expect("it is written");
    for (id, rung) in [(&first.id, 0), (&first.id, 1), (&second.id, 0)] {
        write_rung(&sweep, id, rung, 54.25).expect("a score");
    }
    let leases = Leases::read(&sweep, Duration::from_secs(60), SystemTime::now()).expect("they are read");
    drop(leases.take(&second.id).expect("it is free"));
    (Folder::taken(place, sweep.path()), sweep)
}

/// Everything that only reads the folder, and what it says is wrong.
fn read_all(folder: &Path) -> Vec<String> {
    let mut errors: Vec<String> = Vec::new();
    check(folder, &CATALOG);
    let (sweep, plan): (SweepFolder, Plan) = match SweepFolder::open(folder, None) {
        Ok(opened) => opened,
        Err(error) => return vec![error.to_string()],
    };
    let leases = Leases::read(&sweep, plan.lease(), SystemTime::now());
    match leases.and_then(|leases| SweepState::read(&sweep, &plan, leases)) {
        Ok(state) => {
            for trial in &plan.trials {
                errors.extend(state.of(trial).err().map(|error| error.to_string()));
                let _ = state.is_given_up(trial);
            }
        }
        Err(error) => errors.push(error.to_string()),
    }
    match Collected::read(&sweep, &plan) {
        Ok(collected) => drop(sweep_tables(&collected)),
        Err(error) => errors.push(error.to_string()),
    }
    errors
}

#[test]
fn folders_of_sweeps() {
    let (folder, sweep) = begun();
    assert_eq!(read_all(sweep.path()), [""; 0]);
    fuzz(harms(), |harm| {
        let damaged = folder.damage(&harm);
        let place = sweep.path().display().to_string();
        for message in in_bounds(damaged.bytes, || read_all(sweep.path()))? {
            prop_assert!(message.contains(&place), "{message}");
        }
        Ok(())
    });
}

#[test]
fn a_result_is_read_as_it_was_written() {
    let (folder, sweep) = begun();
    let results = Results::read(&sweep).expect("they are read");
    let (_, plan) = SweepFolder::open(sweep.path(), None).expect("it is there");
    let trial = plan.trials.iter().find(|trial| results.end(&trial.id).is_some());
    let id = &trial.expect("one has ended").id;
    let whole = read_result(&sweep, id, TrialEnd::Done).expect("it is read");
    let text = serde_json::to_vec(&whole).expect("it can be written");
    fuzz(damages(), |damages| {
        let changed = serde_json::from_slice::<TrialResult>(&damaged(&text, &damages));
        let result = TrialResult {
            end: TrialEnd::Done,
            ..changed.unwrap_or_else(|_| whole.clone())
        };
        result.write(&sweep, id).expect("it is written");
        let read = read_result(&sweep, id, TrialEnd::Done);
        let read = read.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(format!("{read:?}"), format!("{result:?}"));
        Ok(())
    });
    drop(folder);
}
