//! What the minibatches of an update measure: numbers that may be undefined.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

/// A number per head of the policy; heads without one are left out.
pub type ByHead = BTreeMap<String, Num>;

/// Declares measured numbers, each of which may be undefined, and numbers per head.
macro_rules! measured {
    (
        $(#[$about:meta])*
        $group:ident {
            $($(#[$what:meta])* $number:ident,)*
            ; $($(#[$what_by_head:meta])* $by_head:ident,)*
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
    /// Means over the optimizer steps taken, unless said otherwise.
    UpdateMeasures {
        /// Everything that is minimised.
        loss_total,
        /// Clipped surrogate objective.
        loss_policy,
        /// Value loss.
        loss_value,
        /// Weighted entropy bonus; negative where there is entropy.
        loss_entropy,
        /// Of heads below their floor.
        entropy_floor_penalty,
        /// Joint divergence from the policy that acted, in nats.
        approx_kl,
        /// Share of joint probability ratios beyond the clip.
        clip_fraction,
        /// Largest joint probability ratio of all steps.
        ratio_max,
        /// Least joint probability ratio of all steps.
        ratio_min,
        /// Difference of stored and recomputed log-probabilities before the first step.
        logp_drift_mean,
        /// Mean of `head_entropy_avail` over the heads that can learn.
        entropy_mean,
        /// Norm of the gradient before clipping, the largest of all steps.
        grad_norm,
        /// `grad_norm` over the limit; absent without a limit.
        grad_clip_ratio,
        /// Of the critic's outputs, in its own normalised units.
        value_mean,
        /// Their deviation.
        value_std,
        /// Root mean square of hidden states after the last minibatch's sequences.
        h_rms,
        /// Root mean square of cells there.
        c_rms,
        /// The largest root mean square of the cells after one sequence.
        c_env_rms_max,
        /// Normalised observations beyond three deviations, percent of all elements.
        obs_outlier_pct,
        /// Those at the clip.
        obs_clip_pct,
        ;
        /// Share of the head's probability ratios beyond the clip.
        head_clip_fraction,
        /// Largest probability ratio of the head.
        head_ratio_max,
        /// Normalised entropy, 0..1, where an allowed op uses the head.
        head_entropy_avail,
        /// Share of valid steps in which the head mattered and had a choice.
        head_learnable_fraction,
        /// Norm of the head's own gradient before clipping.
        head_grad_norm,
    }
}
