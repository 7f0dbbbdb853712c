//! What a rollout was like, measured once before the update from the values and actions of the policy that acted
//! (spec 04 §12). Population statistics throughout; what is undefined is `None`.

use serde::{Deserialize, Serialize};

use super::advantages::Spread;
use super::buffer::RolloutBuffer;
use super::finalize::StepTargets;
use super::segments::RollbackCounters;
use super::sequences::op_counts;
use super::value_norm::ValueUnits;
use crate::controller::{HEADS, Head, relevant};
use crate::growth::LifecycleOp;
use crate::scenario::LearnerConfig;

/// Below this a deviation is taken for zero.
const NO_SPREAD: f64 = 1e-8;
/// Below this the shape of the advantages' distribution is noise.
const LITTLE_SPREAD: f64 = 0.05;

/// Metrics of one rollout. Rewards, returns and values are in units of scaled reward unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolloutDiagnostics {
    pub steps_valid: usize,
    /// Steps that the actor learns from.
    pub steps_actor: usize,
    pub forced_ratio: f64,
    pub scripted_ratio: f64,
    pub segments: usize,
    pub segments_invalid: usize,
    pub op_counts: [u64; LifecycleOp::ALL.len()],
    pub rollbacks: RollbackCounters,
    /// By head: share of valid steps in which it mattered, the actor learns, and there was a choice.
    pub head_learnable_fraction: [f64; HEADS],

    pub reward_mean: f64,
    pub reward_std: f64,
    pub reward_scale: f64,
    pub reward_clip_fraction: f64,

    pub return_mean: f64,
    pub return_std: f64,
    pub return_variance: f64,
    pub return_skewness: f64,
    pub return_p10: f64,
    pub return_p50: f64,
    pub return_p90: f64,

    pub explained_variance: f64,
    /// The returns vary too little for explained variance to mean much.
    pub ev_low_return_variance: bool,
    pub value_nrmse: f64,
    pub v_return_correlation: f64,
    pub td_mean: f64,
    pub td_std: f64,
    /// Mean absolute one-step error.
    pub bellman_error: f64,
    /// Units of the critic after the rollout.
    pub value_target_mean: f64,
    pub value_target_scale: f64,

    pub adv_pre_mean: Option<f64>,
    pub adv_pre_std: Option<f64>,
    pub adv_std_floored: bool,
    pub adv_skewness: Option<f64>,
    /// Excess.
    pub adv_kurtosis: Option<f64>,
    pub adv_positive_ratio: Option<f64>,
}

impl RolloutDiagnostics {
    pub(super) fn measure(
        buffer: &RolloutBuffer,
        targets: &[Vec<StepTargets>],
        steps: &[(usize, usize)],
        config: &LearnerConfig,
    ) -> Self {
        let column = |field: fn(&StepTargets) -> f64| -> Vec<f64> {
            steps.iter().map(|&(env, step)| field(&targets[env][step])).collect()
        };
        let records = || steps.iter().map(|&(env, step)| &buffer.rows[env].steps[step]);
        let n = steps.len().max(1) as f64;
        let share = |count: usize| count as f64 / n;
        let rewards = column(|target| target.reward);
        let returns = column(|target| target.ret);
        let values = column(|target| target.value);
        let errors = column(|target| target.td_error);
        let clip = config.reward_norm.clip;
        let return_std = deviation(&returns);
        let critic = CriticFit::measure(&returns, &values, config.ev_var_floor);
        Self {
            steps_valid: steps.len(),
            steps_actor: records().filter(|record| record.is_free()).count(),
            forced_ratio: share(records().filter(|record| record.forced).count()),
            scripted_ratio: share(records().filter(|record| record.scripted).count()),
            segments: buffer.segments().count(),
            segments_invalid: buffer.segments().filter(|segment| !segment.valid).count(),
            op_counts: op_counts(buffer),
            rollbacks: buffer.rollback_counters(),
            head_learnable_fraction: Head::ALL.map(|head| {
                let learnable = records().filter(|record| {
                    record.is_free() && relevant(record.effective_op, head) && record.choosable[head as usize]
                });
                share(learnable.count())
            }),
            reward_mean: mean(&rewards),
            reward_std: deviation(&rewards),
            reward_clip_fraction: share(rewards.iter().filter(|reward| reward.abs() >= clip).count()),
            return_mean: mean(&returns),
            return_std,
            return_variance: return_std * return_std,
            return_skewness: standardised_moment(&returns, 3).unwrap_or(0.0),
            return_p10: quantile(&returns, 0.1),
            return_p50: quantile(&returns, 0.5),
            return_p90: quantile(&returns, 0.9),
            explained_variance: critic.explained_variance,
            ev_low_return_variance: critic.is_low_variance,
            value_nrmse: critic.nrmse,
            v_return_correlation: critic.correlation,
            td_mean: mean(&errors),
            td_std: deviation(&errors),
            bellman_error: errors.iter().map(|error| error.abs()).sum::<f64>() / n,
            ..Self::default()
        }
    }

