//! Measures of one policy update and of its rollout.
//!
//! A quantity that is undefined is left out; one that was computed and isn't a number is written as `"nan"`. Rewards,
//! returns and values are in units of scaled reward, shares lie in 0..1. Maps are keyed by head.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

/// The reason why an update was not performed.
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

/// Checks for numbers that are not finite, in the order in which an update makes them.
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
    /// Absent if the whole update is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// Absent if the whole update is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minibatch: Option<u32>,
    /// The check that found it.
    pub gate: FinitenessGate,
    /// Names of the quantities that were not finite there.
    pub sources: Vec<String>,
}

/// The data of the update, and how well the critic predicted it before; absent if the rollout was unusable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolloutData {
    /// Steps that count.
    pub steps_valid: u64,
    /// Steps that the actor learns from.
    pub steps_actor: u64,
    /// Share of the returns' variance that values explain.
    pub explained_variance: Num,
    /// Explained variance of the steps with a choice; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_variance_free: Option<Num>,
    /// The returns vary too little for `explained_variance` to mean much.
    pub ev_low_return_variance: bool,
    /// Mean.
    pub return_mean: Num,
    /// Deviation.
    pub return_std: Num,
    /// Corrections by ratios, where the update learns from steps of other policies.
    #[serde(flatten)]
    pub off_policy: Option<OffPolicy>,
}

/// The distance between the data of an update and the policy before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OffPolicy {
    /// Mean joint ratio of that policy to the one that acted; 1 where both are the same.
    pub behaviour_ratio_mean: Num,
    /// Effective number of steps, as a share: (Σ ratio)² / (N · Σ ratio²).
    pub effective_share: Num,
    /// Segments that were too far from it, and left out.
    pub stale_segments: u64,
}

/// Means over the optimizer steps taken, unless the field says otherwise. Values that are not finite are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateMeasures {
    /// Everything that is minimised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_total: Option<Num>,
    /// Clipped surrogate objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_policy: Option<Num>,
    /// Value loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_value: Option<Num>,
    /// Weighted entropy bonus; negative where there is entropy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_entropy: Option<Num>,
    /// Joint divergence from the teacher, in nats; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher_kl: Option<Num>,
    /// Joint divergence from the policy that acted, in nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approx_kl: Option<Num>,
    /// Share of joint probability ratios beyond the clip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_fraction: Option<Num>,
    /// Largest joint probability ratio of all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_max: Option<Num>,
    /// Smallest joint probability ratio of all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_min: Option<Num>,
    /// Difference of stored and recomputed log-probabilities before the first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logp_drift_mean: Option<Num>,
    /// Mean of `head_entropy_avail` over the heads that can learn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy_mean: Option<Num>,
    /// Norm of the gradient before clipping, the largest of all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<Num>,
    /// Normalised entropy by head, 0..1, where an allowed op uses the head.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub head_entropy_avail: BTreeMap<String, Num>,
}

/// One update of a policy, performed or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnerUpdate {
    /// Steps were taken and kept.
    pub update_performed: bool,
    /// The reason why it wasn't performed.
    pub skip_reason: UpdateSkip,
    /// Updates performed so far, including this one.
    pub updates: u64,
    /// Failed updates in a row.
    pub consecutive_failures: u32,
    /// Optimizer steps.
    pub steps_taken: u32,
    /// Epoch in which the divergence stopped the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_stop_epoch: Option<u32>,
    /// Quantities that were not finite in minibatches that were left out, or in the whole update.
    pub nonfinite_sources: Vec<NonfiniteSource>,
    /// Scale of the last minibatch's loss; only in float16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<Num>,
    /// Learning rate.
    pub lr: f64,
    /// Weight of the entropy bonus.
    pub entropy_coef: f64,
    /// Negative log-likelihood of a step's choices in held-out recordings under the policy before the update, nats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out_nll: Option<Num>,
    /// Measurements of its minibatches.
    #[serde(flatten)]
    pub measured: UpdateMeasures,
    /// The data of the update.
    #[serde(flatten)]
    pub data: Option<RolloutData>,
    /// Time from the finished rollout to the last number of the update.
    pub update_ms: Num,
    /// Precision in which the policy is evaluated: `f32`, `bf16` or `fp16`.
    pub amp_dtype: String,
    /// Minibatches that libtorch computed as the engine's own kernels failed: recorded by the round, with the batches of its envs.
    #[serde(skip)]
    pub kernel_fallbacks: u32,
}

#[cfg(test)]
mod tests;
