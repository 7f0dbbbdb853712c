//! What the systems of the learner share, and what of it a checkpoint inside a round keeps. What a policy is and how far its
//! learner has come do not change inside one: they are kept as between rounds.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;

use crate::clock::RunClock;
use crate::controller::ActiveController;
use crate::env::Experiment;
use crate::health::Failure;
use crate::learner::algorithm::{Learner, RolloutBuffer};
use crate::torch::HostSyncCounter;
use crate::unfinished::UnfinishedRound;

/// The learner of the run's policy and the rollout that it collects; absent if the controller has nothing to learn.
#[derive(Resource)]
pub struct PolicyLearner {
    /// What improves the policy.
    pub learner: SyncCell<Learner>,
    /// What the envs did since the last update.
    pub buffer: SyncCell<RolloutBuffer>,
    /// The round with which the first rollout that this process knows began.
    pub(super) began_with: u32,
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
pub(crate) fn save_rollout(
    policy: Option<ResMut<PolicyLearner>>,
    mut round: ResMut<UnfinishedRound>,
) -> Result<(), Failure> {
    let Some(mut policy) = policy else { return Ok(()) };
    round.put(BEGAN_WITH, &policy.began_with)?;
    Ok(policy.buffer.get().save(&mut round)?)
}

/// What [`save_rollout`] has kept.
pub(crate) fn restore_rollout(
    policy: Option<ResMut<PolicyLearner>>,
    round: Res<UnfinishedRound>,
) -> Result<(), Failure> {
    let Some(mut policy) = policy else { return Ok(()) };
    policy.began_with = round.get(BEGAN_WITH)?;
    policy.buffer.get().restore(&round)
}
