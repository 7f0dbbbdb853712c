//! The learner: rollouts of many envs in, policy updates out.
//!
//! [`algorithm`] is proximal policy optimization on tensors and configurations; start reading in its `update.rs`. The systems
//! feed it: `transitions` with what each step adds to the rollout, `updates` with complete ones, or with what there is in their
//! place (`sources`). What a policy is and how far its learner has come do not change inside a round: a checkpoint there keeps
//! the rollout alone.

pub mod algorithm;
pub(crate) mod transitions;
mod sources;
pub(crate) mod updates;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;

pub use self::algorithm::{
    BufferShape, DecidedStep, Horizon, Learner, LearnerError, LearnerSchedules, LearnerState, RolloutBuffer,
    SegmentEnd, StepOutcome, StepTensors, ValueUnits,
};
pub use self::sources::RecordingsError;
pub(crate) use self::sources::RolloutSource;
pub use self::updates::{LastUpdate, PolicyDiverged, is_between_rollouts};
use crate::clock::RunClock;
use crate::controller::ActiveController;
use crate::env::{Experiment, KeepInRounds, round_is_complete};
use crate::health::Failure;
use crate::schedule::{Act, AddWork, Assess, Decide, RoundEnd, Startup, StepEnd, Work};
use crate::torch::HostSyncCounter;
use crate::unfinished::UnfinishedRound;

/// Trains the run's policy, if it has one that learns. Without this plugin policies stay as they are.
pub struct LearnerPlugin;

impl Plugin for LearnerPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<LastUpdate>();
        app.add_work(Startup, Work::BuildLearner, updates::build_learner);
        let learns = resource_exists::<PolicyLearner>;
        app.add_work_if(Assess, Work::CreditRollbacks, transitions::credit_rollbacks, learns)
            .add_work_if(Decide, Work::StoreDecisions, transitions::store_decisions, learns)
            .add_work_if(Act, Work::StoreOutcomes, transitions::store_outcomes, learns)
            .add_work_if(StepEnd, Work::EndSegments, transitions::end_segments, learns)
            .keep_in_rounds_by(save_rollout, restore_rollout)
            .add_work_if(
                RoundEnd,
                Work::UpdatePolicy,
                updates::update_policy,
                learns.and_then(round_is_complete),
            )
            .add_work_if(RoundEnd, Work::StopIfDiverged, updates::stop_if_diverged, learns);
    }
}

/// The learner of the run's policy and the rollout that it collects; absent if the controller has nothing to learn.
#[derive(Resource)]
pub struct PolicyLearner {
    /// What improves the policy.
    pub learner: SyncCell<Learner>,
    /// What the envs did since the last update.
    pub buffer: SyncCell<RolloutBuffer>,
    /// The round with which the first rollout that this process knows began.
    began_with: u32,
}

/// What every system of the learner needs beside the envs.
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

/// The round with which the rollout began.
const BEGAN_WITH: &str = "rollout.began_with";

/// For a checkpoint inside the round.
fn save_rollout(policy: Option<ResMut<PolicyLearner>>, mut round: ResMut<UnfinishedRound>) -> Result<(), Failure> {
    let Some(mut policy) = policy else { return Ok(()) };
    round.put(BEGAN_WITH, &policy.began_with)?;
    Ok(policy.buffer.get().save(&mut round)?)
}

/// What [`save_rollout`] has kept.
fn restore_rollout(policy: Option<ResMut<PolicyLearner>>, round: Res<UnfinishedRound>) -> Result<(), Failure> {
    let Some(mut policy) = policy else { return Ok(()) };
    policy.began_with = round.get(BEGAN_WITH)?;
    policy.buffer.get().restore(&round)
}
