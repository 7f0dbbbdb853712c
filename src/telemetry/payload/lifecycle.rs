//! Events of a seed's life (spec 07 §5.3).

use serde::{Deserialize, Serialize};

use crate::growth::{
    AlphaAlgorithm, AlphaCurve, AlphaSpeed, GateLevel, GateResult, GerminationStyle, Initiator, PruneReason, SeedStage,
    Tempo,
};
use crate::telemetry::encoding::{ActionId, Num, by_name, by_name_if_any};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedGerminated {
    pub blueprint: String,
    pub params: u64,
    pub gate_params: u64,
    #[serde(with = "by_name")]
    pub style: GerminationStyle,
    #[serde(with = "by_name")]
    pub tempo: Tempo,
    pub tempo_epochs: u32,
    pub alpha_target: Num,
    #[serde(with = "by_name")]
    pub alpha_curve: AlphaCurve,
    pub accuracy: Num,
    /// A string, whatever its size.
    pub rng_seed: String,
    pub action_id: ActionId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageCause {
    Policy,
    Gate,
    Auto,
    Governor,
    ScheduledPrune,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedStageChanged {
    #[serde(with = "by_name")]
    pub from: SeedStage,
    #[serde(with = "by_name")]
    pub to: SeedStage,
    pub alpha: Num,
    /// Spent in `from`.
    pub epochs_in_stage: u32,
    pub accuracy_delta: Num,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name_if_any")]
    pub curve: Option<AlphaCurve>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_ratio: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanishing: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploding: Option<bool>,
    pub cause: StageCause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
}

/// A ramp of alpha was ordered: by a new target, or by a prune that lets the seed wither first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedAlphaRetargeted {
    pub from: Num,
    pub to: Num,
    /// Ticks of the ramp; 0 for a jump.
    pub steps: u32,
    #[serde(with = "by_name")]
    pub speed: AlphaSpeed,
    #[serde(with = "by_name")]
    pub curve: AlphaCurve,
    /// Of a sigmoid; no other curve has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steepness: Option<Num>,
    #[serde(with = "by_name")]
    pub operator_from: AlphaAlgorithm,
    #[serde(with = "by_name")]
    pub operator_to: AlphaAlgorithm,
    #[serde(with = "by_name")]
    pub initiator: Initiator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateCheckRow {
    pub name: String,
    pub passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Num>,
}

/// A gate with the values and thresholds it compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedGateEvaluated {
    #[serde(with = "by_name")]
    pub gate: GateLevel,
    pub passed: bool,
    /// The stage behind the gate.
    #[serde(with = "by_name")]
    pub target: SeedStage,
    pub checks: Vec<GateCheckRow>,
}

impl SeedGateEvaluated {
    pub fn new(result: &GateResult, target: SeedStage) -> Self {
        Self {
            gate: result.level,
            passed: result.passed,
            target,
            checks: result
                .checks
                .iter()
                .map(|check| GateCheckRow {
                    name: check.id.into(),
                    passed: check.passed,
                    value: check.value.map(Num),
                    threshold: check.threshold.map(Num),
                })
                .collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedFossilized {
    pub blueprint: String,
    pub params_added: u64,
    pub alpha: Num,
    pub age_epochs: u32,
    pub total_improvement: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending_delta: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<Num>,
    pub contributing: bool,
    pub action_id: ActionId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedPruned {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<String>,
    #[serde(with = "by_name")]
    pub reason: PruneReason,
    #[serde(with = "by_name")]
    pub initiator: Initiator,
    /// Where it was when it was pruned.
    #[serde(with = "by_name")]
    pub stage: SeedStage,
    pub age_epochs: u32,
    pub total_improvement: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending_delta: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
}

/// The cool-down is over; the slot is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRecycled {
    pub idle_steps: u32,
}
