//! The smaller sections: `data`, `run`, `training`, `attribution`, `policy`, `telemetry`.

use serde::{Deserialize, Serialize};

use super::{ActionSpace, HeuristicConfig, RandomConfig, ReplayConfig, ScheduleConfig};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedMode {
    /// Every env has its own permutation of the training set per step.
    PerEnv,
    /// All envs share order and augmentation.
    Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataConfig {
    pub feed: FeedMode,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self { feed: FeedMode::PerEnv }
    }
}

/// Section `run` (spec 06 §2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    pub rounds: u32,
    /// `None`: the task's.
    pub max_steps: Option<u32>,
    pub n_envs: usize,
    pub seed: u64,
    /// `"cpu"`, `"cuda:0"`, `"mps"`.
    pub devices: Vec<String>,
    pub deterministic: bool,
    pub matmul_precision: MatmulPrecision,
    pub launch: Launch,
    pub stop_at: StopAt,
    /// Rounds.
    pub checkpoint_every: u32,
    /// Checkpoints, the best one not counted.
    pub keep_last: u32,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            rounds: 100,
            max_steps: None,
            n_envs: 4,
            seed: 42,
            devices: vec!["cpu".into()],
            deterministic: false,
            matmul_precision: MatmulPrecision::High,
            launch: Launch::Parallel,
            stop_at: StopAt::Step,
            checkpoint_every: 1,
            keep_last: 3,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatmulPrecision {
    Highest,
    High,
    Medium,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Launch {
    Parallel,
    Sequential,
}

/// What a run that is asked to stop plays to its end (spec 06 §14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopAt {
    Step,
    Round,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AmpMode {
    Off,
    Auto,
    Bf16,
}

/// Section `training` (spec 06 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    pub micro_batches: usize,
    pub amp: AmpMode,
    pub grad_stats_stride: usize,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            micro_batches: 1,
            amp: AmpMode::Off,
            grad_stats_stride: 10,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttributionStrategy {
    Auto,
    AblationOnly,
    FullFactorial,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cadence {
    EveryStep,
    EveryK(u32),
    Terminal,
    Off,
}

/// Most players whose 2^n configurations may all be asked for.
pub const FULL_FACTORIAL_LIMIT: usize = 12;

/// Section `attribution` (spec 05 §10).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttributionConfig {
    pub strategy: AttributionStrategy,
    pub cadence: Cadence,
    /// Up to this many players all 2^n configurations are evaluated.
    pub full_factorial_max: usize,
    /// Up to this many players all pairs are evaluated.
    pub pairs_max: usize,
    /// Sampled orders of players for the final step's Shapley values, an even number: each comes with its reverse.
    pub shapley_permutations: usize,
    pub include_fossilized: bool,
    /// Most rows of one fused forward.
    pub max_fused_rows: usize,
    pub velocity_decay: f64,
}

impl Default for AttributionConfig {
    fn default() -> Self {
        Self {
            strategy: AttributionStrategy::Auto,
            cadence: Cadence::EveryStep,
            full_factorial_max: 4,
            pairs_max: 8,
            shapley_permutations: 20,
            include_fossilized: false,
            max_fused_rows: 8192,
            velocity_decay: 0.7,
        }
    }
}

/// Section `policy`: who decides (spec 03 §9-10, §15).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// `actor_critic`, `heuristic`, `random`, `replay`, `schedule`, `static`, `wait`, or a plugin's.
    pub controller: String,
    /// Values between the defaults and the scenario's own: `lstm_small` or `classic`.
    pub preset: Option<String>,
    /// Network of the learned controller: `lstm`, `gru`, `mlp`.
    pub net: String,
    pub net_cfg: NetConfig,
    pub obs: ObservationConfig,
    pub floor: FloorConfig,
    pub masks: MaskConfig,
    /// Folder of a saved policy to start from, relative to the scenario.
    pub init_from: Option<String>,
    pub heuristic: HeuristicConfig,
    pub random: RandomConfig,
    pub schedule: ScheduleConfig,
    pub replay: ReplayConfig,
    pub tracker: TrackerConfig,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            controller: "heuristic".into(),
            preset: None,
            net: "lstm".into(),
            net_cfg: NetConfig::default(),
            obs: ObservationConfig::default(),
            floor: FloorConfig::default(),
            masks: MaskConfig::default(),
            init_from: None,
            heuristic: HeuristicConfig::default(),
            random: RandomConfig::default(),
            schedule: ScheduleConfig::default(),
            replay: ReplayConfig::default(),
            tracker: TrackerConfig::default(),
        }
    }
}

