//! Sections `policy.heuristic`, `random`, `schedule` and `replay`: controllers to compare with (spec 03 §9-10).

use serde::{Deserialize, Serialize};

/// Constants of the rule-based controller (spec 03 §9.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeuristicConfig {
    pub plateau_epochs_to_germinate: u32,
    pub min_epochs_before_germinate: u32,
    pub embargo_epochs_after_prune: u32,
    pub prune_after_epochs_without_improvement: u32,
    pub prune_if_accuracy_drops_by: f64,
    pub min_improvement_to_fossilize: f64,
    /// Steps that a seed trains before it is moved on; `None`: the gate's minimum.
    pub min_training_epochs: Option<u32>,
    pub dependency_contribution_threshold: f64,
    pub dependency_improvement_threshold: f64,
    pub blueprint_penalty_on_prune: f64,
    pub blueprint_penalty_decay: f64,
    pub blueprint_penalty_threshold: f64,
    pub rotation: Vec<String>,
}

impl Default for HeuristicConfig {
    fn default() -> Self {
        Self {
            plateau_epochs_to_germinate: 3,
            min_epochs_before_germinate: 5,
            embargo_epochs_after_prune: 5,
            prune_after_epochs_without_improvement: 5,
            prune_if_accuracy_drops_by: 2.0,
            min_improvement_to_fossilize: 0.5,
            min_training_epochs: None,
            dependency_contribution_threshold: 0.1,
            dependency_improvement_threshold: 0.0,
            blueprint_penalty_on_prune: 2.0,
            blueprint_penalty_decay: 0.93,
            blueprint_penalty_threshold: 1.0,
            rotation: ["conv_light", "conv_heavy", "attention", "norm", "depthwise"]
                .map(String::from)
                .to_vec(),
        }
    }
}

/// A fixed list of commands, or the name of a built-in one (spec 03 §10).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// `germinate_first_slot` or `grow_one_seed`.
    pub builtin: Option<String>,
    pub entries: Vec<ScheduleEntry>,
    /// Wait instead of failing when an entry is illegal at its step.
    pub wait_on_illegal: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleEntry {
    pub step: u32,
    pub command: ScheduledCommand,
}

/// A command as written in a scenario: slots and blueprints by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScheduledCommand {
    Germinate {
        slot: String,
        blueprint: String,
        style: String,
        tempo: String,
        target: String,
    },
    SetAlphaTarget {
        slot: String,
        style: String,
        target: String,
        speed: String,
        curve: String,
    },
    Prune {
        slot: String,
        speed: String,
        curve: String,
    },
    Fossilize {
        slot: String,
    },
    Advance {
        slot: String,
    },
}

impl ScheduledCommand {
    pub fn slot(&self) -> &str {
        match self {
            Self::Germinate { slot, .. }
            | Self::SetAlphaTarget { slot, .. }
            | Self::Prune { slot, .. }
            | Self::Fossilize { slot }
            | Self::Advance { slot } => slot,
        }
    }
}

/// How the `random` controller draws (spec 03 §10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomConfig {
    pub op_weights: OpWeights,
}

/// How often each op is drawn, relative to the others that are legal; a wait always is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpWeights {
    /// More than 0.
    pub wait: f64,
    pub germinate: f64,
    pub set_alpha_target: f64,
    pub prune: f64,
    pub fossilize: f64,
    pub advance: f64,
}

impl Default for OpWeights {
    fn default() -> Self {
        Self {
            wait: 1.0,
            germinate: 1.0,
            set_alpha_target: 1.0,
            prune: 1.0,
            fossilize: 1.0,
            advance: 1.0,
        }
    }
}

/// The recorded run whose decisions the `replay` controller repeats (spec 03 §10).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayConfig {
    /// Its folder, relative to the scenario.
    pub run: Option<String>,
    /// Wait instead of failing when a recorded command is illegal now.
    pub wait_on_illegal: bool,
}
