//! The learner's part of the schedule: what the policy of the run lived through, and its update (spec 04 §2).

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;
use tch::Tensor;

use super::metrics::UpdateRecord;
use super::{
    Attribution, BufferShape, DecidedStep, Horizon, Learner, LearnerStream, RolloutBuffer, SegmentEnd, StepOutcome,
    StepTensors,
};
use crate::controller::{
    ActiveController, ActorCriticController, Chosen, Controller, DecideMode, DecisionPoint, DecisionView, EnvRow,
    EnvView, Feedback, Masks, Observation, ObservationInput, Outcome, RecurrentState, Signals, TrainablePolicy,
};
use crate::env::{Backend, EnvId, EpisodeStats, Experiment, RunClock, SeedSlots, StepStatus, round_is_complete};
use crate::governor::{Credit, RollbackVerdict};
use crate::health::{EngineError, Failure, Position, record_failure};
use crate::reward::{EpisodeReward, RewardHorizon, StepReward};
use crate::scenario::{EpisodeEnd, RollbackCredit};
use crate::schedule::{Act, Assess, Decide, RoundEnd, Startup, StepEnd, Work};
use crate::seed::BlueprintRegistry;
use crate::telemetry::ActionId;
use crate::torch::{HostSyncCounter, catch, read_f32};

/// A rollout with fewer sampled steps is worth a warning (spec 04 §6).
const FEW_DECISIONS: usize = 256;

/// The learner of the run's policy and the rollout that it collects; absent if the controller has nothing to learn.
#[derive(Resource)]
pub struct PolicyLearner {
    pub learner: SyncCell<Learner>,
    pub buffer: SyncCell<RolloutBuffer>,
    /// Recurrent state that enters the decisions of this step, in the order of the deciding envs.
    entering: SyncCell<Option<RecurrentState>>,
}

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

/// Trains the run's policy, if it has one that learns. Without this plugin policies stay as they are.
pub struct LearnerPlugin;

impl Plugin for LearnerPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<LastUpdate>();
        app.add_systems(Startup, build_learner.pipe(record_failure).in_set(Work::BuildLearner));
        let learns = resource_exists::<PolicyLearner>;
        app.add_systems(
            Assess,
            credit_rollbacks
                .pipe(record_failure)
                .in_set(Work::CreditRollbacks)
                .run_if(learns),
        )
        .add_systems(
            Decide,
            (
                remember_states
                    .pipe(record_failure)
                    .in_set(Work::RememberStates)
                    .run_if(learns),
                store_decisions
                    .pipe(record_failure)
                    .in_set(Work::StoreDecisions)
                    .run_if(learns),
            ),
        )
        .add_systems(
            Act,
            store_outcomes
                .pipe(record_failure)
                .in_set(Work::StoreOutcomes)
                .run_if(learns),
        )
        .add_systems(
            StepEnd,
            end_segments
                .pipe(record_failure)
                .in_set(Work::EndSegments)
                .run_if(learns),
        )
        .add_systems(
            RoundEnd,
            (
                update_policy
                    .pipe(record_failure)
                    .in_set(Work::UpdatePolicy)
                    .run_if(learns)
                    .run_if(round_is_complete),
                stop_if_diverged
                    .pipe(record_failure)
                    .in_set(Work::StopIfDiverged)
                    .run_if(learns),
            ),
        );
    }
}

/// What every system of the learner needs beside the envs.
#[derive(SystemParam)]
struct School<'w> {
    controller: ResMut<'w, ActiveController>,
    policy: ResMut<'w, PolicyLearner>,
    clock: Res<'w, RunClock>,
    experiment: Res<'w, Experiment>,
    reads: Res<'w, HostSyncCounter>,
}

impl School<'_> {
    fn error(&self, phase: &'static str, failure: impl Into<Failure>) -> EngineError {
        EngineError {
            phase,
            position: self.clock.position(),
            failure: failure.into(),
        }
    }

    /// Takes note of the live recurrent states of rows whose segments end, before they are zeroed.
    fn note_final_states(&mut self, rows: &[usize]) -> Result<(), EngineError> {
        let Some(policy) = self.controller.0.get().learned() else {
            return Ok(());
        };
        let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let buffer = self.policy.buffer.get();
        let noted = live_states(policy, &rows).and_then(|state| Ok(buffer.note_final_states(&state)?));
        noted.map_err(|failure| self.error("rollout", failure))
    }

    fn row(&self, id: &EnvId) -> EnvRow {
        EnvRow {
            env: id.index,
            index_in_group: id.index_in_group,
            episode: self.experiment.episode(self.clock.round(), id.index),
        }
    }
}

