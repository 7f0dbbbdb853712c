//! The learner: rollouts of many envs in, policy updates out.
//!
//! [`algorithm`] is proximal policy optimization on tensors and configurations; start reading in its `update.rs`. `systems`
//! feed it, in the order of a round: start-up, rollbacks, decisions, outcomes, ends of episodes, updates.

pub mod algorithm;
pub(crate) mod systems;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;

pub use self::algorithm::{
    BufferShape, DecidedStep, Horizon, Learner, LearnerError, LearnerSchedules, LearnerState, RolloutBuffer,
    SegmentEnd, StepOutcome, StepTensors, ValueUnits,
};
pub(crate) use self::systems::RolloutSource;
pub use self::systems::{LastUpdate, PolicyDiverged, PolicyLearner, RecordingsError, is_between_rollouts};
use self::systems::{context, transitions, updates};
use crate::env::{KeepInRounds, round_is_complete};
use crate::schedule::{Act, AddWork, Assess, Decide, RoundEnd, Startup, StepEnd, Work};

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
            .keep_in_rounds_by(context::save_rollout, context::restore_rollout)
            .add_work_if(
                RoundEnd,
                Work::UpdatePolicy,
                updates::update_policy,
                learns.and_then(round_is_complete),
            )
            .add_work_if(RoundEnd, Work::StopIfDiverged, updates::stop_if_diverged, learns);
    }
}
