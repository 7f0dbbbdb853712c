//! However a run ends, its last finished round is on disk, and the run can be resumed from there.

use std::path::Path;

use serde_json::json;
use simic_engine::internals::checkpoint::{CheckpointName, Checkpoints, Progress, RunDirectoryLost};
use simic_engine::internals::controller::ActiveController;
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::health::{Failure, RunHealth};
use simic_engine::internals::learner::PolicyDiverged;
use simic_engine::internals::policy::ParamGroup;
use simic_engine::internals::record::{Recording, RoundHistory, RunDirectory};
use simic_engine::internals::run::StopRequest;
use simic_engine::internals::torch::NoGrad;
use simic_engine::prelude::*;
use tch::Kind;

use crate::recorded::{self, NOTHING, play};
use crate::support::builder;

/// Learns; no round is the best of a run with faults, though this one ends before the fault comes.
const SCENARIO: &str = r#"(
    name: "kept",
    preset: "manual", task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 5, n_envs: 2, max_steps: 4),
    policy: (controller: "actor_critic"),
    faults: [(env: 0, round: 4, step: 4, fault: nan_grad)],
)"#;

/// The same of a controller that does not learn, where a policy would cost time and show nothing.
fn waiting() -> String {
    SCENARIO.replace(r#"controller: "actor_critic""#, r#"controller: "wait""#)
}

fn directory(report: &RunReport) -> &Path {
    &report.record.as_ref().expect("the run was recorded").directory
}

fn newest(report: &RunReport) -> Progress {
    let shelf = Checkpoints::of(directory(report));
    shelf.find(CheckpointName::Last).expect("there is a checkpoint").1
}

/// Rounds and reasons of the checkpoints that the record tells of.
fn saves(report: &RunReport) -> Vec<serde_json::Value> {
    let saved = recorded::events(directory(report), "checkpoint_saved").into_iter();
    let saves = saved.map(|line| json!([line["data"]["round"], line["data"]["reason"]]));
    saves.collect()
}

/// From the second round on, the policy isn't the one that acted: no update may touch it.
fn swap_policies(app: &mut App) {
    fn swap(clock: Res<RunClock>, mut controller: ResMut<ActiveController>) {
        let policy = controller.0.get().learned().expect("the policy learns");
        let _no_grad = NoGrad::new();
        for param in policy.params() {
            if clock.round() >= 1 && param.group == ParamGroup::ActorHeads {
                let mut tensor = param.tensor;
                let offset = Tensor::linspace(-3.0, 3.0, tensor.numel() as i64, (Kind::Float, tensor.device()));
                let _ = tensor.g_add_(&offset.view_as(&tensor));
            }
        }
    }
    app.add_systems(RoundEnd, swap.in_set(EngineSet::PpoUpdate).before(Work::UpdatePolicy));
}

/// A policy that diverges leaves an emergency checkpoint of its last good state.
#[test]
fn a_policy_that_diverges_is_kept_as_it_last_was_good() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = play(SCENARIO, folder.path(), swap_policies);

    let failure = report.failure.as_ref().expect("the run fails");
    let diverged = failure.failure.cause::<PolicyDiverged>();
    assert_eq!(diverged, Some(&PolicyDiverged { failures: 3 }), "{failure}");
    assert_eq!(newest(&report).next_round, 4, "the round of the third failure is over");
    assert_eq!(saves(&report).last(), Some(&json!([4, "emergency"])));
    let policy = directory(&report).join("checkpoints/round-000004/policy/policy.safetensors");
    let weights = Tensor::read_safetensors(policy).expect("the policy can be read");
    let is_finite = |tensor: &Tensor| bool::try_from(tensor.isfinite().all()).expect("one flag");
    assert!(weights.iter().all(|(_, tensor)| is_finite(tensor)));
}

fn in_the_middle_of_the_third_round(clock: Res<RunClock>) -> bool {
    (clock.round(), clock.step()) == (2, 2)
}

fn fail(app: &mut App) {
    let fail = |mut health: ResMut<RunHealth>, clock: Res<RunClock>| {
        health.record(Failure::message("it broke").during("test", clock.position()));
    };
    let fail = fail.before(EngineSet::Record);
    app.add_systems(StepEnd, fail.run_if(in_the_middle_of_the_third_round));
}

fn stop(app: &mut App) {
    let stop = |stop: Res<StopSignal>| stop.request(StopRequest::Interrupt);
    let stop = stop.before(EngineSet::Record);
    app.add_systems(StepEnd, stop.run_if(in_the_middle_of_the_third_round));
}

/// Nothing of a completed round is ever lost, and a run that is stopped keeps the steps of its round.
#[test]
fn rounds_before_a_failure_or_a_stop_are_kept() {
    for (extend, fails, reason) in [(fail as fn(&mut App), true, "periodic"), (stop, false, "signal")] {
        let folder = tempfile::tempdir().expect("a temporary folder");

        let report = play(&waiting(), folder.path(), extend);

        assert_eq!(report.failure.is_some(), fails);
        assert_eq!(newest(&report).next_round, 2);
        let saves = saves(&report);
        let ends = [&saves[0], &saves[saves.len() - 1]];
        assert_eq!(ends, [&json!([0, "periodic"]), &json!([2, reason])]);
    }
}