fn build_learner(
    mut commands: Commands,
    mut controller: ResMut<ActiveController>,
    experiment: Res<Experiment>,
    backend: Res<Backend>,
) -> Result<(), EngineError> {
    let scenario = &experiment.scenario;
    let config = &scenario.learner;
    commands.insert_resource(RewardHorizon::from(config));
    let Some(policy) = controller.0.get().learned() else {
        return Ok(());
    };
    let build = |policy: &mut ActorCriticController| -> Result<PolicyLearner, Failure> {
        let max_steps = experiment.task.max_steps;
        let horizon = Horizon {
            total_updates: config.planned_updates(scenario.run.rounds),
            envs: scenario.run.n_envs,
        };
        let stream = LearnerStream {
            seed: scenario.run.seed,
            group: 0,
        };
        let learner = Learner::new(config.clone(), horizon, stream, policy, backend.optimizer)?;
        policy.set_floor_scale(learner.schedules().probability_floor);
        policy.set_last_good(learner.last_good_params());
        if config.is_warm_up(experiment.rounds.start) {
            policy.set_mode(DecideMode::Uniform);
        }
        let spec = policy.net().spec();
        let shape = BufferShape {
            envs: scenario.run.n_envs,
            steps: (config.episodes_per_update * max_steps) as usize,
            observation: spec.observation,
            slots: spec.slots,
            blueprints: spec.blueprints,
            state: policy.recurrent()?.0.iter().map(layers_and_width).collect(),
            chunk_length: config.chunk_length.unwrap_or(max_steps) as usize,
        };
        let device = policy.net().params().device();
        Ok(PolicyLearner {
            learner: SyncCell::new(learner),
            buffer: SyncCell::new(RolloutBuffer::new(shape, device)?),
            entering: SyncCell::new(None),
        })
    };
    let learner = build(policy).map_err(|failure| EngineError {
        phase: "start-up",
        position: Position::default(),
        failure,
    })?;
    commands.insert_resource(learner);
    Ok(())
}

/// Of a state tensor `[layers, rows, width]`.
fn layers_and_width(state: &Tensor) -> [i64; 2] {
    let size = state.size();
    [size.first().copied().unwrap_or(1), size.last().copied().unwrap_or(1)]
}

/// Charges every rollback of the step to what its env did, at once (spec 04 §4).
fn credit_rollbacks(
    mut envs: Query<(&EnvId, &mut RollbackVerdict, Option<&mut EpisodeReward>)>,
    mut school: School,
) -> Result<(), EngineError> {
    let credit = school.experiment.scenario.governor.rollback_credit;
    let mut charged = Ok(());
    for (id, mut verdict, rewards) in &mut envs {
        let Some(rollback) = &mut verdict.0 else { continue };
        let penalty = school.policy.learner.get().clamp_penalty(rollback.raw_penalty);
        let row = id.index_in_group;
        match school.policy.buffer.get().rollback(row, penalty, credit) {
            Ok(Attribution::Attributed { steps_forfeited, .. }) => {
                if credit != RollbackCredit::Invalidate {
                    school.note_final_states(&[row])?;
                }
                rollback.credit = Credit::Attributed {
                    penalty: penalty.into(),
                    steps_forfeited: steps_forfeited as u32,
                };
                if let Some(mut rewards) = rewards {
                    rewards.charge_rollback(steps_forfeited, rollback.raw_penalty);
                }
            }
            Ok(Attribution::Unattributed) => {}
            Err(error) => charged = Err(error),
        }
        if let Some(policy) = school.controller.0.get().learned() {
            policy.reset_rows(&[row]);
        }
    }
    charged.map_err(|error| school.error("rollback", error))
}

/// Training sequences may start in the middle of an episode; they then start from the state that entered the step.
fn remember_states(envs: Query<(&EnvId, &StepStatus)>, mut school: School) -> Result<(), EngineError> {
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
    let state = live_states(policy, &rows).map_err(|failure| school.error("decision", failure))?;
    *school.policy.entering.get() = Some(state);
    Ok(())
}

/// Copies of the live recurrent states of some rows of the group.
fn live_states(policy: &mut ActorCriticController, rows: &[i64]) -> Result<RecurrentState, Failure> {
    let state = policy.recurrent()?;
    let device = state.0.first().map_or(tch::Device::Cpu, Tensor::device);
    Ok(catch(|| state.select(&Tensor::from_slice(rows).to_device(device)))?)
}

