//! What a controller ordered and what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DecisionReward;
use crate::growth::{
    AlphaCurveAction, AlphaSpeed, FailureReason, GerminationStyle, LifecycleCommand, LifecycleOp, SlotId, Tempo,
};
use crate::telemetry::encoding::{ActionId, Num, by_name, by_name_if_any};

/// The heads that matter to an operation; the others are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Of a germination.
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

impl Choice {
    /// What `command` chose; `blueprint_name` turns its blueprint index into an id.
    pub fn of(command: &LifecycleCommand, blueprint_name: impl Fn(usize) -> String) -> Self {
        match *command {
            LifecycleCommand::Germinate {
                blueprint,
                style,
                tempo,
                target,
                ..
            } => Self {
                blueprint: Some(blueprint_name(blueprint)),
                style: Some(style),
                tempo: Some(tempo),
                alpha_target: Some(Num(target.value())),
                ..Self::default()
            },
            LifecycleCommand::SetAlphaTarget {
                style,
                target,
                speed,
                curve,
                ..
            } => Self {
                style: Some(style),
                alpha_target: Some(Num(target.value())),
                alpha_speed: Some(speed),
                alpha_curve: Some(curve),
                ..Self::default()
            },
            LifecycleCommand::Prune { speed, curve, .. } => Self {
                alpha_speed: Some(speed),
                alpha_curve: Some(curve),
                ..Self::default()
            },
            LifecycleCommand::Wait | LifecycleCommand::Fossilize { .. } | LifecycleCommand::Advance { .. } => {
                Self::default()
            }
        }
    }
}

/// An operation that a policy could have chosen instead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// The operation.
    #[serde(with = "by_name")]
    pub op: LifecycleOp,
    /// Its probability.
    pub p: Num,
}

/// What a learned policy computed when it decided. Maps are keyed by head and hold those that mattered to the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyReadout {
    /// Probability of the chosen option, under mask and floor.
    pub p: BTreeMap<String, Num>,
    /// Normalised entropy, 0..1; absent where there was nothing to choose.
    pub h: BTreeMap<String, Num>,
    /// In operation code order.
    pub op_probs: Vec<Num>,
    /// The likeliest two other operations that were allowed.
    pub alternatives: Vec<Alternative>,
    /// Expected return from here on as the critic has it, in units of reward.
    pub value: Num,
}

/// What the controller of one env ordered in one step and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What was ordered.
    #[serde(with = "by_name")]
    pub op: LifecycleOp,
    /// Absent for a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotId>,
    /// It was executed.
    pub success: bool,
    /// [`refusal_code`] of the reason why it did not execute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// `op` if it was executed, else `WAIT`.
    #[serde(with = "by_name")]
    pub effective_op: LifecycleOp,
    /// Heads with at most one valid option.
    pub forced: BTreeMap<String, bool>,
    /// It was not the controller's own choice.
    pub scripted: bool,
    /// The other heads.
    pub choice: Choice,
    /// Absent where nothing learned decides.
    #[serde(flatten)]
    pub policy: Option<PolicyReadout>,
    /// In operation code order.
    pub op_mask: Vec<bool>,
    /// The controller's, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Steps since the counterfactual in use was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution_age: Option<u32>,
    /// Absent where nothing pays.
    #[serde(flatten)]
    pub paid: Option<DecisionReward>,
    /// The action behind it.
    pub action_id: ActionId,
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
        FailureReason::InvalidTarget => "invalid_target",
        FailureReason::BlueprintUnavailable => "blueprint_unavailable",
        FailureReason::NoTrainableParams => "no_trainable_params",
        FailureReason::OutOfMemory => "out_of_memory",
        FailureReason::GovernorVeto { .. } => "governor_veto",
    }
}
