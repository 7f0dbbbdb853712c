//! Training's components of an env, and the env as a batch sees it.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_platform::cell::SyncCell;
use smallvec::SmallVec;
use tch::Device;

use super::accumulators::Accumulators;
use super::graphs::EnvGraphs;
use super::pack::StepNumbers;
use crate::data::Feed;
use crate::env::{EnvBackend, EnvId, EpisodeStats, HostModel, HostOptimizer, SeedOptimizers, SeedSlots, TrainMetrics};
use crate::kernels::GroupNorm;
use crate::nn::LossScaler;
use crate::torch::TorchError;

/// The env's order of samples and its batch buffers.
#[derive(Component)]
pub struct EnvFeed(pub SyncCell<Feed>);

/// The env's sums over a step, on its device.
#[derive(Component)]
pub struct EnvAccumulators(pub SyncCell<Accumulators>);

/// Norm and finiteness of each group's gradient, kept and overwritten: the host's, then one per slot.
#[derive(Component)]
pub struct GroupNorms {
    /// Norm of the host.
    pub host: SyncCell<GroupNorm>,
    /// Norms of the seeds, in slot order.
    pub seeds: SmallVec<[SyncCell<GroupNorm>; 4]>,
}

impl GroupNorms {
    /// Storage for the host and `slots` seeds.
    pub fn new(device: Device, slots: usize) -> Self {
        let norm = || SyncCell::new(GroupNorm::new(device));
        Self {
            host: norm(),
            seeds: (0..slots).map(|_| norm()).collect(),
        }
    }
}

/// Scales the env's loss; `None` where it does not train in float16. Fresh at the start of an episode and at a rollback.
#[derive(Component)]
pub struct EnvLossScaler(pub SyncCell<Option<LossScaler>>);

impl EnvLossScaler {
    /// Makes the scaler as new, in place and in the guard of the env's stream.
    ///
    /// # Errors
    /// libtorch's.
    pub fn reset(&mut self) -> Result<(), TorchError> {
        self.0.get().as_mut().map_or(Ok(()), LossScaler::reset)
    }
}

/// Everything that the step summed up for an env; `None` before the first and while the env is idle.
#[derive(Component, Default)]
pub struct StepResult(pub Option<StepNumbers>);

/// Everything of an env that a training batch touches.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct TrainingEnv {
    /// Id of the env.
    pub id: &'static EnvId,
    /// The env's device and its kernels.
    pub backend: &'static EnvBackend,
    pub(super) feed: &'static mut EnvFeed,
    /// The network.
    pub host: &'static mut HostModel,
    /// Optimizer of the host's parameters.
    pub optimizer: &'static mut HostOptimizer,
    /// The seeds, which validation evaluates too.
    pub slots: &'static mut SeedSlots,
    /// Optimizers of the seeds' parameters.
    pub seed_optimizers: &'static mut SeedOptimizers,
    /// The step's sums, in training and validation.
    pub sums: &'static mut EnvAccumulators,
    pub(super) norms: &'static mut GroupNorms,
    pub(super) scaler: &'static mut EnvLossScaler,
    pub(super) graphs: &'static mut EnvGraphs,
    /// Metrics of its last step.
    pub(super) train: &'static TrainMetrics,
    /// Counts of its episode.
    pub stats: &'static mut EpisodeStats,
}