/// What a decision left behind on an env.
#[derive(QueryData)]
struct DecidedEnv {
    id: &'static EnvId,
    chosen: &'static Chosen,
    masks: &'static Masks,
    observation: &'static Observation,
}

/// Writes the step's decisions into the rollout, all envs at once (spec 04 §3.2).
fn store_decisions(envs: Query<DecidedEnv>, mut school: School) -> Result<(), EngineError> {
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
            return Err(school.error("rollout", Failure::message(message)));
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
        return Err(school.error("rollout", Failure::message("no recurrent state was remembered")));
    };
    let buffer = school.policy.buffer.get();
    let matrix = |row: fn(&Observation) -> &[f32]| -> Vec<f32> {
        envs.iter().flat_map(|env| row(env.observation)).copied().collect()
    };
    let blueprints: Vec<i64> = envs
        .iter()
        .flat_map(|env| env.observation.blueprints.iter().copied())
        .collect();
    let rows = envs.len() as i64;
    let device = buffer.device();
    let stored = catch(|| {
        let upload = |values: &[f32]| Tensor::from_slice(values).view([rows, -1]).to_device(device);
        (
            upload(&matrix(|observation| &observation.normalised)),
            upload(&matrix(|observation| &observation.raw)),
            Tensor::from_slice(&blueprints).view([rows, -1]).to_device(device),
        )
    })
    .map_err(super::BufferError::from)
    .and_then(|(observations, raw_observations, blueprints)| {
        let tensors = StepTensors {
            observations: &observations,
            raw_observations: &raw_observations,
            blueprints: &blueprints,
            state: &entering,
        };
        buffer.begin_steps(&decided, &tensors)
    });
    stored.map_err(|error| school.error("rollout", error))
}

/// What became of a decision.
#[derive(QueryData)]
struct RewardedEnv {
    id: &'static EnvId,
    chosen: &'static Chosen,
    outcome: &'static Outcome,
    reward: Option<&'static StepReward>,
    slots: &'static SeedSlots,
}

/// Completes the step's transitions (spec 06 X5).
fn store_outcomes(envs: Query<RewardedEnv>, mut school: School) -> Result<(), EngineError> {
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
    stored.map_err(|error| school.error("rollout", error))
}

/// Contributions that this step measured, by slot.
fn fresh_contributions(slots: &SeedSlots) -> Vec<Option<f32>> {
    let fresh = |record: Option<&crate::seed::SeedRecord>| {
        let seed = record.filter(|seed| seed.contribution.age == Some(0))?;
        seed.contribution.value.map(|points| points as f32)
    };
    slots.records().map(fresh).collect()
}

/// An env whose episode may have ended in this step.
#[derive(QueryData)]
struct EndingEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    stats: &'static EpisodeStats,
    slots: &'static SeedSlots,
    signals: &'static Signals,
    feedback: &'static Feedback,
}

/// Closes the segments of episodes that ended in this step. What a truncated one would have gone on to is estimated from
/// the state after the tick, with the recurrent state after the last decision (spec 06 E2).
fn end_segments(
    envs: Query<EndingEnv>,
    blueprints: Res<BlueprintRegistry>,
    mut school: School,
) -> Result<(), EngineError> {
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
    closed.map_err(|error| school.error("rollout", error))?;
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
) -> Result<Vec<f32>, EngineError> {
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
    evaluate(policy).map_err(|failure| school.error("bootstrap", failure))
}

/// One update per rollout, then the statistics of observations move, whatever came of the update (spec 04 §2, 06 N2-N3).
fn update_policy(
    mut last: ResMut<LastUpdate>,
    mut school: School,
    mut was_warned: Local<bool>,
) -> Result<(), EngineError> {
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
                tracing::warn!(
                    "a rollout holds {decisions} decisions to learn from, fewer than {FEW_DECISIONS}: updates will be \
                     noisy; raise run.n_envs, run.max_steps or learner.episodes_per_update"
                );
            }
            last.0 = record;
            Ok(())
        }
        Err(failure) => Err(school.error("policy update", failure)),
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
fn stop_if_diverged(mut school: School) -> Result<(), EngineError> {
    let learner = school.policy.learner.get();
    if !learner.has_diverged() {
        return Ok(());
    }
    let failures = learner.counters().consecutive_failures;
    Err(school.error("policy update", PolicyDiverged { failures }))
}
