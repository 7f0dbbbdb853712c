//! The learner, which turns rollouts of many envs into policy updates.
//!
//! [`algorithm`] is proximal policy optimization on tensors and configurations. Start reading in its `update.rs`. `systems` feed
//! it with complete rollouts, or with their replacement (`sources`). The policy and the progress of its learner
//! don't change inside a round, so a checkpoint there keeps only the rollout.

pub mod algorithm;
mod sources;
pub(crate) mod systems;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;
use tch::Tensor;

use self::algorithm::BufferError;
pub use self::algorithm::{
    BufferShape, DecidedStep, Horizon, Learner, LearnerError, LearnerSchedules, LearnerState, RolloutBuffer,
    SegmentEnd, StepOutcome, StepTensors, ValueUnits,
};
pub use self::sources::RecordingsError;
pub(crate) use self::sources::RolloutSource;
pub use self::systems::{LastUpdate, PolicyDiverged, is_between_rollouts};
use crate::clock::RunClock;
use crate::controller::{ActiveController, Observation};
use crate::env::{Experiment, KeepInRounds, round_is_complete};
use crate::health::Failure;
use crate::schedule::{Act, AddWork, Assess, Decide, RoundEnd, Startup, StepEnd, Work};
use crate::torch::{HostSyncCounter, catch};
use crate::unfinished::UnfinishedRound;

/// Trains the run's policy, if it has one that learns. Without this plugin policies stay unchanged.
pub struct LearnerPlugin;

impl Plugin for LearnerPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<LastUpdate>();
        app.add_work(Startup, Work::BuildLearner, systems::build_learner);
        let learns = resource_exists::<PolicyLearner>;
        app.add_work_if(Assess, Work::CreditRollbacks, systems::credit_rollbacks, learns)
            .add_work_if(Decide, Work::StoreDecisions, systems::store_decisions, learns)
            .add_work_if(Act, Work::StoreOutcomes, systems::store_outcomes, learns)
            .add_work_if(StepEnd, Work::EndSegments, systems::end_segments, learns)
            .keep_in_rounds_by(save_rollout, restore_rollout)
            .add_work_if(
                RoundEnd,
                Work::UpdatePolicy,
                systems::update_policy,
                learns.and_then(round_is_complete),
            )
            .add_work_if(RoundEnd, Work::StopIfDiverged, systems::stop_if_diverged, learns);
    }
}

/// The learner of the run's policy and the rollout that it collects. Absent if the controller has nothing to learn.
#[derive(Resource)]
pub struct PolicyLearner {
    /// The algorithm that improves the policy.
    pub learner: SyncCell<Learner>,
    /// The envs' steps since the last update.
    pub buffer: SyncCell<RolloutBuffer>,
    /// The round in which the first rollout known to this process began.
    began_with: u32,
}

/// Resources that every system of the learner needs in addition to the envs.
#[derive(SystemParam)]
pub(crate) struct LearnerContext<'w> {
    pub controller: ResMut<'w, ActiveController>,
    pub policy: ResMut<'w, PolicyLearner>,
    pub clock: Res<'w, RunClock>,
    pub experiment: Res<'w, Experiment>,
    pub reads: Res<'w, HostSyncCounter>,
}

impl LearnerContext<'_> {
    /// Zeroes the live recurrent states of rows whose segments have ended.
    pub fn reset_rows(&mut self, rows: &[usize]) {
        if let Some(policy) = self.controller.0.get().learned() {
            policy.reset_rows(rows);
        }
    }
}

/// Uploads what the policy saw, one row per decision, and writes both into the rollout.
fn begin_steps(
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

/// The round with which the rollout began.
const BEGAN_WITH: &str = "rollout.began_with";

/// For a checkpoint inside the round.
fn save_rollout(policy: Option<ResMut<PolicyLearner>>, mut round: ResMut<UnfinishedRound>) -> Result<(), Failure> {
    let Some(mut policy) = policy else { return Ok(()) };
    round.put(BEGAN_WITH, &policy.began_with)?;
    Ok(policy.buffer.get().save(&mut round)?)
}

/// Restores what [`save_rollout`] has kept.
fn restore_rollout(policy: Option<ResMut<PolicyLearner>>, round: Res<UnfinishedRound>) -> Result<(), Failure> {
    let Some(mut policy) = policy else { return Ok(()) };
    policy.began_with = round.get(BEGAN_WITH)?;
    policy.buffer.get().restore(&round)
}
