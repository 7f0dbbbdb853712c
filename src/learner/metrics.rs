//! The record of one update: every key always present, `None` where a quantity is undefined (spec 04 §12).

use serde::{Deserialize, Serialize};

use super::diagnostics::RolloutDiagnostics;
use super::readings::{PerHead, Reading, Scalar};
use super::recurrent::{STATE_NUMBERS, StateHealth};
use super::schedules::Schedules;
use super::update::Measured;
use crate::controller::{HEADS, Head};

/// Why an update was not performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The policy had diverged from the rollout's before the first step; not a failure.
    Kl,
    /// Something was not finite.
    Nonfinite,
    /// Rollout and update disagree about the same policy.
    Mismatch,
    /// The rollout had no valid step; not a failure.
    Empty,
}

/// What stopped a minibatch or an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Returns, advantages, statistics.
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

/// A step that was not taken, or an update that was undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonfiniteSkip {
    /// Epoch and minibatch; `None` for the whole update.
    pub place: Option<(u32, u32)>,
    pub gate: Gate,
    pub sources: Vec<String>,
}

/// State of a head's gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadGradState {
    Finite,
    /// The policy has no parameters of that head, or they got no gradient.
    Missing,
    Nonfinite,
    /// The head mattered in no step that the actor learns from.
    NotLearnable,
}

/// One update, reduced over its minibatches: means over the steps taken unless said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateRecord {
    pub update_performed: bool,
    pub skip_reason: Option<SkipReason>,
    /// Successful updates, this one included.
    pub updates: u64,
    pub policy_version: u64,
    pub steps_taken: u32,
    /// Epoch in which the divergence stopped the update.
    pub early_stop_epoch: Option<u32>,
    pub nonfinite_skips: u32,
    pub nonfinite_sources: Vec<NonfiniteSkip>,
    pub consecutive_failures: u32,
    /// Too few free steps: only the critic learnt.
    pub actor_skipped: bool,
    pub schedules: Schedules,
    /// `None` if the rollout could not be finished.
    pub rollout: Option<RolloutDiagnostics>,
    pub optimization: OptimizationMetrics,
    /// How far the observation normaliser has moved since it knew nothing; `None` until its owner has committed the
    /// rollout.
    pub obs_norm_drift: Option<f64>,
    pub finalize_ms: f64,
    pub update_ms: f64,
    /// Median of the minibatches' times, evaluation to step.
    pub learner_step_us_p50: Option<f64>,
    pub amp_dtype: String,
}

/// What the minibatches measured; all `None` without a minibatch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OptimizationMetrics {
    pub loss_total: Option<f64>,
    pub loss_policy: Option<f64>,
    pub loss_value: Option<f64>,
    pub loss_entropy: Option<f64>,
    pub entropy_floor_penalty: Option<f64>,
    pub loss_contribution: Option<f64>,

    /// Joint divergence from the policy that acted.
    pub approx_kl: Option<f64>,
    /// In the last minibatch evaluated, whether or not its step was taken.
    pub approx_kl_last: Option<f64>,
    pub head_kl: [Option<f64>; HEADS],
    /// Share of joint ratios beyond the clip.
    pub clip_fraction: Option<f64>,
    pub clip_fraction_pos: Option<f64>,
    pub clip_fraction_neg: Option<f64>,
    pub head_clip_fraction: [Option<f64>; HEADS],
    pub ratio_mean: Option<f64>,
    pub ratio_std: Option<f64>,
    /// Largest of all.
    pub ratio_max: Option<f64>,
    /// Smallest of all.
    pub ratio_min: Option<f64>,
    /// Largest of all.
    pub head_ratio_max: [Option<f64>; HEADS],
    /// Difference of stored and recomputed log-probabilities before the first step.
    pub logp_drift_mean: Option<f64>,
    pub logp_drift_max: Option<f64>,
    pub logp_min: Option<f64>,
    pub logp_max: Option<f64>,

    /// Σ of the heads' weighted entropies.
    pub entropy: Option<f64>,
    pub head_entropy: [Option<f64>; HEADS],
    pub head_entropy_avail: [Option<f64>; HEADS],

    /// Largest of all, before clipping.
    pub grad_norm: Option<f64>,
    pub grad_norm_aux: Option<f64>,
    /// Share of steps whose gradient was clipped.
    pub grad_clip_fraction: Option<f64>,
    pub head_grad_norm: [Option<f64>; HEADS],
    pub head_grad_state: [Option<HeadGradState>; HEADS],
    pub value_grad_norm: Option<f64>,
    /// Deviation over mean of the heads' gradient norms (Bessel).
    pub grad_cv: Option<f64>,
    /// `‖Δp‖ / ‖p‖`.
    pub param_update_ratio: Option<f64>,

    /// Of the critic's outputs, normalised units.
    pub value_mean: Option<f64>,
    pub value_std: Option<f64>,
    pub value_min: Option<f64>,
    pub value_max: Option<f64>,

    pub aux_pred_variance: Option<f64>,
    pub aux_explained_variance: Option<f64>,
    pub aux_correlation: Option<f64>,
    pub aux_samples: u64,

    /// Of the states after the last minibatch's sequences.
    pub states: Vec<StateHealth>,
    /// Of the states with which the rollout's valid segments ended.
    pub rollout_states: Vec<StateHealth>,
    /// Elements of raw observations.
    pub obs_nan_count: Option<u64>,
    pub obs_inf_count: Option<u64>,
    pub obs_outlier_pct: Option<f64>,
    pub obs_near_clip_pct: Option<f64>,
    pub obs_clip_pct: Option<f64>,
}

