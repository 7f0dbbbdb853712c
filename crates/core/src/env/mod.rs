//! Envs: entities that each hold one training, spawned once and reset in place for every episode.

mod fallbacks;
pub mod grafted;
mod components;
mod parallel;
mod slots;
pub(crate) mod starting_weights;
pub(crate) mod episode;
pub(crate) mod lifecycle;
pub(crate) mod initial_topology;
pub(crate) mod unfinished;

use std::ops::Range;
use std::path::PathBuf;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;

pub use components::{
    Decisions, EnvBackend, EnvId, EnvStream, EpisodeEnding, EpisodeStats, GradReport, HostModel, HostOptimizer,
    HostParams, SeedTraining, StepStatus, TrainMetrics, ValMetrics, participating,
};
pub use episode::round_is_complete;
pub use fallbacks::FallbackGuard;
pub use initial_topology::{InitialSeeds, standing_seeds};
use initial_topology::{apply_initial_topology, read_initial_topology};
pub use lifecycle::{GrowingEnv, GrowingEnvItem, GrowthContext};
pub use parallel::{EnvPool, in_batch};
pub use slots::{SeedBuilder, SeedOptimizers, SeedSlots, Slot, carry_out};
pub use starting_weights::StartingWeights;
pub use unfinished::KeepInRounds;

use crate::clock::RunClock;
use crate::data::{FeedArithmetic, Readers, Resident, TaskData};
use crate::health::{Failure, InEnv};
use crate::host::SlotLayout;
use crate::nn::Implementation;
use crate::scenario::{Kernels, RewardProfile, Scenario, TaskSpec};
use crate::schedule::{
    Act, AddWork, Assess, RestoreRound, RoundEnd, RoundStart, SaveRound, Startup, StepEnd, StepStart, StepSync, Work,
};
pub use crate::seed::SeedOrder;
use crate::seed::{Isolation, Limits};
use crate::telemetry::EnvContext;
use crate::torch::Backend;

/// The scenario that is played, resolved and frozen before anything is allocated.
#[derive(Resource, Clone, Debug)]
pub struct Experiment {
    /// As the user wrote it, with all defaults.
    pub scenario: Scenario,
    /// The task with all overrides of the scenario in it.
    pub task: TaskSpec,
    /// The reward's properties.
    pub reward: RewardProfile,
    /// The enabled slots, in policy order.
    pub layout: SlotLayout,
    /// Relative paths of the scenario start here.
    pub folder: Option<PathBuf>,
    /// Workers that run envs.
    pub threads: usize,
    /// The envs that are played, by their index in the run: all of them but in evaluations.
    pub envs: Vec<usize>,
    /// Rounds `rounds.start..rounds.end` are played.
    pub rounds: Range<u32>,
    /// Most configurations of an env's seeds that a step evaluates.
    pub max_configurations: usize,
    /// The data of the task, where they have been loaded already: of several runs on the same.
    pub data: Option<TaskData>,
}

impl Experiment {
    /// Number of an episode in the run: `round · E + env` with E envs.
    pub fn episode(&self, round: u32, env: usize) -> u64 {
        u64::from(round) * self.scenario.run.n_envs as u64 + env as u64
    }

    /// The orders that an env allows.
    pub fn limits(&self) -> Limits {
        let Scenario { lifecycle, policy, .. } = &self.scenario;
        Limits::new(lifecycle, &policy.masks, self.task.max_seeds)
    }

    /// The isolation of the host from the gradient of seeds that are blended in or held.
    pub fn isolation(&self) -> Isolation {
        Isolation::of(self.task.data.topology())
    }

    /// Position of an env in the run, for its events.
    pub fn context(&self, id: &EnvId, clock: &RunClock) -> EnvContext {
        EnvContext {
            env: id.index as u32,
            episode: self.episode(clock.round(), id.index) as u32,
            round: clock.round(),
            step: clock.step(),
        }
    }
}

/// The devices of the run with their kernels, opened at start-up. Env k lives on entry `k mod len`.
#[derive(Resource, Clone, Debug)]
pub struct Devices(pub Vec<Backend>);

impl Devices {
    /// The device on which an env lives.
    pub fn of_env(&self, env: usize) -> Backend {
        self.0[self.index_of_env(env)]
    }

