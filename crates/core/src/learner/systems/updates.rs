//! What follows a complete rollout: an update of the policy.

use bevy_ecs::prelude::*;

use super::context::{LearnerContext, PolicyLearner};
use super::kept::KeptRollouts;
use super::recordings::Recordings;
use super::refill::refill;
use crate::clock::RunClock;
use crate::env::{EnvId, Experiment};
use crate::health::Failure;
use crate::reward::EpisodeReward;
use crate::scenario::Algorithm;
use crate::telemetry::{LearnerUpdate, Num, PhaseClock};
use crate::torch::read_f32;
use crate::trajectory::EnvTrajectory;

/// A rollout with fewer sampled steps is worth a remark.
const FEW_DECISIONS: u64 = 256;

/// The update that this round ended with; `None` if none was due.
#[derive(Resource, Default)]
pub struct LastUpdate(pub Option<LearnerUpdate>);

/// Too many updates failed in a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the policy diverged: {failures} updates in a row failed; lower learner.lr, or see `learner_update` in events.jsonl"
)]
pub struct PolicyDiverged {
    /// Failed updates since the last successful one.
    pub failures: u32,
}

/// Rounds of a rollout; 1 where nothing learns.
pub fn rollout_rounds(learner: Option<&PolicyLearner>, experiment: &Experiment) -> u32 {
    learner.map_or(1, |_| experiment.scenario.learner.episodes_per_update)
}

/// Whether a rollout has ended with the present round, which is over, or none has begun yet. Checkpoints between rounds
/// hold none, so that a run that is resumed from one begins with one.
pub fn is_between_rollouts(learner: Option<&PolicyLearner>, experiment: &Experiment, clock: &RunClock) -> bool {
    let Some(policy) = learner else { return true };
    let played = clock.position().round.map_or(0, |round| round + 1 - policy.began_with);
    played.is_multiple_of(rollout_rounds(learner, experiment))
}

/// One update per rollout, then the statistics of observations move, whether or not it was performed.
pub(crate) fn update_policy(
    mut last: ResMut<LastUpdate>,
    mut context: LearnerContext,
    (recordings, mut kept): (Option<Res<Recordings>>, Option<ResMut<KeptRollouts>>),
    envs: Query<(&EnvId, &EpisodeReward, &EnvTrajectory)>,
    (mut phases, mut was_warned): (ResMut<PhaseClock>, Local<bool>),
) -> Result<(), Failure> {
    last.0 = None;
    let round = context.clock.round();
    if let Some(kept) = &mut kept {
        let envs = envs.iter().sort_unstable::<&EnvId>();
        kept.take_in(round, envs.flat_map(|(_, paid, did)| did.paid(round, paid)));
    }
    if !is_between_rollouts(Some(&context.policy), &context.experiment, &context.clock) {
        return Ok(());
    }
    let held_out = match (&recordings, &kept) {
        (Some(recordings), _) => fill_from(recordings, &mut context, &mut phases)?,
        (None, Some(kept)) => {
            if envs.is_empty() {
                let message =
                    "learner.algorithm: impala learns from trajectories, and none are collected; add `CollectorPlugin`";
                return Err(Failure::message(message));
            }
            phases.add_copied(refill(&mut context, kept.by_env())?);
            None
        }
        (None, None) => None,
    };
    let reads = &*context.reads;
    let first = round + 1 - context.experiment.scenario.learner.episodes_per_update.min(round + 1);
    let PolicyLearner { learner, buffer, .. } = &mut *context.policy;
    let (learner, buffer) = (learner.get(), buffer.get());
    let Some(policy) = context.controller.0.get().learned() else {
        return Ok(());
    };
    // Of recordings they are known from the beginning.
    let seen = match (&recordings, &kept) {
        (Some(_), _) => None,
        (None, Some(kept)) => Some(kept.seen_since(first)),
        (None, None) => Some(read_f32(&buffer.valid_raw_observations()?, reads)?),
    };
    let mut update = learner.learn(buffer, policy, round.into(), reads)?;
    if let Some(rows) = seen {
        let width = policy.schema().len();
        policy.normaliser_mut().commit(rows.chunks_exact(width))?;
    }
    update.held_out_nll = held_out.map(Num);
    policy.set_updates(update.updates);
    buffer.clear()?;
    let decisions = update.data.map_or(FEW_DECISIONS, |data| data.steps_actor);
    if decisions < FEW_DECISIONS && !std::mem::replace(&mut *was_warned, true) {
        // No warning: most steps of a growing env leave nothing to decide.
        tracing::info!(
            "a rollout holds {decisions} decisions to learn from, fewer than {FEW_DECISIONS}: updates will be noisy; \
             raise run.n_envs, run.max_steps or learner.episodes_per_update"
        );
    }
    last.0 = Some(update);
    Ok(())
}

/// Fills the rollout with recordings; gives how unlikely the policy finds, in nats a choice, what it never learns from.
fn fill_from(
    recordings: &Recordings,
    context: &mut LearnerContext,
    phases: &mut PhaseClock,
) -> Result<Option<f64>, Failure> {
    let experiment = &*context.experiment;
    let (config, envs) = (&experiment.scenario.learner, experiment.scenario.run.n_envs);
    let (algorithm, count) = (config.algorithm, envs * config.episodes_per_update as usize);
    let held_out = recordings.held_out(count, experiment)?;
    let drawn = recordings.drawn(count, context.clock.round(), experiment)?;
    let by_row = |(place, segment)| (place % envs, segment);
    phases.add_copied(refill(context, held_out.iter().enumerate().map(by_row))?);
    let unlikely = context.policy.buffer.get().negative_log_likelihood();
    phases.add_copied(refill(context, drawn.iter().enumerate().map(by_row))?);
    if algorithm == Algorithm::Ppo {
        context.policy.buffer.get().leave_out_stale();
    }
    Ok(unlikely)
}

/// After the round's records, which show what went wrong, and after the checkpoint of the last good state.
pub(crate) fn stop_if_diverged(mut context: LearnerContext) -> Result<(), Failure> {
    let learner = context.policy.learner.get();
    if !learner.has_diverged() {
        return Ok(());
    }
    let failures = learner.counters().consecutive_failures;
    Err(Failure::from(PolicyDiverged { failures }))
}
