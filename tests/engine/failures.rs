//! With any failure in a run, its record says what failed and where, is closed, and keeps what was finished.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use simic_engine::internals::checkpoint::{CheckpointName, Checkpoints};
use simic_engine::internals::controller::{ActiveController, Signals};
use simic_engine::internals::env::EnvPool;
use simic_engine::internals::health::{EngineError, RunHealth};
use simic_engine::internals::policy::ParamGroup;
use simic_engine::internals::telemetry::{Event, RunInfo, RunState, Sink, SinkError, Sinks, UserEvent};
use simic_engine::internals::torch::{NoGrad, TorchError};
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, directory, events, play};

const SCENARIO: &str = r#"(
    name: "failing",
    preset: "manual", task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 3, n_envs: 2, max_steps: 4),
    policy: (controller: "actor_critic"),
)"#;

fn status(run: &Path) -> String {
    std::fs::read_to_string(run.join("status.json")).expect("there is a status")
}

/// The failure of a run with `extend`; its record ends with it too, and the rounds before it are kept.
fn failure(extend: fn(&mut App)) -> EngineError {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report = play(SCENARIO, folder.path(), extend);
    let failure = report.failure.expect("the run fails");
    let record = report.record.expect("the run is recorded");
    let finished = record.finished().expect("the record is closed");
    assert_eq!(finished.status, RunState::Failed);
    assert_eq!(finished.error, Some(failure.to_string()));
    let last = crate::support::lines(&record.directory).pop();
    assert_eq!(last.expect("there are events")["type"], "run_finished");
    let status = status(&record.directory);
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
    fn panics(app: &mut App, why: &'static str) {
        let panics = move || panic!("{why}");
        app.add_systems(Assess, panics.in_set(EngineSet::Observe).run_if(is_second_round));
    }
    let breaks: fn(&mut App) = |app| panics(app, "the rule was broken");
    let exhausts: fn(&mut App) = |app| panics(app, "CUDA out of memory");
    for (extend, why) in [(breaks, "the rule was broken"), (exhausts, "no memory is left")] {
        let failure = failure(extend).to_string();

        assert!(failure.starts_with("a system failed at round 2, step 2"), "{failure}");
        assert!(failure.contains(why), "{failure}");
    }
}

#[test]
fn an_observation_that_is_not_a_number_is_named_with_its_env_and_feature() {
    fn extend(app: &mut App) {
        let spoil = |mut envs: Query<(&EnvId, &mut Signals)>| {
            for (_, mut signals) in envs.iter_mut().filter(|(id, _)| id.index == 1) {
                signals.0.val_loss = f64::NAN;
            }
        };
        let place = spoil.in_set(EngineSet::Observe).before(Work::BuildObservations);
        app.add_systems(Decide, place.run_if(is_second_round));
    }

    let failure = failure(extend);

    let Some(PolicyError::NonFiniteFeature { at, feature, .. }) = failure.failure.cause() else {
        panic!("{failure:?}");
    };
    assert_eq!((at.env, at.step, feature.as_str()), (1, 2, "val_loss"));
}

#[test]
fn a_policy_whose_output_is_not_a_number_is_named_with_env_and_head() {
    fn extend(app: &mut App) {
        let spoil = |mut controller: ResMut<ActiveController>| {
            let policy = controller.0.get().learned().expect("the policy learns");
            let heads = policy.params().into_iter();
            let _no_grad = NoGrad::new();
            for mut param in heads.filter(|param| param.group == ParamGroup::ActorHeads) {
                let _ = param.tensor.fill_(f64::NAN);
            }
        };
        let place = spoil.in_set(EngineSet::Decide).before(Work::Decide);
        let is_time = |clock: Res<RunClock>| clock.round() == 1 && clock.step() >= 2;
        app.add_systems(Decide, place.run_if(is_time));
    }

    let failure = failure(extend);

    let Some(PolicyError::PolicyNonFinite { at, head: Some(_) }) = failure.failure.cause() else {
        panic!("{failure:?}");
    };
    // The first time it is put back to what it last was.
    assert_eq!((at.env, at.step), (0, 3));
}

