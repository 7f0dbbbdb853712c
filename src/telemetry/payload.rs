//! What each event carries (spec 07 §5): one struct an event, plain data, absent values left out.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::encoding::{ActionId, BigInteger, Num, by_name, by_name_if_any};
use super::env_status::EnvStatus;
use crate::seed::{
    AlphaCurve, AlphaCurveAction, AlphaMode, AlphaSpeed, FailureReason, GateLevel, GateResult,
    GerminationStyle, Initiator, LifecycleCommand, LifecycleOp, PruneReason, SeedStage, SlotId,
    Tempo,
};

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

/// Hosts and controller exist; round 0 follows. Precision and determinism are as resolved, never as asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    pub scenario: String,
    /// blake3 of `resolved.ron`.
    pub scenario_hash: String,
    pub task: String,
    pub task_kind: TaskKind,
    pub controller: String,
    pub n_envs: u32,
    pub n_rounds: u32,
    pub max_steps: u32,
    pub n_episodes: u64,
    pub slots: Vec<SlotId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seeds: Option<u32>,
    pub host_params: u64,
    pub lr: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_grad_norm_host: Option<Num>,
    pub seed: BigInteger,
    pub env_devices: Vec<String>,
    pub amp_enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amp_dtype: Option<String>,
    pub matmul_precision: String,
    pub deterministic: bool,
    pub dataset: DatasetInfo,
    pub start_round: u32,
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
    pub wall_s: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_rolling_accuracy: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_rolling_accuracy: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_episode: Option<BestEpisode>,
    pub dropped_events: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
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

/// One env after the validation of one step. Accuracies in percent, losses in nats, params in scalars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvStep {
    pub train_loss: Num,
    pub train_accuracy: Num,
    pub val_loss: Num,
    pub val_accuracy: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_grad_norm: Option<Num>,
    pub params_total: u64,
    pub params_seeds_active: u64,
    pub params_fossilized: u64,
    /// (host + fossilized) / host.
    pub growth_ratio: Num,
    pub best_accuracy: Num,
    pub steps_since_best: u32,
    pub status: EnvStatus,
    pub seeds: Vec<SeedRow>,
}

/// One occupied slot in an [`EnvStep`]. A gradient that was not measured leaves its fields out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedRow {
    pub slot: SlotId,
    pub seed_id: String,
    #[serde(with = "by_name")]
    pub stage: SeedStage,
    pub blueprint: String,
    pub params: u64,
    pub alpha: Num,
    pub alpha_target: Num,
    #[serde(with = "by_name")]
    pub alpha_mode: AlphaMode,
    pub epochs_in_stage: u32,
    pub age_epochs: u32,
    /// Since germination, in points.
    pub accuracy_delta: Num,
    /// Accuracy with the seed minus without it, in points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution_velocity: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_sum: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boost_received: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_health: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_ratio: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanishing: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploding: Option<bool>,
}

impl From<&crate::seed::SeedReport> for SeedRow {
    /// A seed that was never measured has neither velocity nor interaction: the report's zeros are left out.
    fn from(report: &crate::seed::SeedReport) -> Self {
        let if_measured = |value: f64| report.contribution.map(|_| Num(value));
        Self {
            slot: report.slot,
            seed_id: report.seed_id.clone(),
            stage: report.stage,
            blueprint: report.blueprint.into(),
            params: report.seed_params,
            alpha: Num(report.alpha),
            alpha_target: Num(report.alpha_target),
            alpha_mode: report.alpha_mode,
            epochs_in_stage: report.epochs_in_stage,
            age_epochs: report.age_epochs,
            accuracy_delta: Num(report.total_improvement),
            contribution: report.contribution.map(Num),
            contribution_velocity: if_measured(report.contribution_velocity),
            interaction_sum: if_measured(report.interaction_sum),
            boost_received: if_measured(report.boost_received),
            gradient_norm: report.gradient_norm.map(Num),
            gradient_health: report.gradient_health.map(Num),
            gradient_ratio: report.gradient_ratio.map(Num),
            vanishing: report.has_vanishing,
            exploding: report.has_exploding,
        }
    }
}

/// The heads that matter to an operation; the others are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "by_name_if_any"
    )]
    pub style: Option<GerminationStyle>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "by_name_if_any"
    )]
    pub tempo: Option<Tempo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha_target: Option<Num>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "by_name_if_any"
    )]
    pub alpha_speed: Option<AlphaSpeed>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "by_name_if_any"
    )]
    pub alpha_curve: Option<AlphaCurveAction>,
}

