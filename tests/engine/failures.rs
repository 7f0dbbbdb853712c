//! With any failure in a run, its record says what failed and where, is closed, and keeps what was finished.

use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::actions::PolicyError;
use simic_engine::internals::checkpoint::{CheckpointName, Checkpoints};
use simic_engine::internals::controller::{ActiveController, Signals};
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::env::EnvPool;
use simic_engine::internals::health::RunHealth;
use simic_engine::internals::policy::ParamGroup;
use simic_engine::internals::telemetry::{Event, RunInfo, RunState, Sink, SinkError, Sinks};
use simic_engine::internals::torch::{NoGrad, TorchError};
use simic_engine::prelude::*;

use crate::recorded::NOTHING;

const SCENARIO: &str = r#"(
    name: "failing",
    preset: "manual", task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 3, n_envs: 2, max_steps: 4),
    policy: (controller: "actor_critic", preset: "lstm_small"),
)"#;

/// The error of the report; the record ends with it too, and the rounds before it are kept.
fn recorded_failure(report: &RunReport) -> String {
    let failure = report.failure.as_ref().expect("the run fails").to_string();
    let record = report.record.as_ref().expect("the run is recorded");
    let finished = record.finished().expect("the record is closed");
    assert_eq!(finished.status, RunState::Failed);
    assert_eq!(finished.error.as_ref(), Some(&failure));
    let last = crate::support::lines(&record.directory)
        .pop()
        .expect("there are events");
    assert_eq!(last["type"], "run_finished");
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
fn a_panic_of_a_plugin_s_system_is_a_failure_like_any_other_and_one_out_of_memory_says_so() {
    fn breaks(app: &mut App) {
        let panics = || panic!("the rule was broken");
        app.add_systems(Assess, panics.in_set(EngineSet::Observe).run_if(is_second_round));
    }
    fn exhausts(app: &mut App) {
        let panics = || panic!("CUDA out of memory");
        app.add_systems(Assess, panics.in_set(EngineSet::Observe).run_if(is_second_round));
    }
    for (extend, why) in [
        (breaks as fn(&mut App), "the rule was broken"),
        (exhausts, "no memory is left"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");

        let failure = recorded_failure(&crate::recorded::play(SCENARIO, folder.path(), extend));

        assert!(failure.starts_with("a system failed at round 2, step 2"), "{failure}");
        assert!(failure.contains(why), "{failure}");
    }
}

#[test]
fn an_observation_that_is_no_number_is_named_with_its_env_and_feature() {
    fn extend(app: &mut App) {
        let spoil = |mut envs: Query<(&EnvId, &mut Signals)>| {
            for (_, mut signals) in envs.iter_mut().filter(|(id, _)| id.index == 1) {
                signals.0.val_loss = f64::NAN;
            }
        };
        let place = spoil.in_set(EngineSet::Observe).before(Work::BuildObservations);
        app.add_systems(Decide, place.run_if(is_second_round));
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
    fn extend(app: &mut App) {
        let spoil = |mut controller: ResMut<ActiveController>| {
            let policy = controller.0.get().learned().expect("the policy learns");
            let heads = policy.params().into_iter();
            let _no_grad = NoGrad::new();
            for mut param in heads.filter(|param| param.group == ParamGroup::ActorHeads) {
                let _ = param.tensor.fill_(f64::NAN);
            }
        };
        let place = spoil.in_set(EngineSet::Decide).before(Work::RememberStates);
        let is_time = |clock: Res<RunClock>| clock.round() == 1 && clock.step() >= 2;
        app.add_systems(Decide, place.run_if(is_time));
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
    fn extend(app: &mut App) {
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
    assert!(failure.contains("--set training.micro_batches=N"), "{failure}");
}

/// A sink that refuses to start is the last thing that can go wrong before the first round.
#[test]
fn a_run_that_cannot_begin_says_so_in_its_status_and_does_not_become_the_latest() {
    struct Refuses;
    impl Sink for Refuses {
        fn name(&self) -> &str {
            "refuses"
        }
        fn start(&mut self, _run: &RunInfo) -> Result<(), SinkError> {
            Err(SinkError::Other("it does not like this run".into()))
        }
        fn write(&mut self, _events: &[Arc<Event>]) -> Result<(), SinkError> {
            Ok(())
        }
    }
    fn extend(app: &mut App) {
        if let Some(mut sinks) = app.world_mut().get_resource_mut::<Sinks>() {
            sinks.add(Refuses);
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one_round = SCENARIO.replace("rounds: 3", "rounds: 1");
    let first = crate::recorded::play(&one_round, folder.path(), NOTHING);
    let first = first.record.expect("the run is recorded");

    let report = crate::recorded::play(SCENARIO, folder.path(), extend);

    assert!(report.failure.is_some());
    let record = report.record.expect("something was written");
    assert_eq!(record.finished(), None);
    let runs = std::fs::read_dir(folder.path()).expect("there are runs");
    let paths = runs.map(|run| run.expect("it can be read").path());
    let failed = paths.filter(|path| path.is_dir() && !path.is_symlink() && *path != first.directory);
    let [failed] = &failed.collect::<Vec<_>>()[..] else {
        panic!("one more run has left something");
    };
    assert_eq!(record.directory, *failed);
    let status = std::fs::read_to_string(failed.join("status.json")).expect("there is a status");
    assert!(status.contains(r#""state": "failed""#), "{status}");
    assert!(status.contains("it does not like this run"), "{status}");
    assert!(crate::support::latest(folder.path()).ends_with(&first.run_id));
}

/// One env of two fails in the third step of the first round.
fn with_a_failing_env(on_env_error: &str, envs: &[usize]) -> String {
    let fault = |env: &usize| format!("(env: {env}, round: 0, step: 3, fault: env_error)");
    let faults: Vec<String> = envs.iter().map(fault).collect();
    SCENARIO
        .replace("n_envs: 2,", &format!("n_envs: 2, on_env_error: {on_env_error},"))
        .replace("policy:", &format!("faults: [{}], policy:", faults.join(", ")))
}

fn events_of(run: &RunReport, kind: &str) -> Vec<serde_json::Value> {
    let record = run.record.as_ref().expect("it is recorded");
    let lines = crate::support::lines(&record.directory).into_iter();
    lines.filter(|line| line["type"] == kind).collect()
}

#[test]
fn an_env_that_fails_can_sit_out_its_round_while_the_others_continue() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let play = |text: &str, folder: &tempfile::TempDir| crate::recorded::play(text, folder.path(), NOTHING);
    let sound = play(&SCENARIO.replace("rounds: 3", "rounds: 2"), &folders[0]);
    let dropped = with_a_failing_env("drop_env", &[1]).replace("rounds: 3", "rounds: 2");
    let dropped = play(&dropped, &folders[1]);
    assert!(dropped.failure.is_none(), "{:?}", dropped.failure);

    // Its episode ends with the last step that it finished, and says why; the next round has it back.
    let episodes = events_of(&dropped, "episode_finished");
    let told = |index: usize| (&episodes[index]["data"]["end"], &episodes[index]["data"]["length"]);
    assert_eq!(told(0), (&"horizon".into(), &4.into()));
    assert_eq!(told(1), (&"failed".into(), &2.into()));
    assert!(
        episodes[1]["data"]["error"]
            .as_str()
            .is_some_and(|error| error.contains("faults"))
    );
    assert!(episodes[1]["data"]["final_accuracy"].is_number());
    assert_eq!(told(3), (&"horizon".into(), &4.into()));

    // The other env has played its first round as if nothing had happened, and the round is its own.
    let untouched = &events_of(&sound, "episode_finished")[0]["data"];
    assert_eq!(&episodes[0]["data"], untouched);
    let rounds = events_of(&dropped, "round_finished");
    let round = &rounds[0]["data"];
    assert_eq!(round["episodes_failed"], 1);
    assert_eq!(round["accuracy_mean"], untouched["final_accuracy"]);
    assert_eq!(rounds[1]["data"]["episodes_failed"], 0);

    // And nothing is learnt from what it did.
    let update = &events_of(&dropped, "learner_update")[0]["data"];
    assert_eq!(update["steps_valid"], 4);
}

#[test]
fn a_run_without_an_env_left_fails_as_one_that_is_to_fail_at_once_does() {
    for (on_env_error, envs) in [("abort_run", &[1][..]), ("drop_env", &[0, 1][..])] {
        let folder = tempfile::tempdir().expect("a temporary folder");

        let text = with_a_failing_env(on_env_error, envs);
        let report = crate::recorded::play(&text, folder.path(), NOTHING);

        let failure = report.failure.as_ref().expect("the run fails").to_string();
        assert!(failure.contains("at round 1, step 3"), "{failure}");
        assert!(failure.contains(&format!("env {}", envs[0])), "{failure}");
        assert!(failure.ends_with("the scenario's faults ask for an error"), "{failure}");
        // What led to it is told, though no checkpoint was left to write.
        assert_eq!(events_of(&report, "user_event").len(), envs.len());
    }
}
