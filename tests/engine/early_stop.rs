//! Episodes and runs that end before their last step or round, because there is nothing to gain any more.

use simic_engine::internals::learner::LastUpdate;
use simic_engine::internals::telemetry::{EndReason, RunState};
use simic_engine::prelude::*;

use crate::recorded::events;
use crate::support::builder;

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

/// An application in which no accuracy ever rises by more than half a point: the first one counts as a rise, none after it.
fn never_rising(app: &mut App) {
    let level = |mut envs: Query<&mut ValMetrics>, clock: Res<RunClock>| {
        for mut metrics in &mut envs {
            metrics.accuracy_percent = 50.0 + 0.05 * f64::from(clock.step());
        }
    };
    app.add_systems(Assess, level.after(Work::DeriveValMetrics).before(Work::CountCompute));
}

const WAIT: &str = r#"controller: "wait""#;

const LEARN: &str = r#"controller: "actor_critic""#;

#[test]
fn an_episode_ends_once_its_accuracy_has_not_risen_for_as_long_as_patience_lasts() {
    use EndReason::{EarlyStop, Horizon};
    for (controller, patience, end) in [(LEARN, 3, (EarlyStop, 4)), (WAIT, 9, (Horizon, 9))] {
        let text = scenario(controller, &format!("rounds: 1, early_stop: {patience}"));
        let engine = builder().threads(2).with(never_rising).from_ron(&text);
        let mut engine = engine.expect("the scenario is sound");
        engine.run().expect("the run ends well");

        let steps = engine.world().resource::<RunClock>().step();
        assert_eq!(steps, end.1, "no env was left to play for");
        let mut envs = engine.world_mut().query::<&EpisodeStats>();
        let ends = envs.iter(engine.world()).map(|stats| stats.end.expect("it ended"));
        let ends: Vec<_> = ends.map(|end| (end.reason, end.step)).collect();
        assert_eq!(ends, [end; 2], "{patience}");
        // A policy learns from episodes that ended early.
        let update = engine.world().get_resource::<LastUpdate>();
        let data = update.and_then(|update| update.0.as_ref()?.data);
        let learnt = (controller == LEARN).then_some(8);
        assert_eq!(data.map(|data| data.steps_valid), learnt);
    }
}

/// There is no rollout to complete if nothing learns.
#[test]
fn a_run_without_a_learner_ends_once_its_rolling_accuracy_has_not_risen_for_as_long_as_patience_lasts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = scenario(WAIT, "rounds: 8, run_early_stop: 2");
    let scenario = scenario.replace("policy:", "learner: (episodes_per_update: 3), policy:");

    let report = crate::recorded::play(&scenario, folder.path(), never_rising);

    // There is a rolling accuracy from the second round on.
    let record = report.record.expect("it was recorded");
    let finished = record.finished().expect("it was closed");
    assert_eq!((finished.status, finished.rounds_done), (RunState::Completed, 4));
    let notes = events(&record.directory, "note");
    let text = notes[0]["data"]["text"].as_str().expect("a text");
    assert!(text.starts_with("the run ends after 4 rounds"), "{text}");
}
