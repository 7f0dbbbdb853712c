//! What one policy update did and what the rollout behind it was like.
//!
//! A quantity that is undefined is left out; one that was computed and is no number is written as `"nan"`. Rewards,
//! returns and values are in units of scaled reward, shares lie in 0..1. Maps are keyed by head.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::env::OpCounts;
use crate::telemetry::encoding::Num;

mod measured;

pub use measured::*;

/// Why an update was not performed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateSkip {
    /// It was performed.
    #[default]
    None,
    /// The policy had left the one that acted before the first step; not a failure.
    Kl,
    /// Something was not finite.
    Nonfinite,
    /// Rollout and update disagree about the same policy.
    Mismatch,
    /// The rollout had no valid step; not a failure.
    Empty,
    /// The loss was scaled too far for float16 in every step; the scale has fallen. Not a failure.
    Overflow,
}

impl UpdateSkip {
    /// A few words for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::None => "performed",
            Self::Kl => "the policy had moved too far",
            Self::Nonfinite => "something was not finite",
            Self::Mismatch => "rollout and update disagree",
            Self::Empty => "no valid step",
            Self::Overflow => "the scaled loss overflowed",
        }
    }
}

/// What was found not to be finite, in the order in which an update looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FinitenessGate {
    /// Returns, advantages or statistics of the rollout.
    G0,
    /// Outputs of the policy.
    G1,
    /// The loss.
    G2,
    /// Gradients.
    G3,
    /// Parameters after the update.
    G4,
}

/// A gate that stopped a minibatch or a whole update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonfiniteSource {
    /// Absent: it was about the whole update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// Absent: it was about the whole update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minibatch: Option<u32>,
    /// Which check found it.
    pub gate: FinitenessGate,
    /// What was not finite there.
    pub sources: Vec<String>,
}

/// State of a head's gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadGradient {
    /// There is one, and it is finite.
    Finite,
    /// The policy has no parameters of that head, or they got no gradient.
    Missing,
    /// Some element is NaN or infinite.
    Nonfinite,
    /// The head mattered in no step that the actor learns from.
    NotLearnable,
}

/// Rollbacks of a rollout as the learner charged them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackCharges {
    /// All of them.
    pub rollback_attempts: u64,
    /// Those that were charged to a step.
    pub rollback_attributed: u64,
    /// Those of envs without a finished step since their segment began.
    pub rollback_unattributed: u64,
    /// Steps that lost their own rewards.
    pub rollback_steps_forfeited: u64,
}

/// What the update learnt from; absent if the rollout could not be used at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolloutData {
    /// Steps that count.
    pub steps_valid: u64,
    /// Steps that the actor learns from.
    pub steps_actor: u64,
    /// Share of steps without a choice.
    pub forced_ratio: Num,
    /// Share of steps that something else decided.
    pub scripted_ratio: Num,
    /// `1 − forced_ratio`.
    pub decision_density: Num,
    /// Pieces of episodes.
    pub segments: u64,
    /// Pieces that contribute to nothing.
    pub segments_invalid: u64,
    /// Operations chosen.
    pub op_counts: OpCounts,
    /// The returns vary too little for `explained_variance` to mean much.
    pub ev_low_return_variance: bool,
    /// The deviation of the advantages was too small to divide by.
    pub adv_std_floored: bool,
    /// Rollbacks.
    #[serde(flatten)]
    pub charges: RollbackCharges,
}

/// Values in force during the update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnerSchedules {
    /// Learning rate.
    pub lr: f64,
    /// Weight of the entropy bonus.
    pub entropy_coef: f64,
    /// Weight of the value loss.
    pub value_coef: f64,
    /// Distance from 1 at which probability ratios are clipped.
    pub clip_ratio: f64,
    /// Factor of the entropy floors' penalty.
    pub entropy_floor: f64,
    /// Factor of the probability floors in the rollout that follows.
    #[serde(rename = "floor_schedule")]
    pub probability_floor: f64,
}

/// One update of a policy, performed or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnerUpdate {
    /// Steps were taken and kept.
    pub update_performed: bool,
    /// Why not.
    pub skip_reason: UpdateSkip,
    /// Performed so far, this one included.
    pub updates: u64,
    /// Version of the policy that acts next.
    pub policy_version: u64,
    /// Optimizer steps.
    pub steps_taken: u32,
    /// Epoch in which the divergence stopped the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_stop_epoch: Option<u32>,
    /// Minibatches that were left out.
    pub nonfinite_skips: u32,
    /// What was not finite in them.
    pub nonfinite_sources: Vec<NonfiniteSource>,
    /// Minibatches whose scaled gradients were not finite in float16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow_skips: Option<u32>,
    /// By what the loss of the last minibatch was scaled; only in float16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<Num>,
    /// Failed updates in a row.
    pub consecutive_failures: u32,
    /// Too few free steps: only the critic learnt.
    pub actor_skipped: bool,
    /// What was minimised.
    #[serde(flatten)]
    pub losses: UpdateLosses,
    /// How far the policy moved.
    #[serde(flatten)]
    pub trust: TrustRegion,
    /// How undecided it is.
    #[serde(flatten)]
    pub entropy: PolicyEntropy,
    /// How large gradients were.
    #[serde(flatten)]
    pub gradients: PolicyGradients,
    /// By head.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub head_grad_state: BTreeMap<String, HeadGradient>,
    /// How well returns are known.
    #[serde(flatten)]
    pub critic: CriticQuality,
    /// What the rollout was worth.
    #[serde(flatten)]
    pub returns: ReturnStatistics,
    /// What decisions were worth.
    #[serde(flatten)]
    pub advantages: AdvantageStatistics,
    /// What there was to learn from.
    #[serde(flatten)]
    pub data: Option<RolloutData>,
    /// Of policies with memory.
    #[serde(flatten)]
    pub recurrent: RecurrentHealth,
    /// Of the recurrent states; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_has_nan: Option<bool>,
    /// Some recurrent state was infinite in the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_has_inf: Option<bool>,
    /// Some recurrent state was NaN in the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_has_nan: Option<bool>,
    /// Some recurrent state was infinite in the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_has_inf: Option<bool>,
    /// How well observations are scaled.
    #[serde(flatten)]
    pub observation: ObservationHealth,
    /// Elements of raw observations; absent if no minibatch was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obs_nan_count: Option<u64>,
    /// Infinite elements of raw observations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obs_inf_count: Option<u64>,
    /// What was in force.
    #[serde(flatten)]
    pub schedules: LearnerSchedules,
    /// Time to turn the rollout into targets.
    pub finalize_ms: Num,
    /// Time of the update.
    pub update_ms: Num,
    /// Median of the minibatches' times, evaluation to optimizer step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learner_step_us_p50: Option<Num>,
    /// What the policy is evaluated in: `f32`, `bf16` or `fp16`.
    pub amp_dtype: String,
}

impl LearnerUpdate {
    /// The line about this update in `round_finished`.
    pub fn verdict(&self) -> UpdateVerdict {
        UpdateVerdict {
            performed: self.update_performed,
            skip_reason: self.skip_reason,
        }
    }
}

/// What became of an update in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateVerdict {
    /// Steps were taken and kept.
    pub performed: bool,
    /// Why not.
    pub skip_reason: UpdateSkip,
}

#[cfg(test)]
mod tests;
