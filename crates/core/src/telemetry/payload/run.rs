//! Events of the run and of its rounds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::env::GrowthCounts;
use super::governor::GovernorCounts;
use super::phases::PhaseTimes;
use super::reward::RoundRewards;
use crate::growth::SlotId;
use crate::telemetry::encoding::{BigInteger, Num, is_default};
use crate::telemetry::mark::EventsMark;
use crate::torch::DeviceMemory;

/// State of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Data, envs and controller are being made.
    #[default]
    Starting,
    /// Rounds are played.
    Running,
    /// The run waits between two steps, at a command.
    Paused,
    /// A request to stop was made, and the run ends its work.
    Stopping,
    /// All rounds were played.
    Completed,
    /// The run stopped before its last round, at a request.
    Interrupted,
    /// It ended with an error.
    Failed,
}

impl RunState {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

/// The kind of the task that hosts learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Classes of images.
    Classification,
    /// The next token of a text: accuracies are percent of tokens, losses nats a token.
    LanguageModel,
}

/// Name, split sizes and content hash of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetInfo {
    /// Name of the data set.
    pub name: String,
    /// Training samples.
    pub train_n: u64,
    /// Validation samples.
    pub val_n: u64,
    /// Test samples.
    pub test_n: u64,
    /// Hash of the content.
    pub hash: String,
    /// The place of the training part while the run trains: device, host or stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency: Option<String>,
    /// The reason for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency_reason: Option<String>,
    /// Unusual facts about the files; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Hosts and controller exist; round 0 follows. Precision and determinism are as resolved, never as requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Name of the scenario.
    pub scenario: String,
    /// blake3 of `resolved.ron`.
    pub scenario_hash: String,
    /// Name of the task.
    pub task: String,
    /// The kind of the task that hosts learn.
    pub task_kind: TaskKind,
    /// Name of the controller.
    pub controller: String,
    /// Hash of the controller's orders, if they are fixed: those of a schedule or a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_hash: Option<String>,
    /// Envs in parallel.
    pub n_envs: u32,
    /// Rounds of the whole run.
    pub n_rounds: u32,
    /// Steps of an episode.
    pub max_steps: u32,
    /// The slots in policy order.
    pub slots: Vec<SlotId>,
    /// Trainable parameters of the host.
    pub host_params: u64,
    /// Trainable parameters of the policy; absent where nothing learns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_params: Option<u64>,
    /// Root of all random streams.
    pub seed: BigInteger,
    /// Devices that envs are spread over.
    pub env_devices: Vec<String>,
    /// The precision lower than f32 in which hosts train.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amp_dtype: Option<String>,
    /// Precision of f32 products.
    pub matmul_precision: String,
    /// Only deterministic kernels are used.
    pub deterministic: bool,
    /// The data set that hosts learn from.
    pub dataset: DatasetInfo,
    /// Checkpoint that the run was resumed from, relative to the run directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<String>,
    /// Fast paths that were tried and refused at start-up.
    pub fallbacks: Vec<String>,
    /// blake3 of `manifest.json` and `scenario.ron`, which never change; empty in a resumed part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub file_hashes: BTreeMap<String, String>,
}

/// The last event of every run, failed ones included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    /// The state in which it ended.
    pub status: RunState,
    /// Rounds played to their end.
    pub rounds_done: u32,
    /// Episodes that ended.
    pub episodes_done: u64,
    /// Policy updates performed.
    pub updates: u64,
    /// Duration in seconds.
    pub wall_s: Num,
    /// Rollbacks of all envs.
    pub rollbacks: u64,
    /// Step rows that slow sinks have missed.
    pub dropped_events: u64,
    /// Events that are missing from the record, including those of earlier parts of a resumed run. Absent if it is whole.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missing_events: u64,
    /// The record up to this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<EventsMark>,
    /// The error of a failed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The reason why a checkpoint was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointReason {
    /// The interval was over, or the run began.
    Periodic,
    /// The rolling accuracy has never been better.
    Best,
    /// The last round is over.
    Exit,
    /// The run was asked to stop.
    Signal,
    /// An anomaly required it.
    Anomaly,
    /// The run failed: the last state that is sound.
    Emergency,
}

/// A checkpoint has appeared on disk, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointSaved {
    /// Relative to the run directory.
    pub path: String,
    /// The round that a run resumed from it plays next.
    pub round: u32,
    /// Steps of this round that have been played; absent between rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The reason.
    pub reason: CheckpointReason,
    /// Size on disk.
    pub size_bytes: u64,
}

