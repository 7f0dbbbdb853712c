//! Events of a seed's life.

use serde::{Deserialize, Serialize};

use crate::growth::{GateLevel, GateResult, GerminationStyle, Initiator, PruneReason, SeedStage};
use crate::telemetry::encoding::{Num, by_name};

/// A seed was planted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedGerminated {
    /// Id of the blueprint.
    pub blueprint: String,
    /// Trainable parameters of the module.
    pub params: u64,
    /// Curve and operator of a blend.
    #[serde(with = "by_name")]
    pub style: GerminationStyle,
    /// Length of the first blend, in steps.
    pub tempo_steps: u32,
    /// Amplitude to blend to, 0..1.
    pub alpha_target: Num,
    /// Validation accuracy when it was planted, percent.
    pub accuracy: Num,
    /// A string, as JSON readers may round large integers.
    pub rng_seed: String,
}

/// A seed moved to another stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedStageChanged {
    /// The stage before.
    #[serde(with = "by_name")]
    pub from: SeedStage,
    /// The stage after.
    #[serde(with = "by_name")]
    pub to: SeedStage,
    /// Amplitude before the change.
    pub alpha: Num,
}

/// A ramp of alpha was ordered: by a new target, or by a prune that lets the seed wither first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlphaRampStarted {
    /// Amplitude before the ramp.
    pub from: Num,
    /// Amplitude after the ramp.
    pub to: Num,
    /// Ticks of the ramp; 0 for a jump.
    pub steps: u32,
}

/// One check of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateCheckRow {
    /// Name of the check.
    pub name: String,
    /// It passed.
    #[serde(default = "passes", skip_serializing_if = "Clone::clone")]
    pub passed: bool,
    /// The measured value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Num>,
    /// The threshold that it was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Num>,
}

const fn passes() -> bool {
    true
}

/// A gate with the values and thresholds it compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedGateEvaluated {
    /// The gate.
    #[serde(with = "by_name")]
    pub gate: GateLevel,
    /// All checks passed.
    pub passed: bool,
    /// The checks in the order in which they are made.
    pub checks: Vec<GateCheckRow>,
}

impl From<&GateResult> for SeedGateEvaluated {
    fn from(result: &GateResult) -> Self {
        Self {
            gate: result.level,
            passed: result.passed,
            checks: result
                .checks
                .iter()
                .map(|check| GateCheckRow {
                    name: check.id.into(),
                    passed: check.passed,
                    value: check.value.map(Num::short),
                    threshold: check.threshold.map(Num::short),
                })
                .collect(),
        }
    }
}

/// A seed was committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedCommitted {
    /// Id of the blueprint.
    pub blueprint: String,
    /// Parameters that the host has gained for good.
    pub params_added: u64,
    /// Accuracy gained since germination, points.
    pub total_improvement: Num,
    /// Accuracy gained since blending began, points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending_delta: Option<Num>,
    /// Contribution as last measured, points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<Num>,
}

/// A seed was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedPruned {
    /// The reason.
    #[serde(with = "by_name")]
    pub reason: PruneReason,
    /// The side that ordered it.
    #[serde(with = "by_name")]
    pub initiator: Initiator,
    /// The stage in which it was pruned.
    #[serde(with = "by_name")]
    pub stage: SeedStage,
    /// Steps since germination.
    pub age_steps: u32,
    /// Accuracy gained since germination, points.
    pub total_improvement: Num,
    /// Accuracy gained since blending began, points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending_delta: Option<Num>,
}
