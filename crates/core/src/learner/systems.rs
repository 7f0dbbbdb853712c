//! The learner's part of the schedule, in the order of a round: it is built; a step adds to the rollout charges of rollbacks,
//! decisions, their outcomes, and the ends of episodes with the value of the state after a truncated one; a complete rollout is
//! followed by an update of the policy.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_platform::cell::SyncCell;

use super::algorithm::{BufferShape, DecidedStep, Horizon, Learner, RolloutBuffer, SegmentEnd, StepOutcome};
use super::sources::{KeptRollouts, Recordings, RecordingsError, RolloutSource, open_recordings, refill};
use super::{LearnerContext, PolicyLearner, begin_steps};
use crate::clock::RunClock;
use crate::controller::{
    ActiveController, Chosen, CommandOutcome, DecisionView, EnvRow, EnvView, Feedback, LearningPolicy, Masks,
    Observation, ObservationInput, Signals,
};
use crate::env::{EnvId, EpisodeStats, Experiment, SeedSlots, SelfTest};
use crate::governor::RollbackVerdict;
use crate::health::Failure;
use crate::nn::Implementation;
use crate::reward::{EpisodeReward, RewardHorizon, StepReward};
use crate::scenario::{Algorithm, EpisodeEnd};
use crate::seed::BlueprintRegistry;
use crate::telemetry::{EndReason, LearnerUpdate, Num, PhaseClock};
use crate::torch::{Backend, read_f32};
use crate::trajectory::{EnvTrajectory, Sizes};

/// Builds a learner and an empty rollout for the run's policy, if it learns, and reads the recordings that it learns from.
pub(crate) fn build_learner(
    mut commands: Commands,
    mut controller: ResMut<ActiveController>,
    experiment: Res<Experiment>,
    tested: Res<SelfTest>,
    blueprints: Res<BlueprintRegistry>,
) -> Result<(), Failure> {
    let config = &experiment.scenario.learner;
    commands.insert_resource(RewardHorizon::from(config));
    let Some(policy) = controller.0.get().learned() else {
        let name = experiment.scenario.policy.controller.clone();
        return match config.is_offline() {
            true => Err(RecordingsError::NoLearner(name).into()),
            false => Ok(()),
        };
    };
    let source = if config.is_offline() {
        RolloutSource::Recordings(open_recordings(policy, &experiment, &blueprints)?)
    } else if config.kept_rollouts().is_some() {
        let sizes = Sizes::of(policy.schema(), &blueprints);
        RolloutSource::Kept(KeptRollouts::new(sizes, config.episodes_learnt_from()))
    } else {
        RolloutSource::Newest
    };
    let backend = Backend::new(policy.net().params().device(), tested.kernels);
    let learner = policy_learner(policy, &experiment, tested.implementation(backend))?;
    commands.insert_resource(source);
    commands.insert_resource(learner);
    Ok(())
}

fn policy_learner(
    policy: &mut dyn LearningPolicy,
    experiment: &Experiment,
    implementation: Implementation,
) -> Result<PolicyLearner, Failure> {
    let scenario = &experiment.scenario;
    let (config, envs) = (&scenario.learner, scenario.run.n_envs);
    let horizon = Horizon {
        total_updates: config.planned_updates(scenario.run.rounds),
        envs,
    };
    let learner = Learner::new(config.clone(), horizon, scenario.run.seed, policy, implementation)?
        .with_cuda_graphs(scenario.run.cuda_graphs);
    policy.set_floor_scale(learner.schedules().probability_floor);
    policy.set_last_good(learner.last_good_params());
    let spec = policy.net().spec();
    let shape = BufferShape {
        envs,
        steps: (config.episodes_learnt_from() as usize).saturating_mul(experiment.task.max_steps as usize),
        observation: spec.observation,
        slots: spec.slots,
        blueprints: spec.blueprints,
    };
    let device = policy.net().params().device();
    Ok(PolicyLearner {
        learner: SyncCell::new(learner),
        buffer: SyncCell::new(RolloutBuffer::new(shape, device)?),
        began_with: experiment.rounds.start,
    })
}

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
pub(crate) struct PlayedEnv {
    id: &'static EnvId,
    chosen: &'static Chosen,
    masks: &'static Masks,
    observation: &'static Observation,
    outcome: &'static CommandOutcome,
    reward: Option<&'static StepReward>,
}

