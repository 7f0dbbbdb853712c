//! Sections `policy.random` and `policy.replay`: controllers to compare with (spec 03 §10).

use serde::{Deserialize, Serialize};

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
