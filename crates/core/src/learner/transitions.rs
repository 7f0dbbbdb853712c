//! What a step adds to the rollout, in its order: charges of rollbacks, decisions, their outcomes, and the ends of episodes with
//! the value of the state after a truncated one.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use tch::Tensor;

use super::LearnerContext;
use super::algorithm::{BufferError, DecidedStep, RolloutBuffer, SegmentEnd, StepOutcome, StepTensors};
use crate::controller::{
    Chosen, CommandOutcome, DecisionView, EnvRow, EnvView, Feedback, Masks, Observation, ObservationInput, Signals,
};
use crate::env::{EnvId, EpisodeStats, SeedSlots};
use crate::governor::RollbackVerdict;
use crate::health::Failure;
use crate::reward::{EpisodeReward, StepReward};
use crate::scenario::EpisodeEnd;
use crate::seed::BlueprintRegistry;
use crate::telemetry::EpisodeEnd as Ending;
use crate::torch::catch;

/// Charges every rollback of the step that is blamed on the controller to the transitions of its env, at once: no decision
/// of this step can be credited with the state after it. Without blame, segment and recurrent state continue.
pub(crate) fn credit_rollbacks(
    mut envs: Query<(&EnvId, &mut RollbackVerdict, Option<&mut EpisodeReward>)>,
    mut context: LearnerContext,
) -> Result<(), Failure> {
    for (id, mut verdict, rewards) in &mut envs {
        let Some(rollback) = verdict.0.as_mut().filter(|rollback| rollback.blamed) else {
            continue;
        };
        let penalty = context.policy.learner.get().clamp_penalty(rollback.raw_penalty);
        let row = id.index;
        let buffer = context.policy.buffer.get();
        if let Some(steps_forfeited) = buffer.rollback(row, penalty, rollback.snapshot_step)? {
            rollback.is_charged = true;
            if let Some(mut rewards) = rewards {
                rewards.charge_rollback(steps_forfeited, rollback.raw_penalty);
            }
        }
        context.reset_rows(&[row]);
    }
    Ok(())
}

/// An env's decision and what followed it.
#[derive(QueryData)]
pub(crate) struct DecidingEnv {
    id: &'static EnvId,
    chosen: &'static Chosen,
    masks: &'static Masks,
    observation: &'static Observation,
    outcome: &'static CommandOutcome,
    reward: Option<&'static StepReward>,
}

/// Writes the step's decisions into the rollout, all envs at once.
pub(crate) fn store_decisions(envs: Query<DecidingEnv>, mut context: LearnerContext) -> Result<(), Failure> {
    let units = context.policy.learner.get().value_units();
    let (round, step) = (context.clock.round(), context.clock.step());
    let mut decided = Vec::new();
    let mut observations = Vec::new();
    let envs: Vec<_> = envs.iter().sort_unstable::<&EnvId>().collect();
    for env in &envs {
        let (Some(decision), Some(masks)) = (&env.chosen.0, &env.masks.0) else {
            continue;
        };
        let Some(sample) = &decision.sample else {
            let message = "the learned controller took a decision that it did not sample";
            return Err(Failure::message(message));
        };
        decided.push(DecidedStep {
            env: env.id.index,
            round,
            step,
            indices: decision.indices,
            log_probs: sample.log_probs,
            value: units.raw(sample.value.into()) as f32,
            masks,
        });
        observations.push(env.observation);
    }
    if decided.is_empty() {
        return Ok(());
    }
    Ok(begin_steps(context.policy.buffer.get(), &decided, &observations)?)
}

/// Uploads what the policy saw, one row a decision, and writes both into the rollout.
pub(super) fn begin_steps(
    buffer: &mut RolloutBuffer,
    decided: &[DecidedStep],
    observations: &[&Observation],
) -> Result<(), BufferError> {
    let matrix = |row: fn(&Observation) -> &[f32]| -> Vec<f32> {
        observations.iter().flat_map(|seen| row(seen)).copied().collect()
    };
    let blueprints: Vec<i64> = observations
        .iter()
        .flat_map(|seen| seen.blueprints.iter().copied())
        .collect();
    let rows = observations.len() as i64;
    let device = buffer.device();
    let (normalised, raw, blueprints) = catch(|| {
        let upload = |values: &[f32]| Tensor::from_slice(values).view([rows, -1]).to_device(device);
        (
            upload(&matrix(|seen| &seen.normalised)),
            upload(&matrix(|seen| &seen.raw)),
            Tensor::from_slice(&blueprints).view([rows, -1]).to_device(device),
        )
    })?;
    let tensors = StepTensors {
        observations: &normalised,
        raw_observations: &raw,
        blueprints: &blueprints,
    };
    buffer.begin_steps(decided, &tensors)
}

/// Completes the step's transitions.
pub(crate) fn store_outcomes(envs: Query<DecidingEnv>, mut context: LearnerContext) -> Result<(), Failure> {
    let envs: Vec<_> = envs
        .iter()
        .sort_unstable::<&EnvId>()
        .filter(|env| env.chosen.0.is_some())
        .collect();
    let outcomes: Vec<StepOutcome> = envs
        .iter()
        .map(|env| StepOutcome {
            env: env.id.index,
            reward: env
                .reward
                .and_then(|reward| reward.0)
                .map_or(0.0, |breakdown| breakdown.total() as f32),
            effective_op: env.outcome.effective_op,
        })
        .collect();
    Ok(context.policy.buffer.get().complete_steps(&outcomes)?)
}

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
    let (round, step) = (context.clock.round(), context.clock.step());
    let units = context.policy.learner.get().value_units();
    let Some(policy) = context.controller.0.get().learned().filter(|_| !envs.is_empty()) else {
        return Ok(Vec::new());
    };
    let mut seen = Vec::with_capacity(envs.len());
    for env in envs {
        let row = EnvRow::of(env.id, &context.experiment, &context.clock);
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
