//! Episodes and runs that end before their last step or round, because there is nothing to gain any more.

use simic_engine::internals::learner::LastUpdate;
use simic_engine::internals::telemetry::{EpisodeEnd, RunState};
use simic_engine::prelude::*;

use crate::support::{engine, lines};

use crate::recorded::NOTHING;

/// No accuracy ever rises by 100 points: the first one counts as a rise, none after it.
fn scenario(controller: &str, run: &str) -> String {
    format!(
        r#"(
            name: "early",
            preset: "manual", task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (n_envs: 2, max_steps: 9, {run}),
            policy: ({controller}),
        )"#
    )
}

const WAIT: &str = r#"controller: "wait""#;

/// By env: why and in which step the last episode ended.
fn ends(engine: &mut Engine) -> Vec<(EpisodeEnd, u32)> {
    let world = engine.world_mut();
    let mut envs: Vec<_> = world.query::<(&EnvId, &EpisodeStats)>().iter(world).collect();
    envs.sort_unstable_by_key(|(id, _)| id.index);
    let ends = envs.into_iter().map(|(_, stats)| stats.end.expect("it ended"));
    ends.map(|end| (end.reason, end.step)).collect()
}

#[test]
fn an_episode_ends_once_its_accuracy_has_not_risen_for_as_long_as_patience_lasts() {
    let rule = "rounds: 1, early_stop: Some((min_steps: 2, patience: 3, min_delta: 100.0))";
    let mut early = engine(&scenario(WAIT, rule));
    early.run().expect("the run ends well");
    assert_eq!(ends(&mut early), [(EpisodeEnd::EarlyStop, 4); 2]);
    assert_eq!(
        early.world().resource::<RunClock>().step(),
        4,
        "no env was left to play for"
    );

    let mut patient = engine(&scenario(WAIT, &rule.replace("patience: 3", "patience: 9")));
    patient.run().expect("the run ends well");
    assert_eq!(ends(&mut patient), [(EpisodeEnd::Horizon, 9); 2]);
}

#[test]
fn an_episode_that_has_reached_its_aim_ends_after_its_least_number_of_steps() {
    let rule = "rounds: 1, early_stop: Some((min_steps: 2, patience: 9, min_delta: 0.0, target_accuracy: Some(0.0)))";
    let mut engine = engine(&scenario(WAIT, rule));

    engine.run().expect("the run ends well");

    assert_eq!(ends(&mut engine), [(EpisodeEnd::EarlyStop, 2); 2]);
}

#[test]
fn a_policy_learns_from_episodes_that_ended_early() {
    let policy = r#"controller: "actor_critic", preset: "lstm_small""#;
    let rule = "rounds: 1, early_stop: Some((min_steps: 2, patience: 3, min_delta: 100.0))";
    let mut engine = engine(&scenario(policy, rule));

    engine.run().expect("the run ends well");

    let update = engine
        .world()
        .resource::<LastUpdate>()
        .0
        .as_ref()
        .expect("the round ended with one");
    let data = update.data.expect("there were steps");
    assert_eq!(data.steps_valid, 8);
}

#[test]
fn a_run_ends_once_its_rolling_accuracy_has_not_risen_for_as_long_as_patience_lasts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rule = "rounds: 8, run_early_stop: Some((patience_rounds: 2, min_delta: 100.0))";

    let report = crate::recorded::play(&scenario(WAIT, rule), folder.path(), NOTHING);

    // There is a rolling accuracy from the second round on.
    let record = report.record.expect("it was recorded");
    let finished = record.finished().expect("it was closed");
    assert_eq!((finished.status, finished.rounds_done), (RunState::Completed, 4));
    let is_note = |line: &&serde_json::Value| line["type"] == "note";
    let events = lines(&record.directory);
    let note = events.iter().find(is_note).expect("it says so");
    let text = note["data"]["text"].as_str().expect("a text");
    assert!(text.starts_with("the run ends after 4 rounds"), "{text}");
}

/// Where nothing learns there is no rollout to complete.
#[test]
fn a_run_without_a_learner_ends_in_the_middle_of_what_would_be_a_rollout() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rule = "rounds: 8, run_early_stop: Some((patience_rounds: 2, min_delta: 100.0))";
    let scenario = scenario(WAIT, rule).replace("policy:", "learner: (episodes_per_update: 3), policy:");

    let report = crate::recorded::play(&scenario, folder.path(), NOTHING);

    let record = report.record.expect("it was recorded");
    let finished = record.finished().expect("it was closed");
    assert_eq!(finished.rounds_done, 4);
}

#[test]
fn a_least_number_of_steps_beyond_the_episode_is_refused() {
    let rule = "rounds: 1, early_stop: Some((min_steps: 10, patience: 3, min_delta: 0.0))";

    let problems = Engine::from_ron(&scenario(WAIT, rule))
        .err()
        .expect("it is refused")
        .to_string();

    assert!(
        problems.contains("step 10 lies beyond the episode's 9 steps"),
        "{problems}"
    );
}
