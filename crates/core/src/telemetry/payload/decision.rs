//! A controller's order and its result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DecisionReward;
use crate::growth::{AlphaCurveAction, AlphaSpeed, FailureReason, GerminationStyle, LifecycleOp, SlotId, Tempo};
use crate::telemetry::encoding::{Num, by_name, by_name_if_any, by_names, is_default};

/// The heads that matter to an operation; the others are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Blueprint of a germination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<String>,
    /// Curve and operator of a blend.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name_if_any")]
    pub style: Option<GerminationStyle>,
    /// Length of the first blend.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name_if_any")]
    pub tempo: Option<Tempo>,
    /// Amplitude to blend to, 0..1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha_target: Option<Num>,
    /// Length of a ramp.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name_if_any")]
    pub alpha_speed: Option<AlphaSpeed>,
    /// Curve of a ramp.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name_if_any")]
    pub alpha_curve: Option<AlphaCurveAction>,
}

/// Outputs of a learned policy at a decision. Maps are keyed by head, for the heads that mattered to it and had a choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyReadout {
    /// Probability of the chosen option, under mask and floor.
    #[serde(default, skip_serializing_if = "is_default")]
    pub p: BTreeMap<String, Num>,
    /// Probabilities of the operations in [`Decision::allowed`]; left out where there is one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub op_probs: Vec<Num>,
    /// The critic's estimate of the return from here on, in units of reward.
    pub value: Num,
}

/// The controller's order for one env in one step and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The ordered operation.
    #[serde(with = "by_name")]
    pub op: LifecycleOp,
    /// Absent for a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotId>,
    /// [`refusal_code`] of the reason why it did not execute; absent if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// The other heads.
    #[serde(default, skip_serializing_if = "is_default")]
    pub choice: Choice,
    /// Absent where nothing learned decides.
    #[serde(flatten)]
    pub policy: Option<PolicyReadout>,
    /// Operations that were legal, in the order of their codes; left out where waiting was the only one.
    #[serde(
        default = "wait_alone",
        skip_serializing_if = "is_wait_alone",
        serialize_with = "by_names"
    )]
    pub allowed: Vec<LifecycleOp>,
    /// The controller's reason, in a few words; a learned policy has none but its readout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Absent where nothing pays.
    #[serde(flatten)]
    pub paid: Option<DecisionReward>,
}

fn wait_alone() -> Vec<LifecycleOp> {
    vec![LifecycleOp::Wait]
}

fn is_wait_alone(allowed: &[LifecycleOp]) -> bool {
    allowed == [LifecycleOp::Wait]
}

/// The fixed code of a refusal, without its numbers; its `Display` text belongs into [`Event::message`](crate::telemetry::Event::message).
pub const fn refusal_code(reason: &FailureReason) -> &'static str {
    match reason {
        FailureReason::SlotDisabled => "slot_disabled",
        FailureReason::SlotOccupied => "slot_occupied",
        FailureReason::SlotEmpty => "slot_empty",
        FailureReason::Cooldown { .. } => "cooldown",
        FailureReason::SeedLimit => "seed_limit",
        FailureReason::DevelopingSeed => "developing_seed",
        FailureReason::WrongStage { .. } => "wrong_stage",
        FailureReason::TooYoung { .. } => "too_young",
        FailureReason::AlphaBusy { .. } => "alpha_busy",
        FailureReason::AdvanceDisabled => "advance_disabled",
        FailureReason::GateFailed { .. } => "gate_failed",
        FailureReason::BlueprintUnavailable => "blueprint_unavailable",
        FailureReason::NoTrainableParams => "no_trainable_params",
        FailureReason::OutOfMemory => "out_of_memory",
        FailureReason::GovernorVeto { .. } => "governor_veto",
    }
}
