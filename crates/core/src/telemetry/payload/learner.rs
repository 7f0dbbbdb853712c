//! What one policy update did and what the rollout behind it was like.
//!
//! A quantity that is undefined is left out; one that was computed and is no number is written as `"nan"`. Rewards,
//! returns and values are in units of scaled reward, shares lie in 0..1. Maps are keyed by head.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

mod measured;

pub use measured::{ByHead, UpdateMeasures};

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
    /// Steps that lost their own rewards.
    pub rollback_steps_forfeited: u64,
}

/// What the update learnt from, and how well the critic knew it before; absent if the rollout could not be used at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolloutData {
    /// Steps that count.
    pub steps_valid: u64,
    /// Steps that the actor learns from.
    pub steps_actor: u64,
    /// Share of the returns' variance that values explain.
    pub explained_variance: Num,
    /// The same of the steps with a choice; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_variance_free: Option<Num>,
    /// The returns vary too little for `explained_variance` to mean much.
    pub ev_low_return_variance: bool,
    /// Root mean square error of values over the deviation of the returns.
    pub value_nrmse: Num,
    /// Of values and returns.
    pub v_return_correlation: Num,
    /// Mean absolute one-step error.
    pub bellman_error: Num,
    /// Mean.
    pub return_mean: Num,
    /// Deviation.
    pub return_std: Num,
    /// What raw rewards were divided by.
    pub reward_scale: Num,
    /// Share of rewards beyond the clip.
    pub reward_clip_fraction: Num,
    /// Mean of the advantages before they are normalised; absent if the actor learns from no step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adv_pre_mean: Option<Num>,
    /// Their deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adv_pre_std: Option<Num>,
    /// The deviation of the advantages was too small to divide by.
    pub adv_std_floored: bool,
    /// Rollbacks.
    #[serde(flatten)]
    pub charges: RollbackCharges,
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
    /// Failed updates in a row.
    pub consecutive_failures: u32,
    /// Optimizer steps.
    pub steps_taken: u32,
    /// Epoch in which the divergence stopped the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_stop_epoch: Option<u32>,
    /// What was not finite in minibatches that were left out, or in the whole update.
    pub nonfinite_sources: Vec<NonfiniteSource>,
    /// By what the loss of the last minibatch was scaled; only in float16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<Num>,
    /// Learning rate.
    pub lr: f64,
    /// Weight of the entropy bonus.
    pub entropy_coef: f64,
    /// Weight of the value loss.
    pub value_coef: f64,
    /// What its minibatches measured.
    #[serde(flatten)]
    pub measured: UpdateMeasures,
    /// State of each head's gradient.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub head_grad_state: BTreeMap<String, HeadGradient>,
    /// Some recurrent state was NaN or infinite; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_nonfinite: Option<bool>,
    /// What there was to learn from.
    #[serde(flatten)]
    pub data: Option<RolloutData>,
    /// Elements of raw observations that are NaN or infinite.
    pub obs_nonfinite: u64,
    /// How far the statistics that scale observations have moved since they knew nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obs_norm_drift: Option<Num>,
    /// Time from the finished rollout to the last number of the update.
    pub update_ms: Num,
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
