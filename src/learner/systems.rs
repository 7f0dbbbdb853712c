//! The learner's part of the schedule (spec 04 §2): the plugin, what its systems share, and the two that open a run and a
//! step. The others stand in `transitions`, `episode_ends` and `rollout_ends`, in the order of a round.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;
use tch::Tensor;

use super::buffer::{BufferShape, RolloutBuffer};
use super::episode_ends::end_segments;
use super::ppo::{Learner, LearnerStream};
use super::rollout_ends::{LastUpdate, stop_if_diverged, update_policy};
use super::schedules::Horizon;
use super::segments::Attribution;
use super::transitions::{live_states, remember_states, store_decisions, store_outcomes};
use crate::clock::RunClock;
use crate::controller::{ActiveController, ActorCriticController, DecideMode, EnvRow, RecurrentState, TrainablePolicy};
use crate::env::{Backend, EnvId, Experiment, round_is_complete};
use crate::governor::{Credit, RollbackVerdict};
use crate::health::Failure;
use crate::reward::{EpisodeReward, RewardHorizon};
use crate::scenario::RollbackCredit;
use crate::schedule::{Act, AddWork, Assess, Decide, RoundEnd, Startup, StepEnd, Work};
use crate::torch::HostSyncCounter;

/// The learner of the run's policy and the rollout that it collects; absent if the controller has nothing to learn.
#[derive(Resource)]
pub struct PolicyLearner {
    pub learner: SyncCell<Learner>,
    pub buffer: SyncCell<RolloutBuffer>,
    /// Recurrent state that enters the decisions of this step, in the order of the deciding envs.
    pub(super) entering: SyncCell<Option<RecurrentState>>,
}

/// Trains the run's policy, if it has one that learns. Without this plugin policies stay as they are.
pub struct LearnerPlugin;

impl Plugin for LearnerPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<LastUpdate>();
        app.add_work(Startup, Work::BuildLearner, build_learner);
        let learns = resource_exists::<PolicyLearner>;
        app.add_work_if(Assess, Work::CreditRollbacks, credit_rollbacks, learns)
            .add_work_if(Decide, Work::RememberStates, remember_states, learns)
            .add_work_if(Decide, Work::StoreDecisions, store_decisions, learns)
            .add_work_if(Act, Work::StoreOutcomes, store_outcomes, learns)
            .add_work_if(StepEnd, Work::EndSegments, end_segments, learns)
            .add_work_if(
                RoundEnd,
                Work::UpdatePolicy,
                update_policy,
                learns.and_then(round_is_complete),
            )
            .add_work_if(RoundEnd, Work::StopIfDiverged, stop_if_diverged, learns);
    }
}

/// What every system of the learner needs beside the envs.
#[derive(SystemParam)]
pub(super) struct School<'w> {
    pub(super) controller: ResMut<'w, ActiveController>,
    pub(super) policy: ResMut<'w, PolicyLearner>,
    pub(super) clock: Res<'w, RunClock>,
    pub(super) experiment: Res<'w, Experiment>,
    pub(super) reads: Res<'w, HostSyncCounter>,
}

impl School<'_> {
    /// Takes note of the live recurrent states of rows whose segments end, before they are zeroed.
    pub(super) fn note_final_states(&mut self, rows: &[usize]) -> Result<(), Failure> {
        let Some(policy) = self.controller.0.get().learned() else {
            return Ok(());
        };
        let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let buffer = self.policy.buffer.get();
        let noted = live_states(policy, &rows).and_then(|state| Ok(buffer.note_final_states(&state)?));
        noted
    }

    pub(super) fn row(&self, id: &EnvId) -> EnvRow {
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
) -> Result<(), Failure> {
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
    let learner = build(policy).map_err(Failure::from)?;
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
) -> Result<(), Failure> {
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
    charged.map_err(Failure::from)
}
