//! The experiment as a user writes it: plain data with defaults, and the way from text to it.
//!
//! The sections are serde types (`learner`, `lifecycle`, `sections`, `task`). A scenario file is read with positions (`reader` →
//! `tree`), laid over defaults and presets and under overrides (`layers`), compared with one table of all fields
//! (`fields`, in the language of `schema`) by `check`, and judged as a whole by `validate`; `load` is the way through.

mod action_space;
mod catalog;
mod check;
mod controllers;
mod derived;
mod explain;
mod faults;
mod fields;
mod governor;
mod layers;
mod learner;
mod lifecycle;
mod load;
mod presets;
mod problem;
mod reader;
mod resolve;
mod reward;
mod schema;
mod sections;
mod task;
#[cfg(test)]
mod tests;
mod topology;
mod tree;
mod validate;

pub use action_space::*;
pub use catalog::{BlueprintEntry, Catalog, Entry};
pub use controllers::*;
pub use derived::{ImageShape, PartSizes};
pub use explain::{ExplainedField, Explanation, Member, UnknownField, explain, field_paths};
pub use faults::*;
pub use fields::reward_forms;
pub use governor::*;
pub use layers::Override;
pub use learner::*;
pub use lifecycle::*;
pub use load::{Input, Loaded, load};
pub use presets::{BUILTIN_SCHEDULES, POLICY_PRESETS, TRAINING_PRESETS, TaskPreset, TrainingPreset, task_presets};
pub use problem::{Problem, ProblemRow, Report, Severity, Source, SourceKind, nearest};
pub use resolve::{UnknownTask, resolved_ron};
pub use reward::*;
pub use sections::*;
pub use task::*;
pub use topology::*;

use serde::{Deserialize, Serialize};

/// One experiment (spec 00 §3). Every section and key is optional; unknown keys are errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Name of the run; the file's name when empty.
    pub name: String,
    /// Training preset whose values lie between the defaults and this file's.
    pub preset: Option<String>,
    pub task: TaskChoice,
    pub data: DataConfig,
    pub run: RunConfig,
    pub training: TrainingConfig,
    pub lifecycle: LifecycleConfig,
    /// What every episode starts with beside the host.
    pub initial_topology: InitialTopology,
    pub governor: GovernorConfig,
    pub attribution: AttributionConfig,
    pub policy: PolicyConfig,
    pub reward: RewardConfig,
    pub learner: LearnerConfig,
    pub telemetry: TelemetryConfig,
    /// Damage done on purpose; none by default.
    pub faults: Vec<FaultEntry>,
}
