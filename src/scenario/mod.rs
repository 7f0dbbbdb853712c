//! The experiment as a user writes it: plain data with defaults, one file a section.

mod lifecycle;
mod sections;
mod task;

pub use lifecycle::*;
pub use sections::*;
pub use task::*;

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
    pub attribution: AttributionConfig,
    pub policy: PolicyConfig,
    pub telemetry: TelemetryConfig,
}
