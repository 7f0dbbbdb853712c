//! Section `lifecycle`: slots, gates, cool-down, isolation (spec 01 §16.4).

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LifecycleConfig {
    /// Enabled slots, e.g. `["r0c0"]`; `None`: the task's.
    pub slots: Option<Vec<String>>,
    /// Most live and committed seeds at a time; 0 = unlimited; `None`: the task's.
    pub max_seeds: Option<u32>,
    /// Steps a seed must have lived before the controller may prune it.
    pub min_prune_age: u32,
    /// Steps a pruned slot stays embargoed.
    pub embargo_epochs: u32,
    /// Prune a seed that is held longer than this many steps.
    pub max_holding_epochs: Option<u32>,
    pub auto_forward: AutoForward,
    pub on_fossilize: OnFossilize,
    pub gates: GateConfig,
    pub isolation: IsolationConfig,
    /// A gradient norm below this counts as vanishing.
    pub vanishing: f64,
    /// A gradient norm above this factor times the clip norm counts as exploding.
    pub exploding_factor: f64,
    /// Weight of the old value in the gradient ratio's moving average.
    pub ratio_ema: f64,
    /// Upper clamp of the gradient ratio.
    pub ratio_max: f64,
    /// Whether blueprints without parameters may germinate (a placebo control).
    pub allow_parameterless_seeds: bool,
    /// Whether `SetAlphaTarget` may change the blend operator.
    pub allow_operator_switch: bool,
    /// Stage changes that a seed record remembers.
    pub history_len: usize,
}

impl Default for LifecycleConfig {
    fn default() -> Self {
        Self {
            slots: None,
            max_seeds: None,
            min_prune_age: 5,
            embargo_epochs: 5,
            max_holding_epochs: None,
            auto_forward: AutoForward::default(),
            on_fossilize: OnFossilize::ResetMomentum,
            gates: GateConfig::default(),
            isolation: IsolationConfig::default(),
            vanishing: 1e-7,
            exploding_factor: 10.0,
            ratio_ema: 0.9,
            ratio_max: 10.0,
            allow_parameterless_seeds: false,
            allow_operator_switch: true,
            history_len: 100,
        }
    }
}

/// Which gates are tried without the controller asking (spec 01 §7.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoForward {
    pub g1: bool,
    pub g2: bool,
    pub g3: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFossilize {
    ResetMomentum,
    Keep,
    Freeze,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateMode {
    Permissive,
    Strict,
}

/// Thresholds of the quality gates (spec 01 §8).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateConfig {
    pub mode: GateMode,
    pub min_training_epochs: u32,
    pub min_blending_epochs: u32,
    /// Percentage points.
    pub min_training_improvement: f64,
    pub min_gradient_ratio: f64,
    pub min_gradient_health: f64,
    /// Percentage points.
    pub min_contribution: f64,
    /// Steps.
    pub max_contribution_age: u32,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self {
            mode: GateMode::Permissive,
            min_training_epochs: 10,
            min_blending_epochs: 10,
            min_training_improvement: 0.5,
            min_gradient_ratio: 0.10,
            min_gradient_health: 0.7,
            min_contribution: 1.0,
            max_contribution_age: 1,
        }
    }
}

/// Whether a seed's gradient reaches the host (spec 01 §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    Isolated,
    CoAdapt,
}

/// Isolation per stage; a training seed is always isolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageIsolation {
    pub blending: Isolation,
    pub holding: Isolation,
    pub fossilized: Isolation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IsolationConfig {
    pub cnn: StageIsolation,
}

impl Default for IsolationConfig {
    fn default() -> Self {
        Self {
            cnn: StageIsolation {
                blending: Isolation::Isolated,
                holding: Isolation::Isolated,
                fossilized: Isolation::CoAdapt,
            },
        }
    }
}