impl Choice {
    /// What `command` chose; `blueprint_name` turns its blueprint index into an id.
    pub fn of(command: &LifecycleCommand, blueprint_name: impl Fn(usize) -> String) -> Self {
        match *command {
            LifecycleCommand::Germinate {
                blueprint,
                style,
                tempo,
                target,
                ..
            } => Self {
                blueprint: Some(blueprint_name(blueprint)),
                style: Some(style),
                tempo: Some(tempo),
                alpha_target: Some(Num(target.value())),
                ..Self::default()
            },
            LifecycleCommand::SetAlphaTarget {
                style,
                target,
                speed,
                curve,
                ..
            } => Self {
                style: Some(style),
                alpha_target: Some(Num(target.value())),
                alpha_speed: Some(speed),
                alpha_curve: Some(curve),
                ..Self::default()
            },
            LifecycleCommand::Prune { speed, curve, .. } => Self {
                alpha_speed: Some(speed),
                alpha_curve: Some(curve),
                ..Self::default()
            },
            LifecycleCommand::Wait
            | LifecycleCommand::Fossilize { .. }
            | LifecycleCommand::Advance { .. } => Self::default(),
        }
    }
}

/// What the controller of one env ordered in one step and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    #[serde(with = "by_name")]
    pub op: LifecycleOp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotId>,
    pub success: bool,
    /// [`refusal_code`] of the reason why it did not execute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    #[serde(with = "by_name")]
    pub effective_op: LifecycleOp,
    /// Heads with at most one valid option.
    pub forced: BTreeMap<String, bool>,
    pub scripted: bool,
    pub choice: Choice,
    /// In operation code order.
    pub op_mask: Vec<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Steps since the counterfactual in use was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution_age: Option<u32>,
    pub action_id: ActionId,
}

/// The fixed code of a refusal, without its numbers; its `Display` text belongs into [`super::Event::message`].
pub const fn refusal_code(reason: &FailureReason) -> &'static str {
    match reason {
        FailureReason::SlotDisabled => "slot_disabled",
        FailureReason::SlotOccupied => "slot_occupied",
        FailureReason::SlotEmpty => "slot_empty",
        FailureReason::Cooldown { .. } => "cooldown",
        FailureReason::SeedLimit => "seed_limit",
        FailureReason::DevelopingSeed => "developing_seed",
        FailureReason::WrongStage { .. } => "wrong_stage",
        FailureReason::TooYoung { .. } => "too_young",
        FailureReason::AlphaBusy { .. } => "alpha_busy",
        FailureReason::AdvanceDisabled => "advance_disabled",
        FailureReason::GateFailed { .. } => "gate_failed",
        FailureReason::InvalidTarget => "invalid_target",
        FailureReason::BlueprintUnavailable => "blueprint_unavailable",
        FailureReason::NoTrainableParams => "no_trainable_params",
        FailureReason::ShapeMismatch => "shape_mismatch",
        FailureReason::OutOfMemory => "out_of_memory",
        FailureReason::GovernorVeto { .. } => "governor_veto",
    }
}

/// The latch that first permits germination has closed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStabilized {
    pub stable_count: u32,
    pub required: u32,
    pub val_loss: Num,
}

/// A count per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct OpCounts {
    pub wait: u32,
    pub germinate: u32,
    pub set_alpha_target: u32,
    pub prune: u32,
    pub fossilize: u32,
    pub advance: u32,
}

impl OpCounts {
    pub const fn record(&mut self, op: LifecycleOp) {
        *match op {
            LifecycleOp::Wait => &mut self.wait,
            LifecycleOp::Germinate => &mut self.germinate,
            LifecycleOp::SetAlphaTarget => &mut self.set_alpha_target,
            LifecycleOp::Prune => &mut self.prune,
            LifecycleOp::Fossilize => &mut self.fossilize,
            LifecycleOp::Advance => &mut self.advance,
        } += 1;
    }
}

impl AddAssign for OpCounts {
    fn add_assign(&mut self, other: Self) {
        self.wait += other.wait;
        self.germinate += other.germinate;
        self.set_alpha_target += other.set_alpha_target;
        self.prune += other.prune;
        self.fossilize += other.fossilize;
        self.advance += other.advance;
    }
}

/// What was ordered and what grew: per episode, summed over envs per round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthCounts {
    pub germinated: u32,
    pub fossilized: u32,
    pub pruned: u32,
    /// Operations ordered.
    pub ops: OpCounts,
    /// Operations that executed.
    pub ops_ok: OpCounts,
}

impl GrowthCounts {
    pub const fn record(&mut self, op: LifecycleOp, success: bool) {
        self.ops.record(op);
        if success {
            self.ops_ok.record(op);
        }
    }
}

