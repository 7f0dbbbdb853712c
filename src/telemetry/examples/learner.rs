//! An update of a policy.

use std::collections::BTreeMap;

use super::env::by_head;
use crate::telemetry::*;

pub fn rollback_charges() -> RollbackCharges {
    RollbackCharges {
        rollback_attempts: 2,
        rollback_attributed: 1,
        rollback_unattributed: 1,
        rollback_steps_forfeited: 4,
        rollback_steps_invalidated: 0,
    }
}

/// A performed update of a policy with a hidden state and a cell; what is undefined in it is `adv_kurtosis`.
pub fn learner_update() -> LearnerUpdate {
    let some = |value| Some(Num(value));
    LearnerUpdate {
        update_performed: true,
        skip_reason: UpdateSkip::None,
        updates: 3,
        policy_version: 3,
        steps_taken: 16,
        early_stop_epoch: Some(3),
        nonfinite_skips: 1,
        nonfinite_sources: vec![NonfiniteSource {
            epoch: Some(0),
            minibatch: Some(2),
            gate: "G3".into(),
            sources: vec!["grad:op".into()],
        }],
        consecutive_failures: 0,
        actor_skipped: false,
        losses: UpdateLosses {
            loss_total: some(0.5),
            loss_policy: some(-0.01),
            loss_value: some(1.0),
            loss_entropy: some(-2.0),
            entropy_floor_penalty: some(0.0),
            loss_contribution: some(0.25),
        },
        trust: TrustRegion {
            approx_kl: some(0.008),
            approx_kl_last: some(0.01),
            clip_fraction: some(0.125),
            clip_fraction_pos: some(0.0625),
            clip_fraction_neg: some(0.0625),
            ratio_mean: some(1.0),
            ratio_std: some(0.125),
            ratio_max: some(1.5),
            ratio_min: some(0.75),
            logp_drift_mean: some(0.0),
            logp_drift_max: some(1e-6),
            logp_min: some(-4.5),
            logp_max: some(-0.5),
            head_kl: by_head(&[("op", 0.004)]),
            head_clip_fraction: by_head(&[("op", 0.0625)]),
            head_ratio_max: by_head(&[("op", 1.25)]),
        },
        entropy: PolicyEntropy {
            entropy: some(2.0),
            entropy_mean: some(0.71),
            head_entropy: by_head(&[("op", 0.7)]),
            head_entropy_avail: by_head(&[("op", 0.7), ("slot", 0.72)]),
            head_learnable_fraction: by_head(&[("op", 0.9), ("slot", 0.5)]),
        },
        gradients: PolicyGradients {
            grad_norm: some(2.5),
            grad_norm_aux: some(0.5),
            grad_clip_ratio: some(0.5),
            grad_clip_fraction: some(0.0),
            value_grad_norm: some(1.5),
            grad_cv: some(0.25),
            param_update_ratio: some(0.001),
            head_grad_norm: by_head(&[("op", 0.75)]),
        },
        head_grad_state: BTreeMap::from([
            ("op".into(), HeadGradient::Finite),
            ("tempo".into(), HeadGradient::NotLearnable),
        ]),
        critic: CriticQuality {
            explained_variance: some(0.45),
            value_nrmse: some(0.5),
            v_return_correlation: some(0.75),
            value_mean: some(0.1),
            value_std: some(0.9),
            value_min: some(-1.5),
            value_max: some(2.0),
            td_mean: some(0.05),
            td_std: some(0.5),
            bellman_error: some(0.4),
            value_target_mean: some(3.0),
            value_target_scale: some(2.0),
        },
        returns: ReturnStatistics {
            return_mean: some(3.0),
            return_std: some(2.0),
            return_p10: some(0.5),
            return_p50: some(3.0),
            return_p90: some(5.5),
            return_variance: some(4.0),
            return_skewness: some(0.0),
            reward_mean: some(0.2),
            reward_std: some(1.0),
            reward_scale: some(1.5),
            reward_clip_fraction: some(0.0),
        },
        advantages: AdvantageStatistics {
            adv_pre_mean: some(0.0),
            adv_pre_std: some(0.04),
            adv_skewness: None,
            adv_kurtosis: None,
            adv_positive_ratio: some(0.5),
        },
        data: Some(RolloutData {
            steps_valid: 76,
            steps_actor: 70,
            forced_ratio: Num(0.125),
            scripted_ratio: Num(0.0),
            decision_density: Num(0.875),
            segments: 5,
            segments_invalid: 0,
            op_counts: OpCounts {
                wait: 60,
                germinate: 8,
                advance: 8,
                ..OpCounts::default()
            },
            ev_low_return_variance: false,
            adv_std_floored: true,
            charges: rollback_charges(),
        }),
        recurrent: RecurrentHealth {
            update_h_rms: some(0.25),
            update_c_rms: some(0.5),
            update_h_env_rms_mean: some(0.25),
            update_h_env_rms_max: some(0.375),
            update_c_env_rms_mean: some(0.5),
            update_c_env_rms_max: some(0.625),
            update_h_max: some(0.9),
            update_c_max: some(1.75),
        },
        update_has_nan: Some(false),
        update_has_inf: Some(false),
        contribution: ContributionHead {
            aux_pred_variance: some(0.5),
            aux_explained_variance: some(0.25),
            aux_correlation: some(0.5),
        },
        aux_samples: 24,
        observation: ObservationHealth {
            obs_outlier_pct: some(0.5),
            obs_near_clip_pct: some(0.0),
            obs_clip_pct: some(0.0),
        },
        schedules: LearnerSchedules {
            lr: Num(3e-4),
            entropy_coef: Num(0.05),
            value_coef: Num(0.5),
            aux_coef: Num(0.05),
            clip_ratio: Num(0.2),
            entropy_floor: Num(1.0),
            floor_schedule: Num(1.0),
        },
        finalize_ms: Num(1.5),
        update_ms: Num(120.5),
        learner_step_ms: some(7.5),
        amp_dtype: "f32".into(),
    }
}
