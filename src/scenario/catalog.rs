//! The names that a scenario may use beyond the schema's own: tasks, hosts, blueprints, controllers.
//!
//! Built-in names are here from the start; plugins add theirs before a scenario is read.

use super::presets::{self, TaskPreset};

/// A name and one line about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub summary: String,
}

/// A recipe of seeds; `index` is its fixed action index (spec 01 §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlueprintEntry {
    pub index: usize,
    pub name: String,
    pub summary: String,
    /// Whether scenarios and controllers may choose it.
    pub selectable: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    pub tasks: Vec<TaskPreset>,
    pub hosts: Vec<Entry>,
    pub blueprints: Vec<BlueprintEntry>,
    pub controllers: Vec<Entry>,
    /// Networks of the learned controller.
    pub nets: Vec<Entry>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self {
            tasks: presets::task_presets(),
            hosts: entries(&[(
                "cnn",
                "blocks of convolution, batch norm and ReLU, max pools, linear head",
            )]),
            blueprints: CNN_BLUEPRINTS
                .iter()
                .enumerate()
                .map(|(index, (name, summary))| BlueprintEntry {
                    index,
                    name: (*name).into(),
                    summary: (*summary).into(),
                    selectable: index != 0,
                })
                .collect(),
            controllers: entries(&[
                ("actor_critic", "a recurrent network, trained while the run goes on"),
                (
                    "heuristic",
                    "rules: germinate on a plateau, commit what contributes, prune what fails",
                ),
                ("wait", "never does anything: the host alone, or a fixed topology"),
                ("random", "a uniformly random legal command per step"),
                ("schedule", "the commands listed in policy.schedule"),
            ]),
            nets: entries(&[
                ("lstm", "residual LSTM layers"),
                ("gru", "residual GRU layers"),
                (
                    "mlp",
                    "two residual blocks, no memory beyond policy.net_cfg.frame_stack",
                ),
            ]),
        }
    }
}

fn entries(list: &[(&str, &str)]) -> Vec<Entry> {
    list.iter()
        .map(|(name, summary)| Entry {
            name: (*name).into(),
            summary: (*summary).into(),
        })
        .collect()
}

/// In action-index order.
const CNN_BLUEPRINTS: [(&str, &str); 8] = [
    ("noop", "no change, no parameters; a placebo for experiments"),
    ("conv_light", "one 3x3 convolution, group norm, SiLU"),
    ("attention", "squeeze-and-excite channel gates"),
    ("norm", "group norm, blended in by one learned scale"),
    ("depthwise", "depthwise 3x3, then pointwise convolution"),
    ("bottleneck", "1x1, 3x3, 1x1 convolutions through fewer channels"),
    ("conv_small", "one 1x1 convolution, group norm, SiLU"),
    ("conv_heavy", "two 3x3 convolutions, group norm, SiLU"),
];