    pub(super) fn set_advantages(&mut self, advantages: &[f64], spread: Spread) {
        if advantages.is_empty() {
            return;
        }
        let positive = advantages.iter().filter(|&&advantage| advantage > 0.0).count();
        let has_shape = spread.deviation > LITTLE_SPREAD;
        let shape = |order| standardised_moment(advantages, order).filter(|_| has_shape);
        self.adv_pre_mean = Some(spread.mean);
        self.adv_pre_std = Some(spread.deviation);
        self.adv_std_floored = spread.is_floored;
        self.adv_skewness = shape(3);
        self.adv_kurtosis = shape(4).map(|kurtosis| kurtosis - 3.0);
        self.adv_positive_ratio = Some(positive as f64 / advantages.len() as f64);
    }

    pub(super) fn set_reward_scale(&mut self, scale: f64) {
        self.reward_scale = scale;
    }

    pub(super) fn set_value_units(&mut self, units: ValueUnits) {
        self.value_target_mean = units.mean;
        self.value_target_scale = units.deviation;
    }
}

/// How well values predict returns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CriticFit {
    explained_variance: f64,
    is_low_variance: bool,
    nrmse: f64,
    correlation: f64,
}

impl CriticFit {
    fn measure(returns: &[f64], values: &[f64], variance_floor: f64) -> Self {
        let errors: Vec<f64> = returns.iter().zip(values).map(|(ret, value)| ret - value).collect();
        let variance = deviation(returns).powi(2);
        let error_variance = deviation(&errors).powi(2);
        let deviations = deviation(returns) * deviation(values);
        let (mean_return, mean_value) = (mean(returns), mean(values));
        let products = returns
            .iter()
            .zip(values)
            .map(|(ret, value)| (ret - mean_return) * (value - mean_value));
        let covariance = products.sum::<f64>() / returns.len().max(1) as f64;
        let varies = deviation(returns) > NO_SPREAD && deviation(values) > NO_SPREAD;
        Self {
            explained_variance: 1.0 - error_variance / variance.max(variance_floor),
            is_low_variance: variance < variance_floor,
            nrmse: error_variance.sqrt() / (variance.sqrt() + variance_floor.sqrt()),
            correlation: if varies { covariance / deviations } else { 0.0 },
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

/// `E[((x − mean)/std)^order]`; `None` without spread.
fn standardised_moment(values: &[f64], order: i32) -> Option<f64> {
    let (mean, deviation) = (mean(values), deviation(values));
    let moments = values.iter().map(|value| ((value - mean) / deviation).powi(order));
    (deviation > NO_SPREAD).then(|| moments.sum::<f64>() / values.len() as f64)
}

/// By linear interpolation between the neighbours.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = share * sorted.len().saturating_sub(1) as f64;
    let below = position.floor() as usize;
    let Some(&low) = sorted.get(below) else {
        return 0.0;
    };
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (position - below as f64) * (high - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec 04 Check 13.
    #[test]
    fn explained_variance_is_measured_against_a_floor() {
        let (returns, values) = ([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5]);
        let fit = CriticFit::measure(&returns, &values, 1.0);
        assert!((fit.explained_variance - 0.8).abs() < 1e-9);
        assert!((fit.nrmse - 0.236_068_0).abs() < 1e-6);
        assert!(!fit.is_low_variance);

        let small = CriticFit::measure(&returns.map(|r| r * 0.1), &values.map(|v| v * 0.1), 1.0);
        assert!((small.explained_variance - 0.9975).abs() < 1e-9);
        assert!(small.is_low_variance);
    }

    #[test]
    fn without_spread_there_is_no_correlation_and_no_shape() {
        let fit = CriticFit::measure(&[1.0, 2.0], &[5.0, 5.0], 1.0);
        assert_eq!(fit.correlation, 0.0);
        assert_eq!(standardised_moment(&[2.0; 5], 3), None);
    }

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let values = [4.0, 0.0, 1.0, 3.0, 2.0];
        assert_eq!([0.1, 0.5, 0.9].map(|share| quantile(&values, share)), [0.4, 2.0, 3.6]);
    }
}
