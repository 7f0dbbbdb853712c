//! What is told of learning: updates and the thoughts behind decisions, in the words of telemetry (spec 07 §5.2, §5.6).

use std::collections::BTreeMap;

use crate::controller::{HEADS, Head, MaskSet, OPS, Sample, relevant};
use crate::growth::LifecycleOp;
use crate::learner::{
    Gate, HeadGradState, NonfiniteSkip, OptimizationMetrics, RollbackCounters, RolloutDiagnostics, Schedules,
    SkipReason, StateHealth, UpdateRecord, ValueUnits,
};
use crate::telemetry::{
    AdvantageStatistics, Alternative, ByHead, ContributionHead, CriticQuality, HeadGradient, LearnerSchedules,
    LearnerUpdate, NonfiniteSource, Num, ObservationHealth, OpCounts, PolicyEntropy, PolicyGradients, PolicyThought,
    RecurrentHealth, ReturnStatistics, RollbackCharges, RolloutData, TrustRegion, UpdateLosses, UpdateSkip,
    UpdateVerdict,
};

/// Operations shown beside the chosen one.
const ALTERNATIVES: usize = 2;
/// The one policy group that there is.
const GROUP: &str = "default";

/// One update as telemetry tells it; `max_grad_norm` is the limit that gradients were clipped to.
pub fn learner_update(record: &UpdateRecord, max_grad_norm: Option<f64>) -> LearnerUpdate {
    let measured = &record.optimization;
    let rollout = record.rollout.as_ref();
    let states = &measured.states;
    let rollout_states = &measured.rollout_states;
    LearnerUpdate {
        update_performed: record.update_performed,
        skip_reason: skip_reason(record.skip_reason),
        updates: record.updates,
        policy_version: record.policy_version,
        steps_taken: record.steps_taken,
        early_stop_epoch: record.early_stop_epoch,
        nonfinite_skips: record.nonfinite_skips,
        nonfinite_sources: record.nonfinite_sources.iter().map(nonfinite_source).collect(),
        consecutive_failures: record.consecutive_failures,
        actor_skipped: record.actor_skipped,
        losses: losses(measured),
        trust: trust_region(measured),
        entropy: entropy(measured, rollout),
        gradients: gradients(measured, max_grad_norm),
        head_grad_state: Head::ALL
            .iter()
            .zip(measured.head_grad_state)
            .filter_map(|(head, state)| Some((head.name().into(), head_gradient(state?))))
            .collect(),
        critic: critic(measured, rollout),
        returns: rollout.map(returns).unwrap_or_default(),
        advantages: rollout.map(advantages).unwrap_or_default(),
        data: rollout.map(rollout_data),
        recurrent: recurrent(states, rollout_states),
        update_has_nan: any_state(states, |state| state.has_nan),
        update_has_inf: any_state(states, |state| state.has_inf),
        rollout_has_nan: any_state(rollout_states, |state| state.has_nan),
        rollout_has_inf: any_state(rollout_states, |state| state.has_inf),
        contribution: ContributionHead {
            aux_pred_variance: num(measured.aux_pred_variance),
            aux_explained_variance: num(measured.aux_explained_variance),
            aux_correlation: num(measured.aux_correlation),
        },
        aux_samples: measured.aux_samples,
        observation: ObservationHealth {
            obs_outlier_pct: num(measured.obs_outlier_pct),
            obs_near_clip_pct: num(measured.obs_near_clip_pct),
            obs_clip_pct: num(measured.obs_clip_pct),
            obs_norm_drift: num(record.obs_norm_drift),
        },
        obs_nan_count: measured.obs_nan_count,
        obs_inf_count: measured.obs_inf_count,
        schedules: schedules(&record.schedules),
        finalize_ms: Num(record.finalize_ms),
        update_ms: Num(record.update_ms),
        learner_step_us_p50: num(record.learner_step_us_p50),
        amp_dtype: record.amp_dtype.clone(),
    }
}

/// The line about an update in `round_finished`.
pub fn verdict(record: &UpdateRecord) -> UpdateVerdict {
    UpdateVerdict {
        group: GROUP.into(),
        performed: record.update_performed,
        skip_reason: skip_reason(record.skip_reason),
    }
}

pub fn charges(counters: &RollbackCounters) -> RollbackCharges {
    RollbackCharges {
        rollback_attempts: counters.attempts,
        rollback_attributed: counters.attributed,
        rollback_unattributed: counters.unattributed,
        rollback_steps_forfeited: counters.steps_forfeited,
        rollback_steps_invalidated: counters.steps_invalidated,
    }
}

