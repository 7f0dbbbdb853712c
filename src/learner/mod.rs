//! The learner: rollouts of many envs in, policy updates out.
//!
//! [`algorithm`] is proximal policy optimization on tensors and configurations; start reading in its `update.rs`. `systems`
//! feed it, in the order of a round: start-up, recurrent states, decisions, outcomes, rollbacks, ends of episodes, updates.

pub mod algorithm;
pub(crate) mod systems;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;

pub use self::algorithm::{
    BufferShape, DecidedStep, Horizon, Learner, LearnerError, LearnerState, LearnerStream, RolloutBuffer, SegmentEnd,
    StepOutcome, StepTensors, ValueUnits,
};
pub use self::systems::{LastUpdate, PolicyDiverged, PolicyLearner};
use self::systems::{
    build_learner, credit_rollbacks, end_segments, remember_states, stop_if_diverged, store_decisions, store_outcomes,
    update_policy,
};
use crate::env::round_is_complete;
use crate::schedule::{Act, AddWork, Assess, Decide, RoundEnd, Startup, StepEnd, Work};

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
