//! What an episode's end adds to the rollout: the end of a segment, and the value of the state after a truncated one.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;

use super::context::LearnerContext;
use crate::controller::{DecisionView, EnvView, Feedback, Observation, ObservationInput, Signals};
use crate::env::{EnvId, EpisodeStats, SeedSlots};
use crate::health::Failure;
use crate::learner::algorithm::SegmentEnd;
use crate::scenario::EpisodeEnd;
use crate::seed::BlueprintRegistry;
use crate::telemetry::EpisodeEnd as Ending;

/// An env whose episode may have ended in this step.
#[derive(QueryData)]
pub(crate) struct EndingEnv {
    id: &'static EnvId,
    stats: &'static EpisodeStats,
    slots: &'static SeedSlots,
    signals: &'static Signals,
    feedback: &'static Feedback,
}

impl EndingEnvItem<'_, '_> {
    fn ended_by(&self, reason: Ending) -> bool {
        self.stats.end.is_some_and(|end| end.reason == reason)
    }
}

/// Closes the segments of episodes that ended in this step. The value after a truncated one is estimated from the state after
/// the tick, with the recurrent state after the last decision. Only the end at the horizon can be a terminal state: at any
/// other end the episode could have continued. Transitions of a failed env are not learnt from.
pub(crate) fn end_segments(
    envs: Query<EndingEnv>,
    blueprints: Res<BlueprintRegistry>,
    mut context: LearnerContext,
) -> Result<(), Failure> {
    let step = context.clock.step();
    let ends_now = |env: &EndingEnvItem| env.stats.end.is_some_and(|end| end.step == step);
    // A rollback that was charged has closed the segment of its env already.
    let buffer = context.policy.buffer.get();
    let envs: Vec<_> = envs
        .iter()
        .sort_unstable::<&EnvId>()
        .filter(|env| ends_now(env) && buffer.has_open_segment(env.id.index))
        .collect();
    let (failed, envs): (Vec<_>, Vec<_>) = envs.into_iter().partition(|env| env.ended_by(Ending::Failed));
    for env in &failed {
        let row = env.id.index;
        context.policy.buffer.get().abandon_segment(row)?;
        context.reset_rows(&[row]);
    }
    if envs.is_empty() {
        return Ok(());
    }
    let rows: Vec<usize> = envs.iter().map(|env| env.id.index).collect();
    let episode_end = context.experiment.scenario.learner.episode_end;
    let (terminal, truncated): (Vec<_>, Vec<_>) = envs
        .into_iter()
        .partition(|env| episode_end == EpisodeEnd::Terminal && env.ended_by(Ending::Horizon));
    let values = look_behind(&truncated, &blueprints, &mut context)?;
    let truncated = truncated.iter().zip(values);
    let ends: Vec<(usize, SegmentEnd)> = terminal
        .iter()
        .map(|env| (env.id.index, SegmentEnd::Terminal))
        .chain(truncated.map(|(env, bootstrap)| (env.id.index, SegmentEnd::Truncated { bootstrap })))
        .collect();
    context.policy.buffer.get().end_segments(&ends)?;
    context.reset_rows(&rows);
    Ok(())
}

/// Raw values of the states that the envs are in now, after the tick.
fn look_behind(
    envs: &[EndingEnvItem],
    blueprints: &BlueprintRegistry,
    context: &mut LearnerContext,
) -> Result<Vec<f32>, Failure> {
    let rows: Vec<_> = envs.iter().map(|env| context.row(env.id)).collect();
    let (round, step) = (context.clock.round(), context.clock.step());
    let units = context.policy.learner.get().value_units();
    let Some(policy) = context.controller.0.get().learned().filter(|_| !envs.is_empty()) else {
        return Ok(Vec::new());
    };
    let mut seen = Vec::with_capacity(envs.len());
    for (env, row) in envs.iter().zip(rows) {
        let reports = env
            .slots
            .reports(blueprints, &context.experiment.scenario.lifecycle.gates);
        let mut observation = Observation::default();
        let input = ObservationInput {
            at: row.at(step),
            signals: &env.signals.0,
            feedback: env.feedback.0,
            reports: &reports,
        };
        policy.schema().observe(&input, &mut observation)?;
        policy
            .normaliser()
            .normalise(&observation.raw, &mut observation.normalised);
        seen.push((row, reports, observation));
    }
    let views: Vec<EnvView> = envs
        .iter()
        .zip(&seen)
        .map(|(env, (row, reports, observation))| EnvView {
            row: *row,
            reports,
            signals: &env.signals.0,
            observation: Some(observation),
        })
        .collect();
    let view = DecisionView {
        round,
        step,
        envs: &views,
        reads: &context.reads,
    };
    let values = policy.value(&view)?;
    let raw = values.into_iter().map(|value| units.raw(value.into()) as f32);
    Ok(raw.collect())
}