/// The run was resumed from this checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointLoaded {
    /// Relative to the run directory.
    pub path: String,
    /// The round that is played next.
    pub round: u32,
    /// Steps of this round that have been played; absent between rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
}

/// The best host, trained again with the same data and number of steps, without growth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineMeasured {
    /// Accuracy after the last step, in percent.
    pub val_accuracy: Num,
    /// Accuracy on the test part, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<Num>,
    /// Validation accuracies after the last step, percent, of this and up to seven other hosts of its round, by env; only of
    /// this one if nothing germinated in the run.
    pub hosts: Vec<Num>,
}

/// A remark of the engine: the changes in a resumed run, why it ended early, or the answer to a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The remark.
    pub text: String,
    /// The word of the command that it answers; only the process that plays the run writes such notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Note {
    /// A remark of the engine that answers no command.
    pub const fn of_engine(text: String) -> Self {
        Self { text, command: None }
    }
}

/// A value of a plugin's event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UserValue {
    /// Yes or no.
    Flag(bool),
    /// A number, finite or not.
    Number(Num),
    /// Any text.
    Text(String),
}

/// A plugin's event; `name` is `"plugin.thing"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserEvent {
    /// Name of the event.
    pub name: String,
    /// Values by name.
    pub fields: BTreeMap<String, UserValue>,
}

/// The scales of the loss in a round in float16, in env order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossScales {
    /// Updates of the host that were suppressed because its gradient was not finite.
    pub skipped: Vec<u64>,
    /// Scale after the env's last step.
    pub scale: Vec<Num>,
}

/// Batches that failed at first and were computed again in a slower, safer way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallbacks {
    /// Computed by libtorch's operators, because the engine's own kernels failed; of validation batches by chunk, of updates by minibatch.
    pub kernel: u32,
    /// Training batches computed in f32, because a loss in lower precision was not finite.
    pub autocast: u32,
    /// Training batches played as usual, because they could not be recorded as a CUDA graph.
    pub graph: u32,
}

added_by_field!(Fallbacks: kernel, autocast, graph);

impl Fallbacks {
    /// `None` without any.
    pub fn any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// The cost of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerfRound {
    /// Duration in seconds.
    pub round_wall_s: Num,
    /// Throughput.
    pub env_steps_per_s: Num,
    /// Training samples of all envs per second.
    pub samples_per_s: Num,
    /// Training samples of all envs.
    pub samples: u64,
    /// The parts of the time.
    pub phases_ms: PhaseTimes,
    /// Time that the threads of all envs spent on bringing training batches to where they are trained on, with the waits for
    /// them: gathering on a CPU; on CUDA to queue that, as copies are not waited for. Recordings and earlier rollouts count too.
    pub copy_ms: Num,
    /// Memory of the machine that the process uses at the end of the round; absent where the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The most memory that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Memory of devices other than the CPU at the end of the round, its peaks since the one before; by the device as scenarios name it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub device_memory_bytes: BTreeMap<String, DeviceMemory>,
}

/// The commit barrier of a round: once it is durable, the round is complete on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundFinished {
    /// Final validation accuracy over envs, in percent.
    pub accuracy_mean: Num,
    /// Population standard deviation over envs.
    pub accuracy_std: Num,
    /// The best validation accuracy that any env reached in this round.
    pub accuracy_best: Num,
    /// Episodes that ended because their env failed; means and deviations leave them out.
    pub episodes_failed: u32,
    /// Accuracies in env order. A failed env has what it had reached, NaN if nothing was measured.
    pub accuracy_env: Vec<Num>,
    /// Mean of the last ten rounds; absent in round 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_accuracy: Option<Num>,
    /// exp of the mean final validation loss over envs that did not fail; only for language models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perplexity: Option<Num>,
    /// Absent where nothing pays.
    #[serde(flatten)]
    pub paid: Option<RoundRewards>,
    /// Counts of growth, summed over the envs.
    #[serde(flatten)]
    pub growth: GrowthCounts,
    /// Summed over the envs.
    #[serde(flatten)]
    pub governor: GovernorCounts,
    /// Absent where losses are not scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amp: Option<LossScales>,
    /// Sums over the envs; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallbacks: Option<Fallbacks>,
    /// Measurements of plugins, by the names of their metrics.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Num>,
    /// The cost of the round.
    pub perf: PerfRound,
}