#[test]
fn checkpoints_of_a_rollout_of_several_rounds_wait_for_its_end() {
    let scenario = SCENARIO
        .replace("rounds: 5", "rounds: 8")
        .replace("policy:", "learner: (episodes_per_update: 2), policy:");
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = play(&scenario, folder.path(), NOTHING);

    assert!(report.failure.is_none(), "{:?}", report.failure);
    let rounds = [0, 2, 4, 6].map(|round| json!([round, "periodic"]));
    assert_eq!(saves(&report), [&rounds[..], &[json!([8, "exit"])]].concat());
}

/// Something else stands where the third checkpoint is filled, and the accuracy falls after it.
fn spoil_the_best(app: &mut App) {
    fn shape(clock: Res<RunClock>, mut history: ResMut<RoundHistory>, run: Res<RunDirectory>) {
        history.0 = [40.0, 40.0, 43.0, 0.0, 0.0, 0.0, 0.0][..=clock.round() as usize].to_vec();
        let fresh = run.path().join("checkpoints/.round-000003.new");
        let changed = match clock.round() {
            2 => std::fs::write(fresh, ""),
            3 => std::fs::remove_file(fresh),
            _ => Ok(()),
        };
        changed.expect("the folder of checkpoints can be written");
    }
    app.add_systems(RoundEnd, shape.after(Work::RoundStats).before(Work::WriteCheckpoint));
}

#[test]
fn a_best_checkpoint_that_cannot_be_written_does_not_cost_the_run_the_one_before_it() {
    let scenario = r#"(
        name: "best",
        preset: "manual", task: preset("digits_minimal", (batches_per_step: count(1))),
        run: (rounds: 7, n_envs: 1, max_steps: 2),
        policy: (controller: "wait"),
    )"#;
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = play(scenario, folder.path(), spoil_the_best);

    assert!(report.failure.is_none() && report.gaps.is_empty(), "{report:?}");
    let shelf = Checkpoints::of(directory(&report));
    let (_, best) = shelf.find(CheckpointName::Best).expect("the best one is there");
    assert_eq!(best.next_round, 2);
    assert_eq!(shelf.rounds(), [7, 6, 5, 2]);
}

/// In the third round another process takes the run over.
fn hand_over(app: &mut App) {
    let hand_over = |clock: Res<RunClock>, run: Res<RunDirectory>| {
        if clock.round() == 2 {
            std::fs::write(run.path().with_file_name("successor"), "").expect("the folder can be written");
        }
    };
    let hand_over = hand_over.after(Work::RoundStats);
    app.add_systems(RoundEnd, hand_over.before(Work::WriteCheckpoint));
}

#[test]
fn a_run_that_another_process_has_taken_over_writes_no_checkpoint_any_more() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = Recording {
        ends_at: Some(folder.path().join("successor")),
        ..Recording::under(folder.path())
    };
    let engine = builder().with(hand_over).threads(2).recording(recording);

    let report = engine.from_ron(&waiting()).expect("the scenario is sound").play();

    assert_eq!(newest(&report).next_round, 2);
}

/// Another folder takes the place of the run's in the second round.
fn replace_directory(app: &mut App) {
    fn replace(clock: Res<RunClock>, run: Res<RunDirectory>) {
        if clock.round() == 1 {
            std::fs::rename(run.path(), run.path().with_file_name("moved")).expect("the run is moved");
            std::fs::create_dir_all(run.path().join("checkpoints")).expect("another folder is made");
        }
    }
    app.add_systems(RoundEnd, replace.after(Work::RoundStats).before(Work::WriteCheckpoint));
}

/// As [`replace_directory`], until the run ends.
fn replace_directory_for_a_while(app: &mut App) {
    fn bring_back(run: Res<RunDirectory>) {
        let other = run.path().with_file_name("other");
        std::fs::rename(run.path(), other).expect("the other folder is moved");
        std::fs::rename(run.path().with_file_name("moved"), run.path()).expect("the run is moved back");
    }
    app.add_systems(Shutdown, bring_back.before(Work::WriteCheckpoint));
    replace_directory(app)
}

#[test]
fn nothing_is_written_into_what_has_taken_the_place_of_the_run_directory() {
    let scenario = waiting()
        .replace("rounds: 5", "rounds: 3")
        .replace("round: 4", "round: 2");
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = play(&scenario, folder.path(), replace_directory);

    let failure = report.failure.as_ref();
    let lost = failure.and_then(|error| error.failure.cause::<RunDirectoryLost>());
    assert!(lost.is_some(), "{report:?}");
    assert!(report.gaps.iter().any(|gap| gap.part == "checkpoint"), "{report:?}");
    let written = std::fs::read_dir(directory(&report).join("checkpoints")).expect("the folder is there");
    assert_eq!(written.count(), 0);
}

#[test]
fn a_round_that_was_finished_while_the_run_directory_was_away_is_kept_if_it_is_back_in_the_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = play(&waiting(), folder.path(), replace_directory_for_a_while);

    assert!(report.failure.is_some() && report.gaps.is_empty(), "{report:?}");
    assert_eq!(newest(&report).next_round, 2);
}

#[test]
fn a_run_that_is_stopped_while_it_starts_leaves_nothing() {
    fn extend(app: &mut App) {
        let stop = |stop: Res<StopSignal>| stop.request(StopRequest::Terminate);
        app.add_systems(Startup, stop.after(Work::LoadDatasets).before(Work::CheckBlueprints));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = play(SCENARIO, folder.path(), extend);

    assert!(report.failure.is_none() && report.record.is_none(), "{report:?}");
    assert_eq!(report.stopped_by, Some(StopRequest::Terminate));
    let entries = std::fs::read_dir(folder.path()).expect("the folder is there");
    assert_eq!(entries.count(), 0);
}
