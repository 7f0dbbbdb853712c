//! Named tasks and presets of other settings.

use std::sync::LazyLock;

use ron::error::SpannedError;
use ron::value::RawValue;
use serde::{Deserialize, Serialize};

use super::task::{TaskOverrides, TaskSpec};
use crate::files::ron_options;
use crate::schema::{Kind, Names};

/// A task and the question that it asks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskPreset {
    #[serde(flatten)]
    /// The task.
    pub spec: TaskSpec,
    /// The question that it asks of growth, in one line.
    pub question: String,
}

/// Run-level values between the defaults and a scenario's own, as RON.
#[derive(Deserialize)]
pub struct TrainingPreset {
    /// As a scenario writes it.
    pub name: String,
    /// A scenario that sets nothing but the preset's values.
    pub values: Box<RawValue>,
}

/// The task for images of the user's own.
pub(super) const OWN_IMAGES: &str = "images";

/// Choices of the field `preset`.
pub static TRAINING_PRESETS: LazyLock<Vec<TrainingPreset>> = LazyLock::new(|| {
    // A file of the program's own: a test reads it.
    ron_options()
        .from_str(include_str!("../../../../assets/presets.ron"))
        .unwrap_or_default()
});

/// The preset of that name, in either case.
pub(super) fn preset_named(name: &str) -> Option<&'static TrainingPreset> {
    TRAINING_PRESETS
        .iter()
        .find(|preset| preset.name.eq_ignore_ascii_case(name))
}

/// Names of [`TRAINING_PRESETS`].
pub(super) const TRAINING_PRESET: Kind = Kind::Text(Names::Members {
    noun: "training preset",
    list: || TRAINING_PRESETS.iter().map(|preset| preset.name.clone()).collect(),
});

/// The built-in tasks, as the file says.
const TASKS: &str = include_str!("../../../../assets/tasks.ron");

#[derive(Deserialize)]
struct Tasks {
    first: TaskSpec,
    others: Vec<LikeAnother>,
}

#[derive(Deserialize)]
struct LikeAnother {
    name: String,
    like: String,
    /// The question of tasks that are listed.
    question: Option<String>,
    #[serde(default)]
    with: TaskOverrides,
}

/// All built-in tasks, in the order in which they are listed.
pub fn task_presets() -> Vec<TaskPreset> {
    // A file of the program's own: a test reads it.
    read_tasks().unwrap_or_default()
}

fn read_tasks() -> Result<Vec<TaskPreset>, SpannedError> {
    let Tasks { first, others } = ron_options().from_str(TASKS)?;
    let mut known = vec![first];
    let mut listed = Vec::new();
    for LikeAnother {
        name,
        like,
        question,
        with,
    } in others
    {
        let Some(other) = known.iter().find(|known| known.name == like) else {
            continue;
        };
        let mut spec = TaskSpec { name, ..other.clone() };
        with.apply(&mut spec);
        listed.extend(question.map(|question| TaskPreset {
            spec: spec.clone(),
            question,
        }));
        known.push(spec);
    }
    Ok(listed)
}