/// Writes the step's decisions into the rollout, all envs at once.
pub(crate) fn store_decisions(envs: Query<PlayedEnv>, mut context: LearnerContext) -> Result<(), Failure> {
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

/// Completes the step's transitions.
pub(crate) fn store_outcomes(envs: Query<PlayedEnv>, mut context: LearnerContext) -> Result<(), Failure> {
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
    fn ended_by(&self, reason: EndReason) -> bool {
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
    let (failed, envs): (Vec<_>, Vec<_>) = envs.into_iter().partition(|env| env.ended_by(EndReason::Failed));
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
        .partition(|env| episode_end == EpisodeEnd::Terminal && env.ended_by(EndReason::Horizon));
    let values = values_after(&truncated, &blueprints, &mut context)?;
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
fn values_after(
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

/// A rollout with fewer sampled steps is worth a remark.
const FEW_DECISIONS: u64 = 256;

/// The update that this round ended with. `None` if none was due.
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

/// Returns whether a rollout has ended with the current round, which is over, or none has begun yet. Checkpoints between
/// rounds hold none, so that a run that is resumed from one begins with one.
pub fn is_between_rollouts(learner: Option<&PolicyLearner>, experiment: &Experiment, clock: &RunClock) -> bool {
    let Some(policy) = learner else { return true };
    let played = clock.position().round.map_or(0, |round| round + 1 - policy.began_with);
    played.is_multiple_of(experiment.scenario.learner.episodes_per_update)
}

/// One update per rollout, then the statistics of observations move, whether or not it was performed.
pub(crate) fn update_policy(
    mut last: ResMut<LastUpdate>,
    mut context: LearnerContext,
    mut source: ResMut<RolloutSource>,
    envs: Query<(&EnvId, &EpisodeReward, &EnvTrajectory)>,
    mut phases: ResMut<PhaseClock>,
    mut was_warned: Local<bool>,
) -> Result<(), Failure> {
    last.0 = None;
    let round = context.clock.round();
    if let Some(kept) = source.kept() {
        let envs = envs.iter().sort_unstable::<&EnvId>();
        kept.take_in(round, envs.flat_map(|(_, paid, did)| did.paid(round, paid)));
    }
    if !is_between_rollouts(Some(&context.policy), &context.experiment, &context.clock) {
        return Ok(());
    }
    let (mut held_out, mut seen) = (None, None);
    match &*source {
        RolloutSource::Newest => {
            let newest = context.policy.buffer.get().valid_raw_observations()?;
            seen = Some(read_f32(&newest, &context.reads)?);
        }
        RolloutSource::Kept(kept) => {
            if envs.is_empty() {
                let message =
                    "learner.algorithm: impala learns from trajectories, and none are collected; add `CollectorPlugin`";
                return Err(Failure::message(message));
            }
            phases.add_copied(refill(&mut context, kept.by_env())?);
            let rounds = context.experiment.scenario.learner.episodes_per_update;
            seen = Some(kept.seen_since(round + 1 - rounds.min(round + 1)));
        }
        // Their statistics are known from the beginning.
        RolloutSource::Recordings(recordings) => held_out = fill_from(recordings, &mut context, &mut phases)?,
    }
    let PolicyLearner { learner, buffer, .. } = &mut *context.policy;
    let (learner, buffer) = (learner.get(), buffer.get());
    let Some(policy) = context.controller.0.get().learned() else {
        return Ok(());
    };
    let mut update = learner.learn(buffer, policy, round.into(), &context.reads)?;
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

/// Fills the rollout with recordings. Returns how unlikely the policy finds, in nats a choice, what it never learns from.
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