impl AddAssign for GrowthCounts {
    fn add_assign(&mut self, other: Self) {
        self.germinated += other.germinated;
        self.fossilized += other.fossilized;
        self.pruned += other.pruned;
        self.ops += other.ops;
        self.ops_ok += other.ops_ok;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlueprintCounts {
    pub germinated: u32,
    pub fossilized: u32,
    pub pruned: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpisodeEnd {
    Horizon,
    GovernorLimit,
    EarlyStop,
    Stopped,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Timeout,
}

/// The end of an env's episode, once per env and round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeFinished {
    pub final_accuracy: Num,
    /// With the fossilized seeds alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_accuracy: Option<Num>,
    pub final_loss: Num,
    pub best_accuracy: Num,
    pub best_step: u32,
    /// On the test split, which nothing was chosen by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<Num>,
    pub length: u32,
    pub end: EpisodeEnd,
    pub outcome: Outcome,
    /// Total / host; 1 = no growth.
    pub param_ratio: Num,
    /// Fossilized seeds whose contribution reaches the lifecycle's threshold.
    pub contributing: u32,
    #[serde(flatten)]
    pub growth: GrowthCounts,
    pub blueprints: BTreeMap<String, BlueprintCounts>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedGerminated {
    pub blueprint: String,
    pub params: u64,
    pub gate_params: u64,
    #[serde(with = "by_name")]
    pub style: GerminationStyle,
    #[serde(with = "by_name")]
    pub tempo: Tempo,
    pub tempo_epochs: u32,
    pub alpha_target: Num,
    #[serde(with = "by_name")]
    pub alpha_curve: AlphaCurve,
    pub accuracy: Num,
    /// A string, whatever its size.
    pub rng_seed: String,
    pub action_id: ActionId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageCause {
    Policy,
    Gate,
    Auto,
    Governor,
    ScheduledPrune,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedStageChanged {
    #[serde(with = "by_name")]
    pub from: SeedStage,
    #[serde(with = "by_name")]
    pub to: SeedStage,
    pub alpha: Num,
    /// Spent in `from`.
    pub epochs_in_stage: u32,
    pub accuracy_delta: Num,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "by_name_if_any"
    )]
    pub curve: Option<AlphaCurve>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_ratio: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanishing: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploding: Option<bool>,
    pub cause: StageCause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateCheckRow {
    pub name: String,
    pub passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Num>,
}

/// A gate with the values and thresholds it compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedGateEvaluated {
    #[serde(with = "by_name")]
    pub gate: GateLevel,
    pub passed: bool,
    /// The stage behind the gate.
    #[serde(with = "by_name")]
    pub target: SeedStage,
    pub checks: Vec<GateCheckRow>,
}

impl SeedGateEvaluated {
    pub fn new(result: &GateResult, target: SeedStage) -> Self {
        Self {
            gate: result.level,
            passed: result.passed,
            target,
            checks: result
                .checks
                .iter()
                .map(|check| GateCheckRow {
                    name: check.id.into(),
                    passed: check.passed,
                    value: check.value.map(Num),
                    threshold: check.threshold.map(Num),
                })
                .collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedFossilized {
    pub blueprint: String,
    pub params_added: u64,
    pub alpha: Num,
    pub age_epochs: u32,
    pub total_improvement: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending_delta: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<Num>,
    pub contributing: bool,
    pub action_id: ActionId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedPruned {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<String>,
    #[serde(with = "by_name")]
    pub reason: PruneReason,
    #[serde(with = "by_name")]
    pub initiator: Initiator,
    /// Where it was when it was pruned.
    #[serde(with = "by_name")]
    pub stage: SeedStage,
    pub age_epochs: u32,
    pub total_improvement: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending_delta: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
}

/// The cool-down is over; the slot is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRecycled {
    pub idle_steps: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    Full,
    Ablation,
    Sampled,
}

/// One measured configuration: bit i of `mask` is on where `slots[i]` was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoalitionRow {
    pub mask: BigInteger,
    pub accuracy: Num,
    pub loss: Num,
    /// Samples that only all-on got right, and that only this configuration got right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discordant: Option<(u64, u64)>,
}

/// Measured configurations only; missing ones stay missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterfactualMatrix {
    /// The players.
    pub slots: Vec<SlotId>,
    pub seed_ids: Vec<String>,
    pub alphas: Vec<Num>,
    pub rows: Vec<CoalitionRow>,
    pub samples: u64,
    pub coverage: Coverage,
    pub dropped: Vec<BigInteger>,
    pub total_ms: Num,
    pub extra_ms: Num,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapleyMethod {
    Exact,
    Permutation,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapleyValue {
    pub mean: Num,
    pub std: Num,
    pub n: u32,
}

/// Shapley values in points, parallel to `slots` and `seed_ids`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shapley {
    pub slots: Vec<SlotId>,
    pub seed_ids: Vec<String>,
    pub values: Vec<ShapleyValue>,
    pub method: ShapleyMethod,
    pub efficiency_gap: Num,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairInteraction {
    pub a: SlotId,
    pub b: SlotId,
    pub value: Num,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interactions {
    pub pairs: Vec<PairInteraction>,
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
    pub growth: GrowthCounts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<Num>,
    pub perf: PerfRound,
}
