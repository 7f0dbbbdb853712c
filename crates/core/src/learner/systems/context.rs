//! What the systems of the learner share.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;
use tch::{Device, Tensor};

use crate::clock::RunClock;
use crate::controller::{ActiveController, EnvRow, LearningPolicy};
use crate::env::{EnvId, Experiment};
use crate::health::Failure;
use crate::learner::algorithm::{Learner, RolloutBuffer};
use crate::policy::RecurrentState;
use crate::torch::{HostSyncCounter, catch};

/// The learner of the run's policy and the rollout that it collects; absent if the controller has nothing to learn.
#[derive(Resource)]
pub struct PolicyLearner {
    /// What improves the policy.
    pub learner: SyncCell<Learner>,
    /// What the envs did since the last update.
    pub buffer: SyncCell<RolloutBuffer>,
    /// The round with which the first rollout that this process knows began.
    pub(super) began_with: u32,
    /// Recurrent state that enters the decisions of this step, in the order of the deciding envs.
    pub(super) entering: SyncCell<Option<RecurrentState>>,
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

    /// Where the policy knows an env.
    pub fn row(&self, id: &EnvId) -> EnvRow {
        EnvRow::of(id, &self.experiment, &self.clock)
    }
}

/// Copies of the live recurrent states of some rows.
pub(super) fn live_states(policy: &mut dyn LearningPolicy, rows: &[i64]) -> Result<RecurrentState, Failure> {
    let state = policy.recurrent()?;
    let device = state.0.first().map_or(Device::Cpu, Tensor::device);
    Ok(catch(|| state.select(&Tensor::from_slice(rows).to_device(device)))?)
}
