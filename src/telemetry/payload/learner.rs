//! What one policy update did and what the rollout behind it was like.
//!
//! A quantity that is undefined is left out; one that was computed and is no number is written as `"nan"`. Rewards,
//! returns and values are in units of scaled reward, shares lie in 0..1. Maps are keyed by head.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::env::OpCounts;
use crate::telemetry::encoding::Num;

/// A number per head of the policy; heads without one are left out.
pub type ByHead = BTreeMap<String, Num>;

/// Declares a group of measured numbers, each of which may be undefined, and numbers per head.
macro_rules! measured {
    (
        $(#[$about:meta])*
        $group:ident {
            $($(#[$what:meta])* $number:ident),* $(,)?
            ; $($(#[$what_by_head:meta])* $by_head:ident),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $group {
            $(
                $(#[$what])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $number: Option<Num>,
            )*
            $(
                $(#[$what_by_head])*
                #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
                pub $by_head: ByHead,
            )*
        }
    };
}

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

measured! {
    /// Means over the optimizer steps taken.
    UpdateLosses {
        /// Everything that is minimised.
        loss_total,
        /// Clipped surrogate objective.
        loss_policy,
        /// Clipped value loss.
        loss_value,
        /// Weighted entropy bonus; negative where there is entropy.
        loss_entropy,
        /// Of heads below their floor.
        entropy_floor_penalty,
        /// Of predicted contributions.
        loss_contribution,
        ;
    }
}

measured! {
    /// How far the policy moved away from the one that acted.
    TrustRegion {
        /// Joint, in nats.
        approx_kl,
        /// In the last minibatch evaluated.
        approx_kl_last,
        /// Share of joint ratios beyond the clip.
        clip_fraction,
        /// Of that, with a positive advantage.
        clip_fraction_pos,
        /// Of that, with a negative advantage.
        clip_fraction_neg,
        /// Of joint probability ratios.
        ratio_mean,
        /// Of joint probability ratios.
        ratio_std,
        /// Of joint probability ratios.
        ratio_max,
        /// Of joint probability ratios.
        ratio_min,
        /// Of stored and recomputed log-probabilities before the first step.
        logp_drift_mean,
        /// The largest of them.
        logp_drift_max,
        /// Least joint log-probability.
        logp_min,
        /// Largest joint log-probability.
        logp_max,
        ;
        /// Approximate divergence, in nats.
        head_kl,
        /// Share of ratios beyond the clip.
        head_clip_fraction,
        /// Largest probability ratio.
        head_ratio_max,
    }
}

measured! {
    /// How undecided the policy is; normalised entropies, 0..1.
    PolicyEntropy {
        /// Σ of the heads' weighted entropies: not normalised.
        entropy,
        /// Mean of `head_entropy_avail` over the heads that can learn.
        entropy_mean,
        ;
        /// Where the head mattered.
        head_entropy,
        /// Where an allowed op uses the head.
        head_entropy_avail,
        /// Share of valid steps in which the head mattered and had a choice.
        head_learnable_fraction,
    }
}

measured! {
    /// Norms of the policy's gradients.
    PolicyGradients {
        /// Largest of all steps, before clipping.
        grad_norm,
        /// Of the prediction of contributions.
        grad_norm_aux,
        /// `grad_norm` over the limit; absent without a limit.
        grad_clip_ratio,
        /// Share of steps whose gradient was clipped.
        grad_clip_fraction,
        /// Of the value head.
        value_grad_norm,
        /// Deviation over mean of the heads' norms.
        grad_cv,
        /// `‖Δp‖ / ‖p‖` of the whole update.
        param_update_ratio,
        ;
        /// Largest of all steps.
        head_grad_norm,
    }
}

measured! {
    /// How well the critic knows what follows; explained variance and errors are those of the policy that acted.
    CriticQuality {
        /// Share of the returns' variance that values explain.
        explained_variance,
        /// Root mean square error over the deviation of the returns.
        value_nrmse,
        /// Of values and returns.
        v_return_correlation,
        /// Of the critic's outputs, in its own normalised units.
        value_mean,
        /// Deviation.
        value_std,
        /// Least.
        value_min,
        /// Largest.
        value_max,
        /// One-step errors.
        td_mean,
        /// Deviation of the one-step errors.
        td_std,
        /// Mean absolute one-step error.
        bellman_error,
        /// The critic's units.
        value_target_mean,
        /// What values are divided by.
        value_target_scale,
        ;
    }
}

measured! {
    /// Returns and rewards of the rollout.
    ReturnStatistics {
        /// Mean.
        return_mean,
        /// Deviation.
        return_std,
        /// Tenth percentile.
        return_p10,
        /// Median.
        return_p50,
        /// Ninetieth percentile.
        return_p90,
        /// Variance.
        return_variance,
        /// Skewness.
        return_skewness,
        /// Of scaled rewards.
        reward_mean,
        /// Of scaled rewards.
        reward_std,
        /// What raw rewards were divided by.
        reward_scale,
        /// Share of rewards beyond the clip.
        reward_clip_fraction,
        ;
    }
}

measured! {
    /// Before they are normalised.
    AdvantageStatistics {
        /// Mean.
        adv_pre_mean,
        /// Deviation.
        adv_pre_std,
        /// Skewness.
        adv_skewness,
        /// Excess.
        adv_kurtosis,
        /// Share of positive ones.
        adv_positive_ratio,
        ;
    }
}

measured! {
    /// Magnitudes of the recurrent states after the update's sequences and at the ends of the rollout's: hidden, and
    /// cell where there is one.
    RecurrentHealth {
        /// Root mean square of hidden states after the update's sequences.
        update_h_rms,
        /// Root mean square of cells after the update's sequences.
        update_c_rms,
        /// Mean over envs of each one's.
        update_h_env_rms_mean,
        /// Largest of an env's.
        update_h_env_rms_max,
        /// Mean over envs of each one's.
        update_c_env_rms_mean,
        /// Largest of an env's.
        update_c_env_rms_max,
        /// Largest magnitude.
        update_h_max,
        /// Largest magnitude.
        update_c_max,
        /// Root mean square of hidden states at the ends of the rollout's sequences.
        rollout_h_rms,
        /// Root mean square of cells at the ends of the rollout's sequences.
        rollout_c_rms,
        /// Mean over envs of each one's.
        rollout_h_env_rms_mean,
        /// Largest of an env's.
        rollout_h_env_rms_max,
        /// Mean over envs of each one's.
        rollout_c_env_rms_mean,
        /// Largest of an env's.
        rollout_c_env_rms_max,
        /// Largest magnitude.
        rollout_h_max,
        /// Largest magnitude.
        rollout_c_max,
        ;
    }
}

measured! {
    /// The head that predicts contributions.
    ContributionHead {
        /// Of the predictions.
        aux_pred_variance,
        /// Of the measured contributions.
        aux_explained_variance,
        /// Of predicted and measured contributions.
        aux_correlation,
        ;
    }
}

measured! {
    /// Normalised inputs, percent of all elements, and what normalises them.
    ObservationHealth {
        /// Beyond three deviations.
        obs_outlier_pct,
        /// Close to the clip.
        obs_near_clip_pct,
        /// At the clip.
        obs_clip_pct,
        /// How far the statistics of the normaliser have moved since it knew nothing.
        obs_norm_drift,
        ;
    }
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
    /// Steps that contribute to nothing.
    pub rollback_steps_invalidated: u64,
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
    /// Weight of the loss of predicted contributions.
    pub aux_coef: f64,
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
    /// How well contributions are predicted.
    #[serde(flatten)]
    pub contribution: ContributionHead,
    /// Steps with a measured contribution.
    pub aux_samples: u64,
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
    /// Precision of the update.
    pub amp_dtype: String,
}

impl LearnerUpdate {
    /// The line about this update in `round_finished`.
    pub fn verdict(&self, group: &str) -> UpdateVerdict {
        UpdateVerdict {
            group: group.into(),
            performed: self.update_performed,
            skip_reason: self.skip_reason,
        }
    }
}

/// What became of one policy group's update in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateVerdict {
    /// Name of the policy group.
    pub group: String,
    /// Steps were taken and kept.
    pub performed: bool,
    /// Why not.
    pub skip_reason: UpdateSkip,
}

#[cfg(test)]
mod tests;