/// What a learned policy thought when it chose `op` under `masks`; `forced` marks heads without a choice, `units` are
/// those that its value was in.
pub fn thought(
    sample: &Sample,
    op: LifecycleOp,
    masks: &MaskSet,
    forced: [bool; HEADS],
    units: ValueUnits,
) -> PolicyThought {
    let by_head = |value: &dyn Fn(Head) -> Option<f32>| -> BTreeMap<String, Num> {
        let relevant = Head::ALL.into_iter().filter(|&head| relevant(op, head));
        relevant
            .filter_map(|head| Some((head.name().into(), Num::from(value(head)?))))
            .collect()
    };
    let mut others: Vec<LifecycleOp> = LifecycleOp::ALL
        .iter()
        .copied()
        .filter(|&other| other != op && masks.ops().contains(other.code()))
        .collect();
    let probability = |op: LifecycleOp| sample.op_probabilities[op.code()];
    others.sort_by(|&a, &b| probability(b).total_cmp(&probability(a)));
    others.truncate(ALTERNATIVES);
    PolicyThought {
        p: by_head(&|head| Some(sample.log_probs[head as usize].exp())),
        h: by_head(&|head| (!forced[head as usize]).then(|| sample.entropies[head as usize])),
        op_probs: sample.op_probabilities.map(Num::from).into(),
        alternatives: others
            .into_iter()
            .map(|op| Alternative {
                op,
                p: probability(op).into(),
            })
            .collect(),
        value: Num(units.raw(sample.value.into())),
    }
}

fn num(value: Option<f64>) -> Option<Num> {
    value.map(Num)
}

fn by_head(values: &[Option<f64>; HEADS]) -> ByHead {
    let named = Head::ALL.iter().zip(values);
    named
        .filter_map(|(head, value)| Some((head.name().into(), Num((*value)?))))
        .collect()
}

const fn skip_reason(reason: Option<SkipReason>) -> UpdateSkip {
    match reason {
        None => UpdateSkip::None,
        Some(SkipReason::Kl) => UpdateSkip::Kl,
        Some(SkipReason::Nonfinite) => UpdateSkip::Nonfinite,
        Some(SkipReason::Mismatch) => UpdateSkip::Mismatch,
        Some(SkipReason::Empty) => UpdateSkip::Empty,
    }
}

fn nonfinite_source(skip: &NonfiniteSkip) -> NonfiniteSource {
    let gate = match skip.gate {
        Gate::G0 => "G0",
        Gate::G1 => "G1",
        Gate::G2 => "G2",
        Gate::G3 => "G3",
        Gate::G4 => "G4",
    };
    NonfiniteSource {
        epoch: skip.place.map(|(epoch, _)| epoch),
        minibatch: skip.place.map(|(_, minibatch)| minibatch),
        gate: gate.into(),
        sources: skip.sources.clone(),
    }
}

const fn head_gradient(state: HeadGradState) -> HeadGradient {
    match state {
        HeadGradState::Finite => HeadGradient::Finite,
        HeadGradState::Missing => HeadGradient::Missing,
        HeadGradState::Nonfinite => HeadGradient::Nonfinite,
        HeadGradState::NotLearnable => HeadGradient::NotLearnable,
    }
}

fn losses(measured: &OptimizationMetrics) -> UpdateLosses {
    UpdateLosses {
        loss_total: num(measured.loss_total),
        loss_policy: num(measured.loss_policy),
        loss_value: num(measured.loss_value),
        loss_entropy: num(measured.loss_entropy),
        entropy_floor_penalty: num(measured.entropy_floor_penalty),
        loss_contribution: num(measured.loss_contribution),
    }
}

fn trust_region(measured: &OptimizationMetrics) -> TrustRegion {
    TrustRegion {
        approx_kl: num(measured.approx_kl),
        approx_kl_last: num(measured.approx_kl_last),
        clip_fraction: num(measured.clip_fraction),
        clip_fraction_pos: num(measured.clip_fraction_pos),
        clip_fraction_neg: num(measured.clip_fraction_neg),
        ratio_mean: num(measured.ratio_mean),
        ratio_std: num(measured.ratio_std),
        ratio_max: num(measured.ratio_max),
        ratio_min: num(measured.ratio_min),
        logp_drift_mean: num(measured.logp_drift_mean),
        logp_drift_max: num(measured.logp_drift_max),
        logp_min: num(measured.logp_min),
        logp_max: num(measured.logp_max),
        head_kl: by_head(&measured.head_kl),
        head_clip_fraction: by_head(&measured.head_clip_fraction),
        head_ratio_max: by_head(&measured.head_ratio_max),
    }
}