impl OptimizationMetrics {
    pub(super) fn reduce(measured: &Measured, max_grad_norm: Option<f64>) -> Self {
        let all: Vec<&Reading> = measured.minibatches.iter().map(|(_, reading)| reading).collect();
        let taken: Vec<&Reading> = all.iter().copied().filter(|r| !r.is_set(Scalar::Suppressed)).collect();
        let average = |scalar| mean(taken.iter().map(|reading| reading.get(scalar)));
        let largest = |scalar| extreme(&taken, scalar, f64::max);
        let smallest = |scalar| extreme(&taken, scalar, f64::min);
        let heads = |per_head, counted_by| -> [Option<f64>; HEADS] {
            std::array::from_fn(|head| {
                let used = taken.iter().filter(|reading| reading.head(counted_by, head) > 0.0);
                mean(used.map(|reading| reading.head(per_head, head)))
            })
        };
        let deviation = |mean: Option<f64>, square: Option<f64>| {
            let (mean, square) = mean.zip(square)?;
            Some((square - mean * mean).max(0.0).sqrt())
        };
        let first = |scalar| all.first().and_then(|reading| finite(reading.get(scalar)));
        let clipped = taken.iter().map(|reading| {
            let is_clipped = max_grad_norm.is_some_and(|limit| reading.get(Scalar::GradNorm) > limit);
            f64::from(u8::from(is_clipped))
        });
        let (positive, negative) = (average(Scalar::ClipPositive), average(Scalar::ClipNegative));
        let head_grad_norm = head_grad_norms(&taken);
        let percent = |share: f64| finite(share * 100.0);
        let auxiliary = ContributionFit::measure(&taken);
        Self {
            loss_total: average(Scalar::LossTotal),
            loss_policy: average(Scalar::LossPolicy),
            loss_value: average(Scalar::LossValue),
            loss_entropy: average(Scalar::LossEntropy),
            entropy_floor_penalty: average(Scalar::EntropyFloorPenalty),
            loss_contribution: average(Scalar::LossContribution),
            approx_kl: average(Scalar::Kl),
            approx_kl_last: all.last().and_then(|reading| finite(reading.get(Scalar::Kl))),
            head_kl: heads(PerHead::Kl, PerHead::Causal),
            clip_fraction: positive.zip(negative).map(|(positive, negative)| positive + negative),
            clip_fraction_pos: positive,
            clip_fraction_neg: negative,
            head_clip_fraction: heads(PerHead::Clipped, PerHead::Causal),
            ratio_mean: average(Scalar::RatioMean),
            ratio_std: deviation(average(Scalar::RatioMean), average(Scalar::RatioSquare)),
            ratio_max: largest(Scalar::RatioMax),
            ratio_min: smallest(Scalar::RatioMin),
            head_ratio_max: std::array::from_fn(|head| {
                let used = taken.iter().filter(|reading| reading.head(PerHead::Causal, head) > 0.0);
                used.map(|reading| reading.head(PerHead::RatioMax, head))
                    .reduce(f64::max)
            }),
            logp_drift_mean: first(Scalar::DriftMean),
            logp_drift_max: first(Scalar::DriftMax),
            logp_min: smallest(Scalar::LogProbMin),
            logp_max: largest(Scalar::LogProbMax),
            entropy: average(Scalar::LossEntropy).map(|loss| -loss),
            head_entropy: heads(PerHead::Entropy, PerHead::Causal),
            head_entropy_avail: heads(PerHead::EntropyAvailable, PerHead::Available),
            grad_norm: largest(Scalar::GradNorm),
            grad_norm_aux: largest(Scalar::GradNormAuxiliary),
            grad_clip_fraction: mean(clipped),
            head_grad_norm,
            head_grad_state: Head::ALL.map(|head| head_grad_state(&all, head as usize)),
            value_grad_norm: mean(taken.iter().map(|reading| reading.get(Scalar::ValueGradSquares).sqrt())),
            grad_cv: coefficient_of_variation(&head_grad_norm),
            param_update_ratio: finite((measured.change_squares / measured.parameter_squares).sqrt()),
            value_mean: average(Scalar::ValueMean),
            value_std: deviation(average(Scalar::ValueMean), average(Scalar::ValueSquare)),
            value_min: smallest(Scalar::ValueMin),
            value_max: largest(Scalar::ValueMax),
            aux_pred_variance: auxiliary.prediction_variance,
            aux_explained_variance: auxiliary.explained_variance,
            aux_correlation: auxiliary.correlation,
            aux_samples: auxiliary.samples,
            states: state_health(&measured.states),
            rollout_states: state_health(&measured.rollout_states),
            obs_nan_count: Some(measured.observation_faults[0] as u64),
            obs_inf_count: Some(measured.observation_faults[1] as u64),
            obs_outlier_pct: percent(measured.observation_shares[0]),
            obs_near_clip_pct: percent(measured.observation_shares[1]),
            obs_clip_pct: percent(measured.observation_shares[2]),
        }
    }
}

