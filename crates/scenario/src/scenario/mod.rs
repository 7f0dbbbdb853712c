//! The experiment as a user writes it: plain data with defaults, and the way from text to it.
//!
//! Each section is declared once, in a file of its own, in the language of `schema`: type, default,
//! range, unit and documentation of a field stand together. A scenario file is read with positions (`reader` → `tree`),
//! laid over defaults and presets and under overrides (`layers`), compared with the declarations by `check`, and judged
//! as a whole by `validate`; `load` is the way through.

mod arithmetic;
mod attribution;
mod controllers;
mod device;
mod faults;
mod governor;
mod host;
mod learner;
mod lifecycle;
mod needs;
mod run;
mod task;
mod presets;
mod reward;
mod catalog;
mod derived;
mod policy;
mod topology;
mod tree;
mod problem;
mod paths;
mod wording;
mod parts;
mod layers;
mod reader;
mod validate;
mod check;
mod document;
mod explain;
mod load;
#[cfg(any(test, feature = "testing"))]
pub mod fixtures;
#[cfg(test)]
mod tests;

pub use arithmetic::{AmpMode, Kernels, MatmulPrecision, OptimizerConfig};
pub use attribution::{AttributionConfig, AttributionStrategy, Cadence};
pub use catalog::{BlueprintEntry, Catalog, Entry, KnownHosts, KnownImages, KnownRewards, OwnImages, host_families};
pub use controllers::{HeuristicConfig, PeriodicConfig, ReplayConfig, ScheduleConfig, ScheduleEntry, ScheduledCommand};
pub use derived::{DataForm, ImageShape, PartSizes, TextShape, data_forms, reward_forms};
pub use device::{DeviceError, DeviceSpec};
pub use document::{Declared, declares, read_declared, written_values};
pub use explain::{ExplainedField, Explanation, Member, explain, field_paths, field_values};
pub use faults::{Fault, FaultEntry};
pub use governor::GovernorConfig;
pub use host::{
    CnnSpec, HostChoice, HostName, HostNorm, HostOutline, HostProblem, Positions, ResnetSpec, STATISTICS, Shortcut,
    Stem, TransformerSpec, VggSpec, part_of, stands_for,
};
pub use layers::Override;
pub use learner::{
    AdvantageBaseline, Algorithm, CloneConfig, EpisodeEnd, ImpalaConfig, LEAST_ENTROPY_COEF, LearnerConfig,
    RecordingsConfig,
};
pub use lifecycle::{GateConfig, GateMode, LifecycleConfig, OnCommit};
pub use load::{Input, Loaded, load, load_in};
pub use needs::{MeasurementNeed, RewardProfile};
pub use paths::UnknownField;
pub use policy::{ActionSpace, FeatureGroup, HeadConditioning, MaskConfig, NetConfig, OpBias, PolicyConfig};
pub use presets::{TRAINING_PRESETS, TaskPreset, TrainingPreset, task_presets};
pub use problem::{COLOURS, Problem, ProblemRow, Report, Severity, Source, SourceKind, nearest, printable, visible};
pub use reward::{CommittedReward, ContributionMode, LossPreset, LossReward, LossScale, RewardConfig, SparseReward};
pub use run::{AnomalyAnswer, DataConfig, Keep, LearningRateCourse, OnEnvError, Residency, RunConfig, TrainingConfig};
pub use task::{
    ArrayLayout, AugmentSpec, BYTE_VOCABULARY, BatchesPerStep, DataSource, HostWeights, ListedShape, Normalise,
    ParquetTable, SYNTH_VOCABULARY, SplitSpec, SynthImages, SynthTokens, TaskChoice, TaskOverrides, TaskSpec, TextFile,
    TokenFiles, TokenFormat, ValBatches,
};
pub use topology::{InitialSeed, InitialTopology};

pub use crate::files::{resolved_ron, ron_text};
use crate::schema::{Described, Kind, section};
use presets::TRAINING_PRESET;

section! {
    /// One experiment. Every section and key is optional; unknown keys are errors.
    pub struct Scenario {
        /// Name of the run; the scenario file's name if left out.
        name: String, RUN_NAME;
        /// Training preset. Its values replace the defaults, and this file's values replace the preset's.
        preset: Option<String>, TRAINING_PRESET;
        /// Task of every env: data, host network, optimizers, episode length.
        task: TaskChoice;
        /// Place and loading of the data.
        data: DataConfig;
        /// Size and placement of the run.
        run: RunConfig;
        /// Batch splitting, precision and learning rates of training.
        training: TrainingConfig;
        /// Slots, quality gates and the rules of growing and pruning.
        lifecycle: LifecycleConfig;
        /// Seeds that are committed, with fresh weights, before the first step of an episode.
        initial_topology: InitialTopology = InitialTopology::Empty;
        /// Watchdog that restores envs whose training has gone wrong.
        governor: GovernorConfig;
        /// Measurement of each seed's contribution.
        attribution: AttributionConfig;
        /// Controller that decides what grows, and its limits.
        policy: PolicyConfig;
        /// Reward of the policy's decisions.
        reward: RewardConfig;
        /// Training of the policy.
        learner: LearnerConfig;
        /// Deliberate damage, to see the governor work.
        faults: Vec<FaultEntry>;
    }
}

/// The description of a whole scenario.
static SCENARIO: Kind = Scenario::KIND;
