//! Events of an env: its steps and the end of its episode.

use serde::{Deserialize, Serialize};

use super::EpisodeRewards;
use crate::growth::{SeedStage, SlotId};
use crate::telemetry::encoding::{Num, by_name, is_default};

/// One env after the validation of one step. Accuracies in percent, losses in nats, params in scalars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvStep {
    /// Mean over the samples of finite batches.
    pub train_loss: Num,
    /// Training accuracy over all training samples.
    pub train_accuracy: Num,
    /// Mean over the validation samples.
    pub val_loss: Num,
    /// Validation accuracy over all validation samples.
    pub val_accuracy: Num,
    /// Gradient norm of the host at the last sampled batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_grad_norm: Option<Num>,
    /// Training batches whose loss was not finite; left out of `train_loss`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nonfinite_batches: u64,
    /// Updates of the host that were suppressed because its gradient was not finite.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skipped_updates: u64,
    /// Scale of the loss after the step's batches; only in float16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<Num>,
    /// Host and occupied slots.
    pub params_total: u64,
    /// Parameters of committed seeds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub params_committed: u64,
    /// Steps since the best validation accuracy of the episode.
    #[serde(default, skip_serializing_if = "is_default")]
    pub steps_since_best: u32,
    /// The seeds in policy order.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seeds: Vec<SeedRow>,
}

/// One occupied slot in an [`EnvStep`], with the data of its seed that no other event has. The events of its life say which
/// seed it is, and since when. The [`CounterfactualMatrix`](super::CounterfactualMatrix) has its contribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedRow {
    /// The slot.
    pub slot: SlotId,
    /// The stage.
    #[serde(with = "by_name")]
    pub stage: SeedStage,
    /// Amplitude, 0..1; left out where it is full.
    #[serde(default = "full", skip_serializing_if = "is_full")]
    pub alpha: Num,
    /// The seed's gradient divided by the host's, per parameter, smoothed; absent if not measured, and for committed seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_ratio: Option<Num>,
    /// The seed's gradients vanish.
    #[serde(default, skip_serializing_if = "is_default")]
    pub vanishing: bool,
    /// The seed's gradients explode.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exploding: bool,
    /// Updates that were suppressed because the seed's gradient was not finite.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skipped_updates: u32,
}

const fn full() -> Num {
    Num(1.0)
}

fn is_full(alpha: &Num) -> bool {
    *alpha == full()
}

impl From<&crate::seed::SeedReport> for SeedRow {
    fn from(report: &crate::seed::SeedReport) -> Self {
        let is_growing = report.stage != SeedStage::Committed;
        Self {
            slot: report.slot,
            stage: report.stage,
            alpha: Num::short(report.alpha),
            gradient_ratio: report.gradient.ratio.filter(|_| is_growing).map(Num::short),
            vanishing: report.gradient.has_vanishing.unwrap_or_default(),
            exploding: report.gradient.has_exploding.unwrap_or_default(),
            skipped_updates: report.gradient.skipped_updates.unwrap_or_default(),
        }
    }
}

/// The latch that first permits germination has closed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStabilized {
    /// Mean over the validation samples.
    pub val_loss: Num,
}

/// Counts of growth per episode, in total or for one blueprint; per round they are summed over envs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthCounts {
    /// Seeds planted.
    pub germinated: u32,
    /// Seeds committed.
    pub committed: u32,
    /// Seeds removed.
    pub pruned: u32,
}

added_by_field!(GrowthCounts: germinated, committed, pruned);

/// The reason why an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The last step was played.
    Horizon,
    /// The env was rolled back too often.
    GovernorLimit,
    /// Its accuracy had stopped rising.
    EarlyStop,
    /// The run was asked to stop.
    Stopped,
    /// The env failed and sat out the rest of its round.
    Failed,
}

/// The success of an episode, by its aim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The final accuracy reaches the task's success accuracy.
    Success,
    /// The final accuracy doesn't reach it.
    Timeout,
}

/// The compute of an episode, in multiply-accumulates of host and seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeCompute {
    /// Work of training batches: forward, and twice as much backward.
    pub train_macs: u64,
    /// Work of validation batches under all configurations of the seeds.
    pub val_macs: u64,
}

impl EpisodeCompute {
    /// Sum of both; saturates, as a file may hold numbers that no episode reaches.
    pub const fn macs(&self) -> u64 {
        self.train_macs.saturating_add(self.val_macs)
    }
}

/// The end of an env's episode, once per env and round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeFinished {
    /// Validation accuracy of the whole network.
    pub final_accuracy: Num,
    /// Accuracy with the committed seeds alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_accuracy: Option<Num>,
    /// Validation loss at the end.
    pub final_loss: Num,
    /// Best validation accuracy of the episode.
    pub best_accuracy: Num,
    /// The step that reached it.
    pub best_step: u32,
    /// Accuracy on the test split, which isn't used for any choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<Num>,
    /// Loss on the test part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<Num>,
    /// Steps played.
    pub length: u32,
    /// The reason why it ended.
    pub end: EndReason,
    /// The error of an env that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its success, by its aim.
    pub outcome: Outcome,
    /// Absent without rewards.
    #[serde(flatten)]
    pub paid: Option<EpisodeRewards>,
    /// The compute of the episode.
    #[serde(flatten)]
    pub compute: EpisodeCompute,
    /// Total / host; 1 = no growth.
    pub param_ratio: Num,
    /// Host and committed seeds / host.
    pub committed_ratio: Num,
    /// Committed seeds whose contribution is 1 point or more.
    pub contributing: u32,
    /// Times the governor restored an earlier state.
    pub rollbacks: u32,
    /// Counts of growth.
    #[serde(flatten)]
    pub growth: GrowthCounts,
}

#[cfg(test)]
mod tests;
