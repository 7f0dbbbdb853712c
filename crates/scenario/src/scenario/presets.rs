//! Named tasks and presets of other settings.

use ron::error::SpannedError;
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
    /// What it asks of growth, in one line.
    pub question: String,
}

/// Run-level values between the defaults and a scenario's own, as RON.
pub struct TrainingPreset {
    /// As a scenario writes it.
    pub name: &'static str,
    /// A scenario that sets nothing but the preset's values.
    pub ron: &'static str,
}

/// The task for images of the user's own.
pub(super) const OWN_IMAGES: &str = "images";

/// Long runs with the choices from before the proof: one seed at a time, gates that ask for ten steps and healthy gradients, every
/// operation and amplitude, a wide network that begins without preferences and reads each rollout four times.
macro_rules! historical {
    ($learner:literal) => {
        concat!(
            "(
                run: (rounds: 200, max_steps: 150),
                training: (amp: auto),
                lifecycle: (
                    gates: (min_training_steps: 10, min_gradient_health: 0.7), exploding_factor: 10.0, max_holding_steps: None,
                ),
                policy: (
                    net_cfg: (
                        feature_dim: 512, hidden_dim: 512, head_conditioning: per_op, op_bias: (prune: 0.0, commit: 0.0),
                    ),
                    floor: (op: 0.05),
                    masks: (sequential_germination: true, action_space: (allowed_ops: None, alpha_target: None)),
                ),
                learner: (episode_end: truncated, epochs: 4, target_kl: 0.02, value_norm: (momentum: 0.95), ",
            $learner,
            "),
            )"
        )
    };
}

/// Choices of the field `preset`.
pub static TRAINING_PRESETS: [TrainingPreset; 4] = [
    TrainingPreset {
        name: "digits",
        ron: "(run: (rounds: 40, n_envs: 8, max_steps: 60))",
    },
    TrainingPreset {
        name: "manual",
        ron: "(
            lifecycle: (
                auto_forward: (g1: false, g2: false, g3: false),
                gates: (min_training_steps: 10, min_gradient_health: 0.7), exploding_factor: 10.0, max_holding_steps: None,
            ),
            policy: (masks: (sequential_germination: true, action_space: (allowed_ops: None, alpha_target: None))),
        )",
    },
    TrainingPreset {
        name: "cifar_annealed",
        ron: historical!(
            "lr: 3e-4, gae_lambda: 0.95, value_coef: 0.25, entropy_coef: 0.15, entropy_coef_end: 0.08,
             entropy_anneal_episodes: 3000,
             entropy_head_mult: (op: 3.0, slot: 1.5, blueprint: 2.5, style: 1.5, tempo: 2.5, alpha_target: 1.5,
                                 alpha_speed: 1.2, alpha_curve: 1.2),"
        ),
    },
    TrainingPreset {
        name: "cifar_steady",
        ron: historical!(
            "lr: 1e-3, value_coef: 0.5, entropy_coef: 0.05, entropy_coef_end: 0.03, entropy_anneal_episodes: 1000,"
        ),
    },
];

/// The preset of that name, in either case.
pub(super) fn preset_named(name: &str) -> Option<&'static TrainingPreset> {
    TRAINING_PRESETS
        .iter()
        .find(|preset| preset.name.eq_ignore_ascii_case(name))
}

/// Names of [`TRAINING_PRESETS`].
pub(super) const TRAINING_PRESET: Kind = Kind::Text(Names::Members {
    noun: "training preset",
    list: || TRAINING_PRESETS.iter().map(|preset| preset.name.into()).collect(),
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
    /// Of those that are listed.
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
