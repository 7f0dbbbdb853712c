//! What an episode's end adds to the rollout: the end of a segment, and the value of what a truncated one would have gone
//! on to (spec 04 §2, 06 E2).

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;

use super::segments::SegmentEnd;
use super::systems::School;
use crate::controller::{
    ActorCriticController, Controller, DecisionPoint, DecisionView, EnvRow, EnvView, Feedback, Observation,
    ObservationInput, Signals,
};
use crate::env::{EnvId, EpisodeStats, SeedSlots, StepStatus};
use crate::health::Failure;
use crate::scenario::EpisodeEnd;
use crate::seed::BlueprintRegistry;

/// An env whose episode may have ended in this step.
#[derive(QueryData)]
pub(super) struct EndingEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    stats: &'static EpisodeStats,
    slots: &'static SeedSlots,
    signals: &'static Signals,
    feedback: &'static Feedback,
}

/// Closes the segments of episodes that ended in this step. What a truncated one would have gone on to is estimated from
/// the state after the tick, with the recurrent state after the last decision (spec 06 E2).
pub(super) fn end_segments(
    envs: Query<EndingEnv>,
    blueprints: Res<BlueprintRegistry>,
    mut school: School,
) -> Result<(), Failure> {
    let step = school.clock.step();
    let ends_now = |env: &EndingEnvItem| env.stats.end.is_some_and(|end| end.step == step);
    // A rollback has closed the segment of its env already.
    let mut envs: Vec<_> = envs
        .iter()
        .filter(|env| ends_now(env) && env.status.participates())
        .collect();
    if envs.is_empty() {
        return Ok(());
    }
    envs.sort_unstable_by_key(|env| env.id.index);
    let bootstraps = match school.experiment.scenario.learner.episode_end {
        EpisodeEnd::Terminal => vec![None; envs.len()],
        EpisodeEnd::Truncated => values_after(&envs, &blueprints, &mut school)?
            .into_iter()
            .map(Some)
            .collect(),
    };
    let ends: Vec<(usize, SegmentEnd)> = envs
        .iter()
        .zip(bootstraps)
        .map(|(env, bootstrap)| {
            let end = bootstrap.map_or(SegmentEnd::Terminal, |bootstrap| SegmentEnd::Truncated { bootstrap });
            (env.id.index_in_group, end)
        })
        .collect();
    let closed = school.policy.buffer.get().end_segments(&ends);
    closed.map_err(Failure::from)?;
    let rows: Vec<usize> = ends.iter().map(|(row, _)| *row).collect();
    school.note_final_states(&rows)?;
    if let Some(policy) = school.controller.0.get().learned() {
        policy.reset_rows(&rows);
    }
    Ok(())
}

/// Raw values of the states that the envs are in now, after the tick.
fn values_after(
    envs: &[EndingEnvItem],
    blueprints: &BlueprintRegistry,
    school: &mut School,
) -> Result<Vec<f32>, Failure> {
    let reports: Vec<_> = envs.iter().map(|env| env.slots.reports(blueprints)).collect();
    let rows: Vec<EnvRow> = envs.iter().map(|env| school.row(env.id)).collect();
    let (round, step) = (school.clock.round(), school.clock.step());
    let units = school.policy.learner.get().value_units();
    let reads = &*school.reads;
    let Some(policy) = school.controller.0.get().learned() else {
        return Ok(Vec::new());
    };
    let evaluate = |policy: &mut ActorCriticController| -> Result<Vec<f32>, Failure> {
        let mut observations = Vec::with_capacity(envs.len());
        for ((env, reports), row) in envs.iter().zip(&reports).zip(&rows) {
            let mut observation = Observation::default();
            let at = DecisionPoint {
                env: row.env,
                episode: row.episode,
                step,
            };
            let input = ObservationInput {
                at,
                signals: &env.signals.0,
                feedback: env.feedback.0,
                reports,
            };
            policy.schema().observe(&input, &mut observation)?;
            policy.normaliser().apply(&mut observation);
            observations.push(observation);
        }
        let views: Vec<EnvView> = envs
            .iter()
            .zip(&reports)
            .zip(rows.iter().zip(&observations))
            .map(|((env, reports), (&row, observation))| EnvView {
                row,
                reports,
                signals: &env.signals.0,
                observation: Some(observation),
            })
            .collect();
        let view = DecisionView {
            round,
            step,
            envs: &views,
            reads,
        };
        let values = policy.value(&view)?.unwrap_or_default();
        Ok(values.into_iter().map(|value| units.raw(value.into()) as f32).collect())
    };
    evaluate(policy)
}