    /// Entry of the device list on which an env lives.
    pub fn index_of_env(&self, env: usize) -> usize {
        env % self.0.len()
    }
}

/// The data of the run: one resident copy per entry of [`Devices`].
#[derive(Resource)]
pub struct LoadedData {
    /// The data on the host.
    pub set: TaskData,
    /// Batch counts and sizes.
    pub feed: FeedArithmetic,
    /// The data on each device.
    pub resident: SyncCell<Vec<Resident>>,
    /// The threads that fetch training batches, if the data aren't on the devices.
    pub readers: Option<Readers>,
}

/// Adds components to envs, each made in the guard of its env's stream from the data on its device.
#[derive(SystemParam)]
pub struct EnvSetup<'w, 's> {
    commands: Commands<'w, 's>,
    devices: Res<'w, Devices>,
    data: ResMut<'w, LoadedData>,
}

impl EnvSetup<'_, '_> {
    /// Adds the components that `make` returns.
    ///
    /// # Errors
    /// The error of `make`, under the env's name.
    pub fn insert<B: Bundle>(
        &mut self,
        (entity, id): (Entity, &EnvId),
        stream: &mut EnvStream,
        make: impl FnOnce(&Resident, FeedArithmetic) -> Result<B, Failure>,
    ) -> Result<(), Failure> {
        let feed = self.data.feed;
        let resident = &self.data.resident.get()[self.devices.index_of_env(id.index)];
        let made = stream
            .0
            .get()
            .enter()
            .map_err(Failure::from)
            .and_then(|_guard| make(resident, feed));
        let made = made.in_env(id.index)?;
        self.commands.entity(entity).insert(made);
        Ok(())
    }
}

/// The choices of the start-up self-test, and its refusals.
#[derive(Resource, Clone, Debug)]
pub struct SelfTest {
    /// The kernels to use, if the engine has its own.
    pub kernels: Kernels,
    /// The implementation of optimizer steps for which the engine has no kernel.
    pub optimizer: Implementation,
    /// Reasons why kernels were refused, one text each.
    pub fallbacks: Vec<String>,
}

impl SelfTest {
    /// The implementation of optimizer steps of networks on `backend`.
    pub fn implementation(&self, backend: Backend) -> Implementation {
        match backend.uses_own_kernels() {
            true => Implementation::Own,
            false => self.optimizer,
        }
    }
}

/// Spawns envs and resets them at every round.
pub struct EnvPlugin;

impl Plugin for EnvPlugin {
    fn build(&self, app: &mut App) {
        app.register_required_components::<EnvId, GradReport>();
        app.register_required_components::<EnvId, StepStatus>();
        app.init_resource::<FallbackGuard>()
            .add_work(Startup, Work::SpawnEnvs, episode::spawn_envs)
            .add_work(RoundStart, Work::ResetEnvs, episode::reset_envs)
            .add_work(Startup, Work::ReadInitialTopology, read_initial_topology)
            .add_work(Startup, Work::ReadWeights, starting_weights::read_weights)
            .add_work(RoundStart, Work::ApplyInitialTopology, apply_initial_topology)
            .add_work(StepStart, Work::ActivateEnvs, episode::activate_envs)
            .add_work(StepSync, Work::DropFailedEnvs, episode::drop_failed_envs)
            .add_work(Assess, Work::TrackSeeds, episode::track_seeds)
            .add_work(Act, Work::AdvanceLifecycle, lifecycle::advance_lifecycle)
            .add_work(StepEnd, Work::EndEpisodes, episode::end_episodes)
            .add_work(RoundEnd, Work::TeardownRound, episode::teardown_round)
            .add_work(SaveRound, Work::KeepRound, unfinished::keep_round)
            .add_work(RestoreRound, Work::RestoreState, unfinished::restore_round)
            .keep_in_rounds_by(unfinished::save_networks, unfinished::restore_networks)
            .keep_in_rounds::<TrainMetrics>("train_metrics")
            .keep_in_rounds::<ValMetrics>("val_metrics")
            .keep_in_rounds::<EpisodeStats>("episode");
    }
}

#[cfg(test)]
mod tests;
