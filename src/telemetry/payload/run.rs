//! Events of the run and of its rounds (spec 07 §5.1, §5.6).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::env::GrowthCounts;
use super::governor::GovernorCounts;
use super::learner::{RollbackCharges, UpdateVerdict};
use super::reward::RoundRewards;
use crate::growth::SlotId;
use crate::telemetry::encoding::{BigInteger, Num};

/// Where a run stands (spec 07 §12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Starting,
    Running,
    Paused,
    Stopping,
    Completed,
    Interrupted,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    Classification,
    Lm,
}

/// Name, split sizes and content hash of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetInfo {
    pub name: String,
    pub train_n: u64,
    pub val_n: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_n: Option<u64>,
    pub hash: String,
}

/// Annealing of the entropy bonus over the run's first rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntropyAnneal {
    pub start: Num,
    pub end: Num,
    pub rounds: u32,
}

/// How the run's policy is made and trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnerSetup {
    pub policy_params: u64,
    pub policy_device: String,
    /// Width of the network's core, recurrent or not.
    pub lstm_hidden: u32,
    pub lr: Num,
    pub clip_ratio: Num,
    pub gamma: Num,
    pub gae_lambda: Num,
    /// Before the first update.
    pub entropy_coef: Num,
    /// Absent if it is constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_anneal: Option<EntropyAnneal>,
    pub value_coef: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_grad_norm_policy: Option<Num>,
    pub update_epochs: u32,
}

/// Hosts and controller exist; round 0 follows. Precision and determinism are as resolved, never as asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    pub scenario: String,
    /// blake3 of `resolved.ron`.
    pub scenario_hash: String,
    pub task: String,
    pub task_kind: TaskKind,
    pub controller: String,
    /// Names what the controller will order, where that is fixed: the hash of a schedule or a replay (spec 03 §10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_hash: Option<String>,
    /// What the scenario pays for; `contribution` or `loss`.
    pub reward_family: String,
    pub reward_mode: String,
    pub n_envs: u32,
    pub n_rounds: u32,
    pub max_steps: u32,
    pub n_episodes: u64,
    pub slots: Vec<SlotId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seeds: Option<u32>,
    pub host_params: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lr_host: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_grad_norm_host: Option<Num>,
    /// Absent where nothing learns.
    #[serde(flatten)]
    pub learner: Option<LearnerSetup>,
    pub seed: BigInteger,
    pub env_devices: Vec<String>,
    pub amp_enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amp_dtype: Option<String>,
    pub matmul_precision: String,
    pub deterministic: bool,
    pub dataset: DatasetInfo,
    pub start_round: u32,
    /// Checkpoint that a resumed run goes on from, relative to the run directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<String>,
    /// Fast paths that were tried and refused at start-up.
    pub fallbacks: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestEpisode {
    pub episode: u32,
    pub accuracy: Num,
    pub param_ratio: Num,
}

/// The last event of every run, failed ones included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    pub status: RunState,
    pub rounds_done: u32,
    pub episodes_done: u64,
    /// Policy updates performed.
    pub updates: u64,
    pub wall_s: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_rolling_accuracy: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_rolling_accuracy: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_episode: Option<BestEpisode>,
    pub rollbacks: u64,
    pub dropped_events: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why a checkpoint was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointReason {
    /// Its turn, or the beginning of the run.
    Periodic,
    /// The rolling accuracy has never been better.
    Best,
    /// The last round is over.
    Exit,
    /// The run was asked to stop.
    Signal,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_accuracy: Option<Num>,
    pub reason: CheckpointReason,
    pub size_bytes: u64,
    pub wall_ms: Num,
}

/// A resumed run goes on from this checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointLoaded {
    /// Relative to the run directory.
    pub path: String,
    /// Played next.
    pub round: u32,
}

/// A host with the same data and number of steps that never grew: what growth is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineMeasured {
    /// After the last step, in percent.
    pub val_accuracy: Num,
    pub val_loss: Num,
    pub best_val_accuracy: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<Num>,
    pub steps: u32,
    pub params: u64,
}

/// A person's annotation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UserValue {
    Flag(bool),
    Number(Num),
    Text(String),
}

/// A plugin's event; `name` is `"plugin.thing"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserEvent {
    pub name: String,
    pub fields: BTreeMap<String, UserValue>,
}

/// What a round cost (spec 07 §16.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerfRound {
    pub round_wall_s: Num,
    pub env_steps_per_s: Num,
    pub samples_per_s: Num,
    /// Training samples of all envs.
    pub samples: u64,
    pub rounds_per_hour: Num,
    /// Time inside telemetry flushes, and of that, waiting for a durable sink.
    pub telemetry_ms: Num,
    pub blocked_ms: Num,
    /// Device-to-host copies and stream waits.
    pub host_reads: u64,
    pub waits: u64,
}

/// The commit barrier of a round: once it is durable, the round is complete on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundFinished {
    /// Final validation accuracy over envs, in percent.
    pub accuracy_mean: Num,
    pub accuracy_std: Num,
    /// The best validation accuracy that any env reached in this round.
    pub accuracy_best: Num,
    pub accuracy_env: Vec<Num>,
    /// Mean of the last ten rounds; absent in round 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_accuracy: Option<Num>,
    #[serde(flatten)]
    pub paid: Option<RoundRewards>,
    #[serde(flatten)]
    pub growth: GrowthCounts,
    #[serde(flatten)]
    pub governor: GovernorCounts,
    /// Absent where nothing learns.
    #[serde(flatten)]
    pub charges: Option<RollbackCharges>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<UpdateVerdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<Num>,
    pub perf: PerfRound,
}
