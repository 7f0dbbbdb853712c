//! What a step adds to the rollout: the recurrent states that enter the decisions, the decisions, and their outcomes.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use tch::Tensor;

use super::context::{LearnerContext, live_states};
use crate::controller::{Chosen, CommandOutcome, Masks, Observation};
use crate::env::{EnvId, StepStatus};
use crate::health::Failure;
use crate::learner::algorithm::{BufferError, DecidedStep, RolloutBuffer, StepOutcome, StepTensors};
use crate::policy::RecurrentState;
use crate::reward::StepReward;
use crate::torch::catch;

/// Training sequences may start in the middle of an episode; they then start from the state that entered the step.
pub(crate) fn remember_states(envs: Query<(&EnvId, &StepStatus)>, mut context: LearnerContext) -> Result<(), Failure> {
    let envs = envs.iter().sort_unstable::<&EnvId>();
    let rows: Vec<i64> = envs
        .filter(|(_, status)| status.participates())
        .map(|(id, _)| id.index as i64)
        .collect();
    if let Some(policy) = context.controller.0.get().learned() {
        let state = live_states(policy, &rows)?;
        *context.policy.entering.get() = Some(state);
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
    let Some(entering) = context.policy.entering.get().take() else {
        return Err(Failure::message("no recurrent state was remembered"));
    };
    Ok(begin_steps(
        context.policy.buffer.get(),
        &decided,
        &observations,
        &entering,
    )?)
}

/// Uploads what the policy saw, one row a decision, and writes both into the rollout.
fn begin_steps(
    buffer: &mut RolloutBuffer,
    decided: &[DecidedStep],
    observations: &[&Observation],
    entering: &RecurrentState,
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
        state: entering,
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
