//! What a step adds to the rollout: the state that entered the decisions, the decisions, what became of them (spec 04 §3).

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use tch::Tensor;

use super::buffer::RolloutBuffer;
use super::error::BufferError;
use super::record::{DecidedStep, StepOutcome, StepTensors};
use super::systems::School;
use crate::controller::{ActorCriticController, Chosen, Masks, Observation, Outcome, RecurrentState};
use crate::env::{EnvId, SeedSlots, StepStatus};
use crate::health::Failure;
use crate::reward::StepReward;
use crate::seed::SeedRecord;
use crate::telemetry::ActionId;
use crate::torch::catch;

/// Training sequences may start in the middle of an episode; they then start from the state that entered the step.
pub(super) fn remember_states(envs: Query<(&EnvId, &StepStatus)>, mut school: School) -> Result<(), Failure> {
    let mut rows: Vec<_> = envs
        .iter()
        .filter(|(_, status)| status.participates())
        .map(|(id, _)| (id.index, id.index_in_group as i64))
        .collect();
    rows.sort_unstable();
    let rows: Vec<i64> = rows.into_iter().map(|(_, row)| row).collect();
    let Some(policy) = school.controller.0.get().learned() else {
        return Ok(());
    };
    let state = live_states(policy, &rows)?;
    *school.policy.entering.get() = Some(state);
    Ok(())
}

/// Copies of the live recurrent states of some rows of the group.
pub(super) fn live_states(policy: &mut ActorCriticController, rows: &[i64]) -> Result<RecurrentState, Failure> {
    let state = policy.recurrent()?;
    let device = state.0.first().map_or(tch::Device::Cpu, Tensor::device);
    Ok(catch(|| state.select(&Tensor::from_slice(rows).to_device(device)))?)
}

/// What a decision left behind on an env.
#[derive(QueryData)]
pub(super) struct DecidedEnv {
    id: &'static EnvId,
    chosen: &'static Chosen,
    masks: &'static Masks,
    observation: &'static Observation,
}

/// Writes the step's decisions into the rollout, all envs at once (spec 04 §3.2).
pub(super) fn store_decisions(envs: Query<DecidedEnv>, mut school: School) -> Result<(), Failure> {
    let mut envs: Vec<_> = envs.iter().filter(|env| env.chosen.0.is_some()).collect();
    if envs.is_empty() {
        return Ok(());
    }
    envs.sort_unstable_by_key(|env| env.id.index);
    let units = school.policy.learner.get().value_units();
    let step = school.clock.step();
    let mut decided = Vec::with_capacity(envs.len());
    for env in &envs {
        let (Some(decision), Some(masks)) = (&env.chosen.0, &env.masks.0) else {
            continue;
        };
        let Some(sample) = &decision.sample else {
            let message = "the learned controller took a decision that it did not sample";
            return Err(Failure::from(Failure::message(message)));
        };
        let episode = school.row(env.id).episode;
        let action = ActionId {
            episode: episode as u32,
            step,
        };
        decided.push(DecidedStep {
            env: env.id.index_in_group,
            episode,
            action_id: action.code(),
            indices: decision.indices,
            log_probs: sample.log_probs,
            value: units.raw(sample.value.into()) as f32,
            masks,
            scripted: false,
        });
    }
    let Some(entering) = school.policy.entering.get().take() else {
        return Err(Failure::from(Failure::message("no recurrent state was remembered")));
    };
    let observations: Vec<&Observation> = envs.iter().map(|env| env.observation).collect();
    let stored = begin_steps(school.policy.buffer.get(), &decided, &observations, &entering);
    stored.map_err(Failure::from)
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

/// What became of a decision.
#[derive(QueryData)]
pub(super) struct RewardedEnv {
    id: &'static EnvId,
    chosen: &'static Chosen,
    outcome: &'static Outcome,
    reward: Option<&'static StepReward>,
    slots: &'static SeedSlots,
}

/// Completes the step's transitions (spec 06 X5).
pub(super) fn store_outcomes(envs: Query<RewardedEnv>, mut school: School) -> Result<(), Failure> {
    let mut envs: Vec<_> = envs.iter().filter(|env| env.chosen.0.is_some()).collect();
    envs.sort_unstable_by_key(|env| env.id.index);
    let contributions: Vec<Vec<Option<f32>>> = envs.iter().map(|env| fresh_contributions(env.slots)).collect();
    let outcomes: Vec<StepOutcome> = envs
        .iter()
        .zip(&contributions)
        .map(|(env, contributions)| StepOutcome {
            env: env.id.index_in_group,
            reward: env
                .reward
                .and_then(|reward| reward.0)
                .map_or(0.0, |breakdown| breakdown.total() as f32),
            effective_op: env.outcome.effective_op,
            contributions,
        })
        .collect();
    let stored = school.policy.buffer.get().complete_steps(&outcomes);
    stored.map_err(Failure::from)
}

/// Contributions that this step measured, by slot.
fn fresh_contributions(slots: &SeedSlots) -> Vec<Option<f32>> {
    let fresh = |record: Option<&SeedRecord>| {
        let seed = record.filter(|seed| seed.contribution.age == Some(0))?;
        seed.contribution.value.map(|points| points as f32)
    };
    slots.records().map(fresh).collect()
}