fn entropy(measured: &OptimizationMetrics, rollout: Option<&RolloutDiagnostics>) -> PolicyEntropy {
    let learnable = rollout.map(|rollout| rollout.head_learnable_fraction);
    let counted: Vec<f64> = measured
        .head_entropy_avail
        .iter()
        .zip(learnable.unwrap_or_default())
        .filter_map(|(entropy, learnable)| entropy.filter(|_| learnable > 0.0))
        .collect();
    PolicyEntropy {
        entropy: num(measured.entropy),
        entropy_mean: (!counted.is_empty()).then(|| Num(counted.iter().sum::<f64>() / counted.len() as f64)),
        head_entropy: by_head(&measured.head_entropy),
        head_entropy_avail: by_head(&measured.head_entropy_avail),
        head_learnable_fraction: learnable.map(|shares| by_head(&shares.map(Some))).unwrap_or_default(),
    }
}

fn gradients(measured: &OptimizationMetrics, max_grad_norm: Option<f64>) -> PolicyGradients {
    PolicyGradients {
        grad_norm: num(measured.grad_norm),
        grad_norm_aux: num(measured.grad_norm_aux),
        grad_clip_ratio: measured
            .grad_norm
            .zip(max_grad_norm)
            .map(|(norm, limit)| Num(norm / limit)),
        grad_clip_fraction: num(measured.grad_clip_fraction),
        value_grad_norm: num(measured.value_grad_norm),
        grad_cv: num(measured.grad_cv),
        param_update_ratio: num(measured.param_update_ratio),
        head_grad_norm: by_head(&measured.head_grad_norm),
    }
}

fn critic(measured: &OptimizationMetrics, rollout: Option<&RolloutDiagnostics>) -> CriticQuality {
    let known = |value: fn(&RolloutDiagnostics) -> f64| rollout.map(|rollout| Num(value(rollout)));
    CriticQuality {
        explained_variance: known(|rollout| rollout.explained_variance),
        value_nrmse: known(|rollout| rollout.value_nrmse),
        v_return_correlation: known(|rollout| rollout.v_return_correlation),
        value_mean: num(measured.value_mean),
        value_std: num(measured.value_std),
        value_min: num(measured.value_min),
        value_max: num(measured.value_max),
        td_mean: known(|rollout| rollout.td_mean),
        td_std: known(|rollout| rollout.td_std),
        bellman_error: known(|rollout| rollout.bellman_error),
        value_target_mean: known(|rollout| rollout.value_target_mean),
        value_target_scale: known(|rollout| rollout.value_target_scale),
    }
}

fn returns(rollout: &RolloutDiagnostics) -> ReturnStatistics {
    let known = |value: f64| Some(Num(value));
    ReturnStatistics {
        return_mean: known(rollout.return_mean),
        return_std: known(rollout.return_std),
        return_p10: known(rollout.return_p10),
        return_p50: known(rollout.return_p50),
        return_p90: known(rollout.return_p90),
        return_variance: known(rollout.return_variance),
        return_skewness: known(rollout.return_skewness),
        reward_mean: known(rollout.reward_mean),
        reward_std: known(rollout.reward_std),
        reward_scale: known(rollout.reward_scale),
        reward_clip_fraction: known(rollout.reward_clip_fraction),
    }
}

fn advantages(rollout: &RolloutDiagnostics) -> AdvantageStatistics {
    AdvantageStatistics {
        adv_pre_mean: num(rollout.adv_pre_mean),
        adv_pre_std: num(rollout.adv_pre_std),
        adv_skewness: num(rollout.adv_skewness),
        adv_kurtosis: num(rollout.adv_kurtosis),
        adv_positive_ratio: num(rollout.adv_positive_ratio),
    }
}

fn rollout_data(rollout: &RolloutDiagnostics) -> RolloutData {
    RolloutData {
        steps_valid: rollout.steps_valid as u64,
        steps_actor: rollout.steps_actor as u64,
        forced_ratio: Num(rollout.forced_ratio),
        scripted_ratio: Num(rollout.scripted_ratio),
        decision_density: Num(1.0 - rollout.forced_ratio),
        segments: rollout.segments as u64,
        segments_invalid: rollout.segments_invalid as u64,
        op_counts: op_counts(&rollout.op_counts),
        ev_low_return_variance: rollout.ev_low_return_variance,
        adv_std_floored: rollout.adv_std_floored,
        charges: charges(&rollout.rollbacks),
    }
}

