//! Checkpoints inside a round: when they are written, and what stays of them.

use std::path::{Path, PathBuf};

use simic_engine::internals::checkpoint::{CheckpointId, Checkpoints};
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::run::StopRequest;
use simic_engine::prelude::*;

use crate::recorded::NOTHING;
use crate::support::lines;

const STEPS: u32 = 8;

/// Rollbacks, and seeds that come and go.
pub fn scenario(intervals: &str) -> String {
    format!(
        r#"(
            name: "inside",
            preset: "manual", task: preset("digits_impaired", (batches_per_step: count(2), val_batches_per_step: count(1))),
            run: (rounds: 2, n_envs: 3, max_steps: {STEPS}, {intervals}),
            policy: (controller: "random"),
            initial_topology: seeds([(slot: "r0c1", blueprint: "conv_light")]),
            lifecycle: (auto_forward: (g1: true, g2: true, g3: true), gates: (min_training_steps: 1)),
            faults: [
                (env: 1, round: 1, step: 3, fault: nan_weight),
                (env: 2, round: 1, step: 4, fault: nan_weight),
            ],
        )"#
    )
}

pub fn directory(report: &RunReport) -> PathBuf {
    assert!(report.failure.is_none(), "{:?}", report.failure);
    report.record.as_ref().expect("it was recorded").directory.clone()
}

/// The run with what `extend` adds, asked to stop after a step of the second round.
pub fn stopped_after(step: u32, scenario: &str, extend: fn(&mut App), out: &Path) -> PathBuf {
    let stop = move |clock: Res<RunClock>, stop: Res<StopSignal>| {
        if (clock.round(), clock.step()) == (1, step) {
            stop.request(StopRequest::Interrupt);
        }
    };
    let engine = Engine::builder().with(extend).threads(2).recorded(out);
    let mut engine = engine.from_ron(scenario).expect("the scenario is sound");
    engine
        .app_mut()
        .add_systems(StepEnd, stop.before(EngineSet::Checkpoint));
    directory(&engine.play())
}

/// Rounds and steps of the checkpoints that the record tells of.
pub fn told(run: &Path) -> Vec<(u64, Option<u64>)> {
    let lines = lines(run);
    let saved = lines.iter().filter(|line| line["type"] == "checkpoint_saved");
    saved
        .map(|line| {
            (
                line["data"]["round"].as_u64().expect("a round"),
                line["data"]["step"].as_u64(),
            )
        })
        .collect()
}

#[test]
fn one_is_written_every_n_steps_and_stays_until_the_next_of_any_kind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = scenario("checkpoint_every_steps: Some(3), checkpoint_every_minutes: None");

    let run = stopped_after(5, &scenario, NOTHING, folder.path());

    let inside = |round, steps: &[u64]| -> Vec<_> { steps.iter().map(|&step| (round, Some(step))).collect() };
    let expected = [vec![(0, None)], inside(0, &[3, 6]), vec![(1, None)], inside(1, &[3, 5])];
    assert_eq!(told(&run), expected.concat());
    let ids = Checkpoints::of(&run).ids();
    let expected = [
        CheckpointId { round: 1, step: 5 },
        CheckpointId::before(1),
        CheckpointId::before(0),
    ];
    assert_eq!(ids, expected);
}

#[test]
fn without_an_interval_a_stop_leaves_the_last_boundary() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let run = stopped_after(5, &scenario("checkpoint_every_minutes: None"), NOTHING, folder.path());

    assert_eq!(
        Checkpoints::of(&run).ids(),
        [CheckpointId::before(1), CheckpointId::before(0)]
    );
}
