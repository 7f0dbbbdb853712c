//! What follows a complete rollout: an update of the policy, or a fit of the observations' statistics alone (spec 04 §2,
//! §5.2, 06 N2-N3).

use bevy_ecs::prelude::*;

use super::buffer::RolloutBuffer;
use super::metrics::UpdateRecord;
use super::ppo::Learner;
use super::systems::{PolicyLearner, School};
use crate::controller::{ActorCriticController, DecideMode};
use crate::health::Failure;
use crate::torch::{HostSyncCounter, read_f32};

/// A rollout with fewer sampled steps is worth a remark (spec 04 §6).
const FEW_DECISIONS: usize = 256;

/// The update that this round ended with; `None` if none was due.
#[derive(Resource, Default)]
pub struct LastUpdate(pub Option<UpdateRecord>);

/// Too many updates failed in a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the policy diverged: {failures} updates in a row failed; lower learner.lr, or see `learner_update` in events.jsonl"
)]
pub struct PolicyDiverged {
    pub failures: u32,
}

/// One update per rollout, then the statistics of observations move, whatever came of the update (spec 04 §2, 06 N2-N3).
pub(super) fn update_policy(
    mut last: ResMut<LastUpdate>,
    mut school: School,
    mut was_warned: Local<bool>,
) -> Result<(), Failure> {
    last.0 = None;
    let round = school.clock.round();
    let first = school.clock.length().first_round;
    let episodes = round - first + 1;
    if !episodes.is_multiple_of(school.experiment.scenario.learner.episodes_per_update) {
        return Ok(());
    }
    let reads = &*school.reads;
    let PolicyLearner { learner, buffer, .. } = &mut *school.policy;
    let (learner, buffer) = (learner.get(), buffer.get());
    let Some(policy) = school.controller.0.get().learned() else {
        return Ok(());
    };
    let updated = if learner.config().is_warm_up(round) {
        warm_up(learner, buffer, policy, round, reads).map(|()| None)
    } else {
        update(learner, buffer, policy, round, reads).map(Some)
    };
    match updated {
        Ok(record) => {
            if let Some(decisions) = record.as_ref().and_then(few_decisions)
                && !std::mem::replace(&mut *was_warned, true)
            {
                // No warning, as the chapter has it: most steps of a growing env leave nothing to decide.
                tracing::info!(
                    "a rollout holds {decisions} decisions to learn from, fewer than {FEW_DECISIONS}: updates will be \
                     noisy; raise run.n_envs, run.max_steps or learner.episodes_per_update"
                );
            }
            last.0 = record;
            Ok(())
        }
        Err(failure) => Err(Failure::from(failure)),
    }
}

/// The sampled steps of a rollout, if they are few.
fn few_decisions(record: &UpdateRecord) -> Option<usize> {
    let decisions = record.rollout.as_ref()?.steps_actor;
    (decisions < FEW_DECISIONS).then_some(decisions)
}

fn update(
    learner: &mut Learner,
    buffer: &mut RolloutBuffer,
    policy: &mut ActorCriticController,
    round: u32,
    reads: &HostSyncCounter,
) -> Result<UpdateRecord, Failure> {
    let fits = learner.config().obs_norm.learns_after(learner.counters().updates);
    let mut record = learner.learn(buffer, policy, round.into(), reads)?;
    if fits {
        commit_observations(buffer, policy, reads)?;
    }
    record.obs_norm_drift = policy.normaliser().drift();
    policy.set_updates(record.updates);
    buffer.clear()?;
    Ok(record)
}

/// A rollout of uniform actions: its observations are all that is kept of it (spec 04 §5.2).
fn warm_up(
    learner: &Learner,
    buffer: &mut RolloutBuffer,
    policy: &mut ActorCriticController,
    round: u32,
    reads: &HostSyncCounter,
) -> Result<(), Failure> {
    commit_observations(buffer, policy, reads)?;
    buffer.clear()?;
    tracing::info!("the rollout that ends with round {round} has fitted the statistics of observations, nothing else");
    if !learner.config().is_warm_up(round + 1) {
        policy.set_mode(DecideMode::Sample);
    }
    Ok(())
}

fn commit_observations(
    buffer: &RolloutBuffer,
    policy: &mut ActorCriticController,
    reads: &HostSyncCounter,
) -> Result<(), Failure> {
    let observations = buffer.valid_raw_observations()?;
    let width = policy.schema().len();
    let rows = read_f32(&observations, reads)?;
    Ok(policy.normaliser_mut().commit(rows.chunks_exact(width))?)
}

/// After the round's records, which show what went wrong, and after the checkpoint of the last good state.
pub(super) fn stop_if_diverged(mut school: School) -> Result<(), Failure> {
    let learner = school.policy.learner.get();
    if !learner.has_diverged() {
        return Ok(());
    }
    let failures = learner.counters().consecutive_failures;
    Err(Failure::from(PolicyDiverged { failures }))
}