fn op_counts(by_op: &[u64; OPS]) -> OpCounts {
    let of = |op: LifecycleOp| u32::try_from(by_op[op.code()]).unwrap_or(u32::MAX);
    OpCounts {
        wait: of(LifecycleOp::Wait),
        germinate: of(LifecycleOp::Germinate),
        set_alpha_target: of(LifecycleOp::SetAlphaTarget),
        prune: of(LifecycleOp::Prune),
        fossilize: of(LifecycleOp::Fossilize),
        advance: of(LifecycleOp::Advance),
    }
}

/// `None` without recurrent states.
fn any_state(states: &[StateHealth], is: fn(&StateHealth) -> bool) -> Option<bool> {
    (!states.is_empty()).then(|| states.iter().any(is))
}

/// Hidden state first, then the cell of cores that have one.
fn recurrent(update: &[StateHealth], rollout: &[StateHealth]) -> RecurrentHealth {
    type Number = fn(&StateHealth) -> Option<f64>;
    let of = |index: usize, number: Number| num(update.get(index).and_then(number));
    let of_rollout = |index: usize, number: Number| num(rollout.get(index).and_then(number));
    RecurrentHealth {
        rollout_h_rms: of_rollout(0, |state| state.rms),
        rollout_c_rms: of_rollout(1, |state| state.rms),
        rollout_h_env_rms_mean: of_rollout(0, |state| state.env_rms_mean),
        rollout_h_env_rms_max: of_rollout(0, |state| state.env_rms_max),
        rollout_c_env_rms_mean: of_rollout(1, |state| state.env_rms_mean),
        rollout_c_env_rms_max: of_rollout(1, |state| state.env_rms_max),
        rollout_h_max: of_rollout(0, |state| state.max),
        rollout_c_max: of_rollout(1, |state| state.max),
        update_h_rms: of(0, |state| state.rms),
        update_c_rms: of(1, |state| state.rms),
        update_h_env_rms_mean: of(0, |state| state.env_rms_mean),
        update_h_env_rms_max: of(0, |state| state.env_rms_max),
        update_c_env_rms_mean: of(1, |state| state.env_rms_mean),
        update_c_env_rms_max: of(1, |state| state.env_rms_max),
        update_h_max: of(0, |state| state.max),
        update_c_max: of(1, |state| state.max),
    }
}

fn schedules(schedules: &Schedules) -> LearnerSchedules {
    LearnerSchedules {
        lr: Num(schedules.lr),
        entropy_coef: Num(schedules.entropy_coef),
        value_coef: Num(schedules.value_coef),
        aux_coef: Num(schedules.aux_coef),
        clip_ratio: Num(schedules.clip_ratio),
        entropy_floor: Num(schedules.entropy_floor),
        floor_schedule: Num(schedules.probability_floor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Choices, DecisionPoint};
    use crate::scenario::{LifecycleConfig, MaskConfig};
    use crate::seed::{Limits, SlotSet};

    #[test]
    fn a_thought_tells_of_the_heads_that_mattered_and_of_what_could_have_been_done() {
        // One empty slot: nothing but waiting and germinating is allowed.
        let all = SlotSet::first(1);
        let limits = Limits::new(&LifecycleConfig::default(), &MaskConfig::default(), all, all, 0);
        let at = DecisionPoint {
            env: 0,
            episode: 0,
            step: 1,
        };
        let masks = MaskSet::build(at, &[None], &[Choices::first_n(3)], &limits).unwrap();
        let mut sample = Sample {
            log_probs: [0.0; HEADS],
            entropies: [0.5; HEADS],
            op_probabilities: [0.75, 0.25, 0.0, 0.0, 0.0, 0.0],
            value: -0.25,
        };
        sample.log_probs[Head::Op as usize] = 0.75_f32.ln();
        let mut forced = [false; HEADS];
        forced[Head::Slot as usize] = true;

        let units = ValueUnits {
            mean: 2.0,
            deviation: 10.0,
        };
        let waiting = thought(&sample, LifecycleOp::Wait, &masks, forced, units);
        let germinating = thought(&sample, LifecycleOp::Germinate, &masks, forced, units);

        assert_eq!(waiting.p, BTreeMap::from([("op".into(), Num(0.75))]));
        assert_eq!(waiting.value, Num(-0.5), "in units of reward");
        let alternative = Alternative {
            op: LifecycleOp::Germinate,
            p: Num(0.25),
        };
        assert_eq!(waiting.alternatives, [alternative]);
        assert_eq!(germinating.p.get("slot"), Some(&Num(1.0)));
        assert_eq!(germinating.h.get("slot"), None, "there was nothing to choose");
        assert_eq!(germinating.h.get("blueprint"), Some(&Num(0.5)));
        assert_eq!(germinating.p.get("alpha_speed"), None, "it does not matter");
    }
}