fn state_health(states: &[[f64; STATE_NUMBERS]]) -> Vec<StateHealth> {
    states
        .iter()
        .map(|&numbers| StateHealth::from_numbers(numbers))
        .collect()
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    finite(sum / f64::from(count))
}

fn extreme(readings: &[&Reading], scalar: Scalar, choose: fn(f64, f64) -> f64) -> Option<f64> {
    let values = readings.iter().map(|reading| reading.get(scalar));
    values.reduce(choose).and_then(finite)
}

fn head_grad_norms(taken: &[&Reading]) -> [Option<f64>; HEADS] {
    std::array::from_fn(|head| {
        let with_gradient = taken
            .iter()
            .filter(|reading| reading.head(PerHead::GradTensors, head) > 0.0);
        mean(with_gradient.map(|reading| reading.head(PerHead::GradSquares, head).sqrt()))
    })
}

fn head_grad_state(all: &[&Reading], head: usize) -> Option<HeadGradState> {
    let any = |per_head| all.iter().any(|reading| reading.head(per_head, head) > 0.0);
    Some(match () {
        () if all.is_empty() => return None,
        () if all
            .iter()
            .any(|reading| !reading.head(PerHead::GradSquares, head).is_finite()) =>
        {
            HeadGradState::Nonfinite
        }
        () if !any(PerHead::Causal) => HeadGradState::NotLearnable,
        () if !any(PerHead::GradTensors) => HeadGradState::Missing,
        () => HeadGradState::Finite,
    })
}

fn coefficient_of_variation(norms: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = norms.iter().flatten().copied().collect();
    let average = mean(known.iter().copied())?;
    let squares: f64 = known.iter().map(|norm| (norm - average).powi(2)).sum();
    finite((squares / (known.len() as f64 - 1.0)).sqrt() / average)
}

/// How well contributions are predicted, over all minibatches together.
struct ContributionFit {
    samples: u64,
    prediction_variance: Option<f64>,
    explained_variance: Option<f64>,
    correlation: Option<f64>,
}

impl ContributionFit {
    fn measure(taken: &[&Reading]) -> Self {
        let total = |scalar| -> f64 {
            let values = taken.iter().map(|reading| reading.get(scalar));
            values.filter(|value| value.is_finite()).sum()
        };
        let n = total(Scalar::ContributionCount);
        let (prediction, target) = (total(Scalar::PredictionSum) / n, total(Scalar::TargetSum) / n);
        let prediction_variance = total(Scalar::PredictionSquares) / n - prediction * prediction;
        let target_variance = total(Scalar::TargetSquares) / n - target * target;
        let covariance = total(Scalar::ProductSum) / n - prediction * target;
        let error_variance = prediction_variance + target_variance - 2.0 * covariance;
        Self {
            samples: n as u64,
            prediction_variance: finite(prediction_variance),
            explained_variance: finite(1.0 - error_variance / target_variance),
            correlation: finite(covariance / (prediction_variance * target_variance).sqrt()),
        }
    }
}
