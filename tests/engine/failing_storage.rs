//! Every operation on a run's files fails once, in every manner: the run is resumed to the same end, or says why not.
//!
//! The loops play a run of two rounds with a learning policy, and let every second operation fail in one manner, the others in
//! the next. `SIMIC_ENGINE_TEST_STORAGE=long` plays more of it, and lets every operation fail in every manner.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use simic_engine::internals::checkpoint::{CheckpointError, CheckpointName, ResumeError};
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::record::Recording;
use simic_engine::internals::storage::{Fault, StorageFaults};
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, resumed};
use crate::support::{first_difference, latest};

/// More than a storage that works ever needs.
const PATIENCE: Duration = Duration::from_secs(60);

fn is_long() -> bool {
    std::env::var("SIMIC_ENGINE_TEST_STORAGE").is_ok_and(|length| length == "long")
}

fn scenario() -> String {
    let (rounds, envs, steps) = if is_long() { (3, 2, 4) } else { (2, 1, 2) };
    format!(
        r#"(
            name: "failing", preset: "manual", task: preset("digits_impaired", (batches_per_step: count(1), val_batches_per_step: count(1))),
            run: (rounds: {rounds}, n_envs: {envs}, max_steps: {steps}, checkpoint_every_steps: 1),
            policy: (controller: "actor_critic", net: "lstm", net_cfg: (feature_dim: 8, hidden_dim: 8)),
        )"#
    )
}

/// A run in `root` until it ends or cannot begin.
fn play(root: &Path, outage_patience: Duration) -> Result<RunReport, String> {
    let recording = Recording {
        outage_patience,
        ..Recording::under(root)
    };
    let engine = Engine::builder().threads(1).recording(recording).from_ron(&scenario());
    Ok(engine.map_err(|error| error.to_string())?.play())
}

/// Files in `run`, without those that tell of interruptions.
fn names(run: &Path) -> BTreeSet<String> {
    fn collect(folder: &Path, prefix: &str, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => collect(&entry.path(), &format!("{name}/"), names),
                false => {
                    names.insert(name);
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(run, "", &mut found);
    found.retain(|name| !name.contains("discarded"));
    found
}

/// The storage fails at operation `n`; then it is repaired and the run is resumed, or restarted.
fn interrupt_and_repair(n: u64, fault: Fault, undisturbed: &Path) -> Option<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().join("runs");
    let faults = StorageFaults::under(&root, n, fault);
    // Nothing repairs it while the run waits.
    let interrupted = play(&root, Duration::from_millis(1));
    let struck = faults.struck()?;
    // What threads of the interrupted run still write goes to where it was, and fails for ever.
    let _faults = faults;
    let repaired = folder.path().join("repaired");
    if root.exists() {
        std::fs::rename(&root, &repaired).expect("the runs are moved");
    }
    let what = format!("{fault:?} at operation {n}, {struck}");

    let run = match &interrupted {
        Ok(report) => report.record.as_ref().map(|record| record.directory.clone()),
        Err(_) => None,
    };
    let run = run.and_then(|run| Some(repaired.join(run.file_name()?)));
    let run = run.filter(|run| run.is_dir()).unwrap_or_else(|| latest(&repaired));
    match &interrupted {
        Ok(report) if report.failure.is_none() && report.gaps.is_empty() => {}
        // Everything that cannot be kept is reported.
        Ok(report) => {
            let failure = report.failure.as_ref().map(ToString::to_string).unwrap_or_default();
            let is_told = !report.gaps.is_empty() || failure.contains(&*root.to_string_lossy()) || fault.is_deadly();
            assert!(is_told, "{what}: {failure}");
        }
        Err(refusal) => assert!(refusal.contains(&*root.to_string_lossy()), "{what}: {refusal}"),
    }
    let run = match resumed(&run, CheckpointName::Last, NOTHING, 1) {
        Ok(mut engine) => {
            let report = engine.play();
            assert!(report.failure.is_none(), "{what}: {:?}", report.failure);
            run
        }
        // Nothing had been played: it is begun again.
        Err(
            ResumeError::NoRun(_)
            | ResumeError::NoCheckpoint(_)
            | ResumeError::Checkpoint(CheckpointError::None(_))
            | ResumeError::File(_)
            | ResumeError::Directory(_),
        ) => {
            let report = play(&repaired, PATIENCE).unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
            assert!(report.failure.is_none(), "{what}: {:?}", report.failure);
            report.record.expect("it is recorded").directory
        }
        Err(refusal) => panic!("{what}: {refusal}"),
    };
    if let Some(difference) = first_difference(undisturbed, &run) {
        panic!("{what}: {difference}");
    }
    let left: Vec<String> = names(&run).symmetric_difference(&names(undisturbed)).cloned().collect();
    assert!(left.is_empty(), "{what}: too many or too few of {left:?}");
    Some(())
}

/// Lets one operation after the other fail until a run gets through without meeting the fault.
fn every_operation_fails(fault: Fault) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let undisturbed = play(folder.path(), PATIENCE).expect("it begins");
    let undisturbed = undisturbed.record.expect("it is recorded").directory;

    let place = Fault::ALL.iter().position(|known| *known == fault).unwrap_or_default();
    let stride = if is_long() { 1 } else { 2 };
    let operations = (1 + (place % stride) as u64..).step_by(stride);
    let struck = operations.take_while(|&n| interrupt_and_repair(n, fault, &undisturbed).is_some());

    let count = struck.count();
    println!("{fault:?}: {count} operations struck");
    assert!(count * stride > 50, "only {count} operations go through the storage");
}

#[test]
fn a_run_is_resumed_to_the_same_end_after_an_error_of_any_operation() {
    every_operation_fails(Fault::InputOutput);
}

#[test]
fn a_run_is_resumed_to_the_same_end_after_its_disk_was_full() {
    every_operation_fails(Fault::NoSpace);
}

#[test]
fn a_run_is_resumed_to_the_same_end_after_its_disk_was_read_only() {
    every_operation_fails(Fault::ReadOnly);
}

#[test]
fn a_run_is_resumed_to_the_same_end_after_a_kill_before_any_operation() {
    every_operation_fails(Fault::Kill);
}

#[test]
fn a_run_is_resumed_to_the_same_end_after_a_kill_within_any_write() {
    every_operation_fails(Fault::Torn);
}

#[test]
fn a_run_is_resumed_to_the_same_end_after_a_power_cut_at_any_operation() {
    every_operation_fails(Fault::PowerCut);
}