/// libtorch's message on short memory becomes an error that names the remedy.
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

    let failure = failure(extend);

    let cause = failure.failure.cause();
    assert!(matches!(cause, Some(TorchError::OutOfMemory(_))), "{failure:?}");
    let failure = failure.to_string();
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
    let first = directory(&play(&one_round, folder.path(), NOTHING));

    let report = play(SCENARIO, folder.path(), extend);

    assert!(report.failure.is_some());
    let record = report.record.expect("something was written");
    assert_eq!(record.finished(), None);
    assert_ne!(record.directory, first);
    let status = status(&record.directory);
    assert!(status.contains(r#""state": "failed""#), "{status}");
    assert!(status.contains("it does not like this run"), "{status}");
    assert_eq!(crate::support::latest(folder.path()), first);
}

/// One env of two fails in the third step of the first round.
fn with_a_failing_env(on_env_error: &str, envs: &[usize]) -> String {
    let fault = |env: &usize| format!("(env: {env}, round: 0, step: 3, fault: env_error)");
    let faults: Vec<String> = envs.iter().map(fault).collect();
    SCENARIO
        .replace("n_envs: 2,", &format!("n_envs: 2, on_env_error: {on_env_error},"))
        .replace("policy:", &format!("faults: [{}], policy:", faults.join(", ")))
}

/// An event of each env and step that is validated.
fn tell_of_validation(app: &mut App) {
    app.on_batch(BatchPoint::Validated, |batch| {
        if batch.index == 0 {
            let (name, fields) = ("validated".into(), BTreeMap::new());
            batch.emit(UserEvent { name, fields });
        }
        Ok(())
    });
}

#[test]
fn an_env_that_fails_can_sit_out_its_round_while_the_others_continue() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let scenarios = [SCENARIO.to_owned(), with_a_failing_env("drop_env", &[1])];
    let runs = [0, 1].map(|index| {
        let text = scenarios[index].replace("rounds: 3", "rounds: 2");
        directory(&play(&text, folders[index].path(), tell_of_validation))
    });
    let of_runs = |kind: &str| runs.each_ref().map(|run| events(run, kind));

    // Its episode ends with the last step that it finished, and says why; the next round has it back.
    let [sound, episodes] = of_runs("episode_finished");
    let end = |line: &Value| json!([line["data"]["end"], line["data"]["length"]]);
    let ends: Vec<_> = episodes.iter().map(end).collect();
    let whole = json!(["horizon", 4]);
    assert_eq!(ends, [whole.clone(), json!(["failed", 2]), whole.clone(), whole]);
    let failed = &episodes[1]["data"];
    assert!(failed["error"].as_str().is_some_and(|error| error.contains("faults")));
    assert!(failed["final_accuracy"].is_number());

    // What has failed in training is not validated.
    let [_, events] = of_runs("user_event");
    let is_of_it = |event: &&Value| event["env"] == 1 && event["data"]["name"] == "validated";
    let steps: Vec<_> = events.iter().filter(is_of_it).map(|event| &event["step"]).collect();
    assert_eq!(json!(steps), json!([1, 2, 1, 2, 3, 4]));

    // The other env has played its first round as if nothing had happened, and the round is its own.
    let untouched = &sound[0]["data"];
    assert_eq!(&episodes[0]["data"], untouched);
    let [_, rounds] = of_runs("round_finished");
    assert_eq!(rounds[0]["data"]["accuracy_mean"], untouched["final_accuracy"]);
    let failures = [&rounds[0], &rounds[1]].map(|round| &round["data"]["episodes_failed"]);
    assert_eq!(failures, [1, 0]);

    // And nothing is learnt from what it did.
    let [_, updates] = of_runs("learner_update");
    assert_eq!(updates[0]["data"]["steps_valid"], 4);
}

#[test]
fn a_run_without_an_env_left_fails_as_one_that_is_to_fail_at_once_does() {
    for (on_env_error, envs) in [("abort_run", &[1][..]), ("drop_env", &[0, 1][..])] {
        let folder = tempfile::tempdir().expect("a temporary folder");

        let report = play(&with_a_failing_env(on_env_error, envs), folder.path(), NOTHING);

        let failure = report.failure.expect("the run fails").to_string();
        assert!(failure.contains("at round 1, step 3"), "{failure}");
        assert!(failure.contains(&format!("env {}", envs[0])), "{failure}");
        assert!(failure.ends_with("the scenario's faults request an error"), "{failure}");
        // The record has the events before it, though no checkpoint was left to write.
        let run = report.record.expect("it is recorded").directory;
        assert_eq!(events(&run, "user_event").len(), envs.len());
    }
}
