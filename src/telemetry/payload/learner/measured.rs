//! What an update measures: groups of numbers, each of which may be undefined.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
        /// `explained_variance` of the steps with a choice.
        explained_variance_free,
        /// `explained_variance` of the steps without one.
        explained_variance_forced,
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
        /// Deviation of what was subtracted as the other envs' mean; absent without that baseline.
        adv_baseline_std,
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
