//! What a rollout was like, measured once before the update from the values and actions of the policy that acted.
//! Population statistics throughout.

use super::buffer::RolloutBuffer;
use super::reward_norm::CLIP;
use super::targets::{LEAST_DEVIATION, StepTargets};
use crate::controller::{HEADS, Head};
use crate::telemetry::{AdvantageStatistics, CriticQuality, Num, OpCounts, ReturnStatistics, RolloutData, statistics};

/// Below this a deviation is taken for zero.
const NO_SPREAD: f64 = 1e-8;
/// Variance of returns below which little is left to explain, in units of scaled reward.
const LOW_VARIANCE: f64 = 1.0;
/// Below this the shape of the advantages' distribution is noise.
const LITTLE_SPREAD: f64 = 0.05;

/// Metrics of one rollout, as telemetry has them.
#[derive(Clone, Debug)]
pub(super) struct RolloutMetrics {
    pub data: RolloutData,
    /// By head: share of valid steps in which it mattered, the actor learns, and there was a choice.
    pub learnable: [f64; HEADS],
    pub returns: ReturnStatistics,
    pub advantages: AdvantageStatistics,
    /// Of the critic's outputs nothing is known before the update.
    pub critic: CriticQuality,
}

impl RolloutMetrics {
    /// `free` are the advantages of the steps that the actor learns from.
    pub fn measure(buffer: &RolloutBuffer, targets: &[Vec<StepTargets>], free: &[f64]) -> Self {
        let column = |field: fn(&StepTargets) -> f64| -> Vec<f64> {
            let steps = buffer.valid_steps();
            steps.map(|(env, step)| field(&targets[env][step])).collect()
        };
        let rewards = column(|target| target.reward);
        let returns = column(|target| target.ret);
        let (values, td_errors) = (column(|target| target.value), column(|target| target.td_error));
        let advantage_deviation = deviation(free);
        let mut critic = critic_quality(&returns, &values, &td_errors);
        critic.explained_variance_free = explained_variance_of(buffer, targets, true);
        critic.explained_variance_forced = explained_variance_of(buffer, targets, false);
        Self {
            data: RolloutData {
                ev_low_return_variance: is_low_variance(&returns),
                adv_std_floored: !free.is_empty() && advantage_deviation < LEAST_DEVIATION,
                ..rollout_data(buffer)
            },
            learnable: learnable_shares(buffer),
            returns: return_statistics(&rewards, &returns),
            advantages: advantage_statistics(free),
            critic,
        }
    }
}

fn rollout_data(buffer: &RolloutBuffer) -> RolloutData {
    let records = || {
        let steps = buffer.valid_steps();
        steps.map(|(env, step)| &buffer.rows[env].steps[step])
    };
    let steps = records().count();
    let share = |count: usize| count as f64 / steps as f64;
    let mut op_counts = OpCounts::default();
    records().for_each(|record| op_counts.record(record.effective_op));
    let forced_ratio = share(records().filter(|record| record.forced).count());
    RolloutData {
        steps_valid: steps as u64,
        steps_actor: records().filter(|record| record.is_free()).count() as u64,
        forced_ratio: Num(forced_ratio),
        scripted_ratio: Num(share(0)),
        decision_density: Num(1.0 - forced_ratio),
        segments: buffer.segments().count() as u64,
        segments_invalid: buffer.segments().filter(|segment| !segment.valid).count() as u64,
        op_counts,
        charges: buffer.charges,
        ..RolloutData::default()
    }
}

fn learnable_shares(buffer: &RolloutBuffer) -> [f64; HEADS] {
    let steps = buffer.valid_steps().count() as f64;
    Head::ALL.map(|head| {
        let learnable = buffer.valid_steps().filter(|&(env, step)| {
            let record = &buffer.rows[env].steps[step];
            record.is_free() && record.is_causal(head) && record.choosable[head as usize]
        });
        learnable.count() as f64 / steps
    })
}

fn return_statistics(rewards: &[f64], returns: &[f64]) -> ReturnStatistics {
    let clipped = rewards.iter().filter(|reward| reward.abs() >= CLIP).count();
    let return_std = deviation(returns);
    ReturnStatistics {
        return_mean: Some(Num(mean(returns))),
        return_std: Some(Num(return_std)),
        return_p10: Some(Num(quantile(returns, 0.1))),
        return_p50: Some(Num(quantile(returns, 0.5))),
        return_p90: Some(Num(quantile(returns, 0.9))),
        return_variance: Some(Num(return_std * return_std)),
        return_skewness: Some(Num(standardised_moment(returns, 3).unwrap_or(0.0))),
        reward_mean: Some(Num(mean(rewards))),
        reward_std: Some(Num(deviation(rewards))),
        reward_scale: None,
        reward_clip_fraction: Some(Num(clipped as f64 / rewards.len() as f64)),
    }
}

