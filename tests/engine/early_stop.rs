//! Episodes and runs that end before their last step or round, because there is nothing to gain any more.

use simic_engine::internals::learner::LastUpdate;
use simic_engine::internals::telemetry::{EpisodeEnd, RunState};
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, told};
use crate::support::engine;

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

const LEARN: &str = r#"controller: "actor_critic", preset: "lstm_small""#;

#[test]
fn an_episode_ends_once_its_accuracy_has_not_risen_for_as_long_as_patience_lasts_or_it_has_reached_its_aim() {
    use EpisodeEnd::{EarlyStop, Horizon};
    for (controller, rule, end) in [
        (LEARN, "patience: 3", (EarlyStop, 4)),
        (WAIT, "patience: 9", (Horizon, 9)),
        (WAIT, "patience: 9, target_accuracy: Some(0.0)", (EarlyStop, 2)),
    ] {
        let run = format!("rounds: 1, early_stop: Some((min_steps: 2, min_delta: 100.0, {rule}))");
        let mut engine = engine(&scenario(controller, &run));
        engine.run().expect("the run ends well");

        let steps = engine.world().resource::<RunClock>().step();
        assert_eq!(steps, end.1, "no env was left to play for");
        let mut envs = engine.world_mut().query::<&EpisodeStats>();
        let ends = envs.iter(engine.world()).map(|stats| stats.end.expect("it ended"));
        let ends: Vec<_> = ends.map(|end| (end.reason, end.step)).collect();
        assert_eq!(ends, [end; 2], "{rule}");
        // A policy learns from episodes that ended early.
        let update = engine.world().get_resource::<LastUpdate>();
        let data = update.and_then(|update| update.0.as_ref()?.data);
        let learnt = (controller == LEARN).then_some(8);
        assert_eq!(data.map(|data| data.steps_valid), learnt);
    }
}

/// Where nothing learns there is no rollout to complete.
#[test]
fn a_run_without_a_learner_ends_once_its_rolling_accuracy_has_not_risen_for_as_long_as_patience_lasts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rule = "rounds: 8, run_early_stop: Some((patience_rounds: 2, min_delta: 100.0))";
    let scenario = scenario(WAIT, rule).replace("policy:", "learner: (episodes_per_update: 3), policy:");

    let report = crate::recorded::play(&scenario, folder.path(), NOTHING);

    // There is a rolling accuracy from the second round on.
    let record = report.record.expect("it was recorded");
    let finished = record.finished().expect("it was closed");
    assert_eq!((finished.status, finished.rounds_done), (RunState::Completed, 4));
    let notes = told(&record.directory, "note");
    let text = notes[0]["data"]["text"].as_str().expect("a text");
    assert!(text.starts_with("the run ends after 4 rounds"), "{text}");
}

#[test]
fn a_least_number_of_steps_beyond_the_episode_is_refused() {
    let rule = "rounds: 1, early_stop: Some((min_steps: 10, patience: 3, min_delta: 0.0))";

    let problems = Engine::from_ron(&scenario(WAIT, rule)).err().expect("it is refused");

    let complaint = "step 10 lies beyond the episode's 9 steps";
    assert!(problems.to_string().contains(complaint), "{problems}");
}
