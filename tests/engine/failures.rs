//! Whatever goes wrong in a run, its record says what and where, is closed, and keeps what was finished.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::checkpoint::{CheckpointName, Checkpoints};
use simic_engine::controller::{ActiveController, ParamGroup, PolicyError, Signals};
use simic_engine::engine::RunReport;
use simic_engine::env::EnvPool;
use simic_engine::health::RunHealth;
use simic_engine::prelude::*;
use simic_engine::run::ExtensionError;
use simic_engine::telemetry::RunState;
use simic_engine::torch::{NoGrad, TorchError};

const SCENARIO: &str = r#"(
    name: "failing",
    task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 3, n_envs: 2, max_steps: 4),
    policy: (controller: "actor_critic", preset: "lstm_small"),
)"#;

/// The error of the report; the record ends with it too, and the rounds before it are kept.
fn recorded_failure(report: &RunReport) -> String {
    let failure = report.failure.as_ref().expect("the run fails").to_string();
    let record = report.record.as_ref().expect("the run is recorded");
    let finished = record.finished.as_ref().expect("the record is closed");
    assert_eq!(finished.status, RunState::Failed);
    assert_eq!(finished.error.as_ref(), Some(&failure));
    let last = crate::support::lines(&record.directory)
        .pop()
        .expect("there are events");
    assert_eq!(
        (last["type"].as_str(), last["sev"].as_str()),
        (Some("run_finished"), Some("error"))
    );
    let status = std::fs::read_to_string(record.directory.join("status.json")).expect("there is a status");
    assert!(status.contains(r#""state": "failed""#), "{status}");
    let shelf = Checkpoints::of(&record.directory);
    let (_, progress) = shelf.find(CheckpointName::Last).expect("there is a checkpoint");
    assert_eq!(progress.next_round, 1, "the first round was finished");
    failure
}

fn is_second_round(clock: Res<RunClock>) -> bool {
    clock.round() == 1 && clock.step() == 2
}

#[test]
fn a_panic_of_a_plugin_s_system_is_a_failure_like_any_other() {
    fn extend(app: &mut App) -> Result<(), ExtensionError> {
        let panics = || panic!("the rule was broken");
        app.add_systems(Assess, panics.in_set(EngineSet::Observe).run_if(is_second_round));
        Ok(())
    }
    let folder = tempfile::tempdir().expect("a temporary folder");

    let failure = recorded_failure(&crate::recorded::play(SCENARIO, folder.path(), extend));

    assert!(failure.starts_with("a system failed at round 2, step 2"), "{failure}");
    assert!(failure.ends_with("the rule was broken"), "{failure}");
}

#[test]
fn an_observation_that_is_no_number_is_named_with_its_env_and_feature() {
    fn extend(app: &mut App) -> Result<(), ExtensionError> {
        let spoil = |mut envs: Query<(&EnvId, &mut Signals)>| {
            for (_, mut signals) in envs.iter_mut().filter(|(id, _)| id.index == 1) {
                signals.0.val_loss = f64::NAN;
            }
        };
        let place = spoil.in_set(EngineSet::Observe).before(Work::BuildObservations);
        app.add_systems(Decide, place.run_if(is_second_round));
        Ok(())
    }
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = crate::recorded::play(SCENARIO, folder.path(), extend);

    let cause = report.failure.as_ref().and_then(|error| error.failure.cause());
    let Some(PolicyError::NonFiniteFeature { at, feature, .. }) = cause else {
        panic!("{:?}", report.failure);
    };
    assert_eq!((at.env, at.step, feature.as_str()), (1, 2, "val_loss"));
    recorded_failure(&report);
}

#[test]
fn a_policy_whose_output_is_no_number_is_named_with_env_and_head() {
    fn extend(app: &mut App) -> Result<(), ExtensionError> {
        let spoil = |mut controller: ResMut<ActiveController>| {
            let policy = controller.0.get().learned().expect("the policy learns");
            let heads = policy.params().into_iter();
            let _no_grad = NoGrad::new();
            for mut param in heads.filter(|param| param.group == ParamGroup::ActorHeads) {
                let _ = param.tensor.fill_(f64::NAN);
            }
        };
        let place = spoil.in_set(EngineSet::Decide).before(Work::RememberStates);
        let goes_on = |clock: Res<RunClock>| clock.round() == 1 && clock.step() >= 2;
        app.add_systems(Decide, place.run_if(goes_on));
        Ok(())
    }
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = crate::recorded::play(SCENARIO, folder.path(), extend);

    let cause = report.failure.as_ref().and_then(|error| error.failure.cause());
    let Some(PolicyError::PolicyNonFinite { at, head: Some(_) }) = cause else {
        panic!("{:?}", report.failure);
    };
    assert_eq!(
        (at.env, at.step),
        (0, 3),
        "the first time it is put back to what it last was"
    );
    recorded_failure(&report);
}

/// What libtorch says when memory is short becomes an error that says what helps.
#[test]
fn an_env_without_memory_is_named_with_what_helps() {
    fn extend(app: &mut App) -> Result<(), ExtensionError> {
        let exhaust = |envs: Query<&EnvId>, pool: Res<EnvPool>, clock: Res<RunClock>, mut health: ResMut<RunHealth>| {
            let envs = envs.iter().map(|id| (*id, ()));
            let outcome = pool.for_each(envs, |id, ()| match id.index {
                1 => panic!("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
                _ => Ok(()),
            });
            if let Err(failure) = outcome {
                health.record(failure.during("train step", clock.position()));
            }
        };
        app.add_systems(StepStart, exhaust.before(EngineSet::Reset).run_if(is_second_round));
        Ok(())
    }
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = crate::recorded::play(SCENARIO, folder.path(), extend);

    let cause = report.failure.as_ref().and_then(|error| error.failure.cause());
    assert!(
        matches!(cause, Some(TorchError::OutOfMemory(_))),
        "{:?}",
        report.failure
    );
    let failure = recorded_failure(&report);
    assert!(failure.starts_with("train step failed at round 2, step 2"), "{failure}");
    assert!(failure.contains("env 1: no memory is left"), "{failure}");
    assert!(
        failure.contains("what helps: twice the training.micro_batches"),
        "{failure}"
    );
}