/// Which ops share a row of logits (spec 03 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadConditioning {
    PerOp,
    Shared,
}

/// Sizes of the policy network (spec 03 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetConfig {
    pub feature_dim: usize,
    /// A multiple of 8.
    pub hidden_dim: usize,
    pub layers: usize,
    pub embed_dim: usize,
    pub head_conditioning: HeadConditioning,
    pub contribution_head: bool,
    pub aux_dropout: f64,
    /// `mlp` alone: steps that it sees at once.
    pub frame_stack: usize,
    pub op_bias: OpBias,
}

/// What a fresh network prefers: added to the logits of the ops (spec 03 §7.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpBias {
    pub wait: f64,
    pub germinate: f64,
    pub set_alpha_target: f64,
    pub prune: f64,
    pub fossilize: f64,
    pub advance: f64,
}

impl OpBias {
    /// In the order of the ops.
    pub const fn values(&self) -> [f64; 6] {
        [
            self.wait,
            self.germinate,
            self.set_alpha_target,
            self.prune,
            self.fossilize,
            self.advance,
        ]
    }
}

impl Default for NetConfig {
    fn default() -> Self {
        Self {
            feature_dim: 512,
            hidden_dim: 512,
            layers: 1,
            embed_dim: 4,
            head_conditioning: HeadConditioning::PerOp,
            contribution_head: true,
            aux_dropout: 0.0,
            frame_stack: 1,
            op_bias: OpBias::default(),
        }
    }
}

/// What the learned controller sees (spec 03 §6).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObservationConfig {
    pub freshness_decay: f64,
}

impl Default for ObservationConfig {
    fn default() -> Self {
        Self { freshness_decay: 0.995 }
    }
}

/// How exploration is kept up (spec 03 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorMode {
    Mixture,
    Clamp,
    None,
}

/// Least probability of every valid member, by head.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FloorConfig {
    pub mode: FloorMode,
    pub op: f64,
    pub slot: f64,
    pub blueprint: f64,
    pub style: f64,
    pub tempo: f64,
    pub alpha_target: f64,
    pub alpha_speed: f64,
    pub alpha_curve: f64,
}

impl Default for FloorConfig {
    fn default() -> Self {
        Self {
            mode: FloorMode::Mixture,
            op: 0.05,
            slot: 0.03,
            blueprint: 0.03,
            style: 0.03,
            tempo: 0.05,
            alpha_target: 0.03,
            alpha_speed: 0.03,
            alpha_curve: 0.02,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MaskConfig {
    pub sequential_germination: bool,
    pub mask_structural_gates: bool,
    pub action_space: ActionSpace,
}

impl Default for MaskConfig {
    fn default() -> Self {
        Self {
            sequential_germination: true,
            mask_structural_gates: true,
            action_space: ActionSpace::default(),
        }
    }
}

/// When a host counts as stabilised or as standing still (spec 03 §5).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrackerConfig {
    /// A step that gains less than this many percentage points extends the plateau.
    pub plateau_threshold_pct: f64,
    /// Steps remembered, at least the 5 that an observation shows.
    pub history_window: usize,
    /// A relative improvement of the loss below this counts as stable.
    pub stabilization_threshold: f64,
    /// Stable steps in a row until the host counts as stabilised.
    pub stabilization_epochs: u32,
    /// A relative worsening of the loss of this or more does not count as stable.
    pub regression_threshold: f64,
}

impl Default for TrackerConfig {
    fn default() -> Self {
        Self {
            plateau_threshold_pct: 0.5,
            history_window: 10,
            stabilization_threshold: 0.03,
            stabilization_epochs: 3,
            regression_threshold: 0.05,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TelemetryLevel {
    Off,
    Lifecycle,
    Full,
    Debug,
}

/// Which curves are written for TensorBoard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorBoard {
    Off,
    /// Rounds, updates, and steps averaged over the envs.
    Mean,
    /// The steps of each env as well.
    PerEnv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    pub level: TelemetryLevel,
    pub require: bool,
    pub step_stride: u32,
    pub tensorboard: TensorBoard,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            level: TelemetryLevel::Full,
            require: true,
            step_stride: 1,
            tensorboard: TensorBoard::Mean,
        }
    }
}
