//! The env entity: one training, all of its state in components that live as long as the run.
//!
//! Tensors are `Send` but not `Sync`, components must be both: tensor-bearing ones hold them in a `SyncCell`.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::growth::SlotId;
use crate::host::Host;
use crate::nn::Optimizer;
use crate::seed::GradientSums;
use crate::telemetry::statistics::Plateau;
use crate::telemetry::{EndReason, EpisodeCompute, Fallbacks, GrowthCounts};
use crate::torch::{Backend, Stream};

/// The index of an env in the run, by which envs are ordered. Systems that other plugins add find envs by this component.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EnvId {
    /// Index in the run, from 0.
    pub index: usize,
}

/// The device of the env's tensors and its kernels.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
pub struct EnvBackend(pub Backend);

/// The queue of the env's device work. A no-op on CPU.
#[derive(Component)]
pub struct EnvStream(pub SyncCell<Stream>);

/// The backbone. Its tensors keep their storage for the whole run. A new episode re-initialises them in place.
#[derive(Component)]
pub struct HostModel(pub SyncCell<Box<dyn Host>>);

/// Number of trainable values of the host, fixed for the run.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostParams(pub u64);

/// The optimizer of the host's parameters.
#[derive(Component)]
pub struct HostOptimizer(pub SyncCell<Optimizer>);

/// The result of the step's training batches.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainMetrics {
    /// Nats per sample over the batches with a finite loss. NaN without one.
    pub loss: f64,
    /// Accuracy on all training samples of the step.
    pub accuracy_percent: f64,
    /// Batches without a finite loss.
    pub nonfinite_batches: u64,
    /// Updates of the host that were suppressed because its gradient was not finite.
    pub skipped_updates: u64,
    /// Scale of the loss at the end of the step. `None` if nothing scales it.
    pub loss_scale: Option<f64>,
}

/// Loss and accuracy of the whole network, with all seeds, on the validation part.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValMetrics {
    /// Nats per sample. Not finite if the network isn't.
    pub loss: f64,
    /// Accuracy on the validation samples of the step.
    pub accuracy_percent: f64,
}

/// Gradients at the step's last sampled batch.
#[derive(Component, Clone, Debug, Default, PartialEq)]
pub struct GradReport {
    /// Sums over the host's parameters.
    pub host: GradientSums,
    /// One entry per slot, in order. `None` if the slot holds no seed that was trained.
    pub seeds: SmallVec<[Option<SeedTraining>; 4]>,
}

/// Measurements of a seed over the training batches of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeedTraining {
    /// `None` in a stage in which gradients aren't measured.
    pub gradients: Option<GradientSums>,
    /// The number of non-finite samples in a row at the end of the step.
    pub nonfinite_streak: u32,
    /// Updates that were suppressed because the gradient was not finite.
    pub skipped_updates: u32,
}

/// The part of an env in the step.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepStatus {
    /// Trained, validated, observed, decided for and ticked.
    #[default]
    Participating,
    /// Rolled back in this step: not observed, given no command, not ticked. It trains again in the next step.
    RolledBack,
    /// Its episode is over while other envs still play: nothing is computed for it.
    Idle,
}

impl StepStatus {
    /// Observed, decided for and ticked in this step.
    pub const fn participates(self) -> bool {
        matches!(self, Self::Participating)
    }

    /// Trained and validated in this step.
    pub const fn is_active(self) -> bool {
        !matches!(self, Self::Idle)
    }
}

/// The envs that take part in the step. In index order with
/// `participating(query.iter_mut().sort_unstable::<&EnvId>())`.
pub fn participating<'a, T>(envs: impl Iterator<Item = (T, &'a StepStatus)>) -> impl Iterator<Item = T> {
    envs.filter_map(|(env, status)| status.participates().then_some(env))
}

/// The reason and the step of an episode's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeEnding {
    /// The reason why it ended.
    pub reason: EndReason,
    /// The episode's last step. For an env that failed, the step that it didn't finish.
    pub step: u32,
}

impl EpisodeEnding {
    /// Steps that count.
    pub fn steps_played(&self) -> u32 {
        match self.reason {
            EndReason::Failed => self.step.saturating_sub(1),
            _ => self.step,
        }
    }
}

/// Tallies of the current episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpisodeStats {
    /// Counts of orders and of growth.
    pub growth: GrowthCounts,
    /// Committed seeds whose contribution reached the gate's minimum.
    pub contributing: u32,
    /// The highest validation accuracy.
    pub best_accuracy_percent: f64,
    /// The step of the highest accuracy, or 0 before the first step.
    pub best_step: u32,
    /// Validation of the whole network. Measured in its last step, or when the state was captured that a rollback restored.
    /// If that was never validated, in the step of the rollback. `None` before the first step.
    pub last_val: Option<ValMetrics>,
    /// Times the governor restored an earlier state.
    pub rollbacks: u32,
    /// Updates of the host that were suppressed because its gradient was not finite.
    pub skipped_updates: u64,
    /// Batches that weren't computed in the usual way.
    pub fallbacks: Fallbacks,
    /// Compute that its batches took so far.
    pub compute: EpisodeCompute,
    /// Plateau of the validation accuracy, if episodes may stop early.
    pub plateau: Plateau,
    /// `None` while the episode runs.
    pub end: Option<EpisodeEnding>,
    /// The error of an episode that ended because its env failed.
    pub error: Option<String>,
    /// The controller's decisions in it.
    pub decisions: Decisions,
}

impl EpisodeStats {
    /// Takes the validation accuracy of a step.
    pub fn note_accuracy(&mut self, step: u32, accuracy_percent: f64) {
        (self.best_accuracy_percent, self.best_step) = self.best_with(step, accuracy_percent);
    }

    /// The best accuracy in percent and its step, that of `step` included.
    pub fn best_with(&self, step: u32, accuracy_percent: f64) -> (f64, u32) {
        if accuracy_percent > self.best_accuracy_percent || self.best_step == 0 {
            (accuracy_percent, step)
        } else {
            (self.best_accuracy_percent, self.best_step)
        }
    }
}

/// A controller's decisions in an episode: its planted seeds and their fate, counted change by change. Only reports that
/// measure controllers read it. Seeds that an episode begins with are left out. Steps count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// Seeds planted.
    pub germinated: u32,
    /// Seeds committed.
    pub committed: u32,
    /// Seeds removed because the controller ordered it, at once or at the end of a ramp.
    pub pruned: u32,
    /// Seeds removed by anything else: the holding timeout, numbers that were not finite, a rollback.
    pub lost: u32,
    /// Step of the first germination, or `None` without any.
    pub first_germination: Option<u32>,
    /// Step of the first commit, or `None` without any.
    pub first_commit: Option<u32>,
    /// Step of the last commit.
    pub last_commit: Option<u32>,
    /// Blueprint ids of the committed seeds.
    pub blueprints: BTreeMap<SlotId, String>,
}
