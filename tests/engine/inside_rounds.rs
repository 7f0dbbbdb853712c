//! Checkpoints inside a round: when they are written, what stays of them, and that a run resumes from any of them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use simic_engine::internals::checkpoint::{CheckpointId, CheckpointName, Checkpoints};
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::run::StopRequest;
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, resumed};
use crate::support::{assert_same_run, lines};

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

#[test]
fn a_run_resumes_from_any_step_of_a_round() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = scenario("early_stop: Some((min_steps: 3, patience: 3, min_delta: 0.0))");
    let root = folder.path().join("whole");
    let whole = directory(&crate::recorded::play(&scenario, &root, NOTHING));
    let told = lines(&whole);
    let of_type = |name: &'static str| {
        told.iter()
            .filter(move |line| line["type"] == name && line["round"] == 1)
    };
    assert_eq!(of_type("governor_rollback").count(), 2, "both faults are met");
    let ends = of_type("episode_finished").filter_map(|line| line["data"]["length"].as_u64());
    let ends: Vec<u32> = ends.map(|end| end as u32).collect();
    let last = ends.iter().copied().max().expect("episodes end");
    assert!(
        ends.iter().any(|&end| end < last),
        "an episode ends before the round: {ends:?}"
    );

    for step in 1..last {
        let run = stopped_after(step, &scenario, NOTHING, &folder.path().join(step.to_string()));
        let newest = Checkpoints::of(&run).ids()[0];
        assert_eq!(newest, CheckpointId { round: 1, step });

        let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 1).expect("the run can be resumed");

        directory(&engine.play());
        assert_same_run(&whole, &run);
    }
}

/// What an application counts over an episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Rises {
    last: f64,
    count: u32,
}

fn count_rises(mut envs: Query<(&ValMetrics, &mut Rises)>, clock: Res<RunClock>) {
    for (val, mut rises) in &mut envs {
        if clock.step() == 1 {
            *rises = Rises::default();
        }
        rises.count += u32::from(val.accuracy_percent > rises.last);
        rises.last = val.accuracy_percent;
    }
}

fn counting(app: &mut App) {
    app.register_required_components::<EnvId, Rises>();
    app.add_systems(StepEnd, count_rises.before(EngineSet::Record));
    app.keep_in_rounds::<Rises>("rises");
}

fn counted(engine: &mut Engine) -> Vec<(usize, Rises)> {
    let world = engine.world_mut();
    let mut envs = world.query::<(&EnvId, &Rises)>();
    let mut counted: Vec<_> = envs.iter(world).map(|(id, rises)| (id.index, rises.clone())).collect();
    counted.sort_unstable_by_key(|(env, _)| *env);
    counted
}

#[test]
fn a_component_of_an_application_is_resumed_with_its_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = scenario("");
    let builder = Engine::builder().with(counting).threads(2);
    let mut whole = builder.from_ron(&scenario).expect("the scenario is sound");
    whole.play();
    let run = stopped_after(4, &scenario, counting, folder.path());

    let mut engine = resumed(&run, CheckpointName::Last, counting, 2).expect("the run can be resumed");
    engine.play();

    assert_eq!(counted(&mut engine), counted(&mut whole));
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