fn advantage_statistics(free: &[f64]) -> AdvantageStatistics {
    let Some((mean, deviation)) = statistics::mean_and_std(free) else {
        return AdvantageStatistics::default();
    };
    let positive = free.iter().filter(|&&advantage| advantage > 0.0).count();
    let shape = |order| standardised_moment(free, order).filter(|_| deviation > LITTLE_SPREAD);
    AdvantageStatistics {
        adv_pre_mean: Some(Num(mean)),
        adv_pre_std: Some(Num(deviation)),
        adv_skewness: shape(3).map(Num),
        adv_kurtosis: shape(4).map(|kurtosis| Num(kurtosis - 3.0)),
        adv_positive_ratio: Some(Num(positive as f64 / free.len() as f64)),
        adv_baseline_std: None,
    }
}

fn is_low_variance(returns: &[f64]) -> bool {
    deviation(returns).powi(2) < LOW_VARIANCE
}

/// `1 − Var(R − V)/max(Var R, floor)` over the steps with a choice, or over those without; `None` if there are none.
fn explained_variance_of(buffer: &RolloutBuffer, targets: &[Vec<StepTargets>], is_free: bool) -> Option<Num> {
    let steps = buffer
        .valid_steps()
        .filter(|&(env, step)| buffer.rows[env].steps[step].is_free() == is_free);
    let of_steps = steps.map(|(env, step)| (targets[env][step].ret, targets[env][step].value));
    let (returns, values): (Vec<f64>, Vec<f64>) = of_steps.unzip();
    let quality = (!returns.is_empty()).then(|| critic_quality(&returns, &values, &[]));
    quality?.explained_variance
}

/// How well values predict returns.
fn critic_quality(returns: &[f64], values: &[f64], td_errors: &[f64]) -> CriticQuality {
    let errors: Vec<f64> = returns.iter().zip(values).map(|(ret, value)| ret - value).collect();
    let variance = deviation(returns).powi(2);
    let error_variance = deviation(&errors).powi(2);
    let nrmse = error_variance.sqrt() / (variance.sqrt() + LOW_VARIANCE.sqrt());
    let magnitudes = td_errors.iter().map(|error| error.abs()).sum::<f64>();
    CriticQuality {
        explained_variance: Some(Num(1.0 - error_variance / variance.max(LOW_VARIANCE))),
        value_nrmse: Some(Num(nrmse)),
        v_return_correlation: Some(Num(correlation(returns, values))),
        td_mean: Some(Num(mean(td_errors))),
        td_std: Some(Num(deviation(td_errors))),
        bellman_error: Some(Num(magnitudes / td_errors.len() as f64)),
        ..CriticQuality::default()
    }
}

/// 0 where either has no spread.
fn correlation(returns: &[f64], values: &[f64]) -> f64 {
    let deviations = deviation(returns) * deviation(values);
    let (mean_return, mean_value) = (mean(returns), mean(values));
    let products = returns
        .iter()
        .zip(values)
        .map(|(ret, value)| (ret - mean_return) * (value - mean_value));
    let covariance = products.sum::<f64>() / returns.len().max(1) as f64;
    let varies = deviation(returns) > NO_SPREAD && deviation(values) > NO_SPREAD;
    if varies { covariance / deviations } else { 0.0 }
}

fn mean(values: &[f64]) -> f64 {
    statistics::mean_and_std(values).unwrap_or_default().0
}

fn deviation(values: &[f64]) -> f64 {
    statistics::mean_and_std(values).unwrap_or_default().1
}

/// `E[((x − mean)/std)^order]`; `None` without spread.
fn standardised_moment(values: &[f64], order: i32) -> Option<f64> {
    let (mean, deviation) = (mean(values), deviation(values));
    let moments = values.iter().map(|value| ((value - mean) / deviation).powi(order));
    (deviation > NO_SPREAD).then(|| moments.sum::<f64>() / values.len() as f64)
}

/// By linear interpolation between the neighbours.
fn quantile(values: &[f64], share: f64) -> f64 {
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
mod tests;
