//! What an update reports: its rollout, measured before anything moves; whether it was performed, skipped or undone,
//! and why; and what its minibatches measured. The meaning of every number is in `docs/reference/learner.md`.

use tch::Kind;

use super::advantages::{LEAST_DEVIATION, StepTargets};
use super::buffer::RolloutBuffer;
use super::measurements::{PerHead, Reading, STATE_NUMBERS, Scalar, UpdateMeasurements};
use super::normalise::CLIP;
use super::update::MAX_DRIFT;
use crate::actions::{HEADS, Head};
use crate::telemetry::{
    ByHead, FinitenessGate, HeadGradient, LearnerUpdate, NonfiniteSource, Num, RolloutData, UpdateMeasures, UpdateSkip,
    statistics,
};

/// Below this a deviation is taken for zero.
const NO_SPREAD: f64 = 1e-8;
/// Variance of returns below which little is left to explain, in units of scaled reward.
const LOW_VARIANCE: f64 = 1.0;

/// Measures a rollout from the values of the policy that acted. `free` are the advantages of the steps that the actor learns
/// from, `scale` is what rewards were divided by.
pub(super) fn rollout_data(
    buffer: &RolloutBuffer,
    targets: &[Vec<StepTargets>],
    free: &[f64],
    scale: f64,
) -> RolloutData {
    let column = |field: fn(&StepTargets) -> f64| -> Vec<f64> {
        let steps = buffer.valid_steps();
        steps.map(|(env, step)| field(&targets[env][step])).collect()
    };
    let (rewards, td_errors) = (column(|target| target.reward), column(|target| target.td_error));
    let (returns, values) = (column(|target| target.ret), column(|target| target.value));
    let share = |chosen: usize| Num(chosen as f64 / returns.len() as f64);
    let (return_mean, return_std) = statistics::mean_and_std(&returns).unwrap_or_default();
    let advantages = statistics::mean_and_std(free);
    let error = td_errors.iter().map(|error| error.abs()).sum::<f64>() / td_errors.len() as f64;
    RolloutData {
        steps_valid: returns.len() as u64,
        steps_actor: free.len() as u64,
        explained_variance: Num(explained_variance(&returns, &values)),
        explained_variance_free: explained_variance_of_choices(buffer, targets),
        ev_low_return_variance: return_std.powi(2) < LOW_VARIANCE,
        value_nrmse: Num(spread_of_errors(&returns, &values) / (return_std.powi(2).sqrt() + LOW_VARIANCE.sqrt())),
        v_return_correlation: Num(correlation(&returns, &values)),
        bellman_error: Num(error),
        return_mean: Num(return_mean),
        return_std: Num(return_std),
        reward_scale: Num(scale),
        reward_clip_fraction: share(rewards.iter().filter(|reward| reward.abs() >= CLIP).count()),
        adv_pre_mean: advantages.map(|(mean, _)| Num(mean)),
        adv_pre_std: advantages.map(|(_, deviation)| Num(deviation)),
        adv_std_floored: advantages.is_some_and(|(_, deviation)| deviation < LEAST_DEVIATION),
        charges: buffer.charges,
    }
}

/// By head: share of valid steps in which it mattered, the actor learns, and there was a choice.
pub(super) fn learnable_shares(buffer: &RolloutBuffer) -> [f64; HEADS] {
    let steps = buffer.valid_steps().count() as f64;
    Head::ALL.map(|head| {
        let learnable = buffer.valid_steps().filter(|&(env, step)| {
            let record = &buffer.rows[env].steps[step];
            record.is_free() && record.is_causal(head) && record.choosable[head as usize]
        });
        learnable.count() as f64 / steps
    })
}

fn deviation(values: &[f64]) -> f64 {
    statistics::mean_and_std(values).unwrap_or_default().1
}

fn spread_of_errors(returns: &[f64], values: &[f64]) -> f64 {
    let errors: Vec<f64> = returns.iter().zip(values).map(|(ret, value)| ret - value).collect();
    deviation(&errors).powi(2).sqrt()
}

/// `1 − Var(R − V)/max(Var R, floor)`.
fn explained_variance(returns: &[f64], values: &[f64]) -> f64 {
    let errors: Vec<f64> = returns.iter().zip(values).map(|(ret, value)| ret - value).collect();
    1.0 - deviation(&errors).powi(2) / deviation(returns).powi(2).max(LOW_VARIANCE)
}

/// The same over the steps with a choice; `None` if there are none.
fn explained_variance_of_choices(buffer: &RolloutBuffer, targets: &[Vec<StepTargets>]) -> Option<Num> {
    let choices = buffer
        .valid_steps()
        .filter(|&(env, step)| buffer.rows[env].steps[step].is_free());
    let (returns, values): (Vec<f64>, Vec<f64>) = choices
        .map(|(env, step)| (targets[env][step].ret, targets[env][step].value))
        .unzip();
    (!returns.is_empty()).then(|| Num(explained_variance(&returns, &values)))
}

/// 0 where either has no spread.
fn correlation(returns: &[f64], values: &[f64]) -> f64 {
    let [(mean_return, spread), (mean_value, value_spread)] =
        [returns, values].map(|values| statistics::mean_and_std(values).unwrap_or_default());
    if spread <= NO_SPREAD || value_spread <= NO_SPREAD {
        return 0.0;
    }
    let pairs = returns.iter().zip(values);
    let products = pairs.map(|(ret, value)| (ret - mean_return) * (value - mean_value));
    products.sum::<f64>() / returns.len() as f64 / (spread * value_spread)
}

/// Writes into `update` what its measurements say about it.
pub(super) fn judge(update: &mut LearnerUpdate, measured: &UpdateMeasurements) {
    let readings = || measured.readings.iter();
    let stop = readings().find(|reading| reading.is_set(Scalar::KlStop));
    let has_mismatch = readings().any(|reading| reading.is_set(Scalar::Mismatch));
    // What follows a stop or a mismatch would not have stepped anyway.
    let open = readings().filter(|reading| !reading.is_set(Scalar::KlStop) && !reading.is_set(Scalar::Mismatch));
    update.steps_taken = readings().filter(|reading| !reading.is_set(Scalar::Suppressed)).count() as u32;
    update.early_stop_epoch = stop.map(|reading| reading.epoch);
    update.nonfinite_sources = open.clone().filter_map(nonfinite_source).collect();
    let has_overflowed = open
        .clone()
        .any(|reading| reading.has_overflowed() && nonfinite_source(reading).is_none());
    update.skip_reason = match () {
        () if measured.are_parameters_spoilt() => UpdateSkip::Nonfinite,
        () if update.steps_taken > 0 => UpdateSkip::None,
        () if has_mismatch => UpdateSkip::Mismatch,
        () if !update.nonfinite_sources.is_empty() => UpdateSkip::Nonfinite,
        () if has_overflowed => UpdateSkip::Overflow,
        () if stop.is_some() => UpdateSkip::Kl,
        () => UpdateSkip::Empty,
    };
    update.update_performed = update.skip_reason == UpdateSkip::None;
    if let Some(last) = readings()
        .last()
        .map(|reading| reading.get(Scalar::LossScale))
        .filter(|scale| !scale.is_nan())
    {
        update.loss_scale = Some(Num(last));
    }
    if measured.are_parameters_spoilt() {
        update
            .nonfinite_sources
            .push(outside_minibatches(FinitenessGate::G4, "parameters"));
    }
}

/// Of a gate that concerns the whole update.
pub(super) fn outside_minibatches(gate: FinitenessGate, source: &str) -> NonfiniteSource {
    NonfiniteSource {
        epoch: None,
        minibatch: None,
        gate,
        sources: vec![source.into()],
    }
}

/// The first gate that a minibatch did not pass, and what was not finite there.
fn nonfinite_source(reading: &Reading) -> Option<NonfiniteSource> {
    let heads = |what: &str, is_bad: &dyn Fn(usize) -> bool| -> Vec<String> {
        let bad = Head::ALL.iter().filter(|&&head| is_bad(head as usize));
        bad.map(|head| format!("{what}[{head}]")).collect()
    };
    let named = |is_bad: &dyn Fn(Scalar) -> bool, scalars: &[(Scalar, &str)]| -> Vec<String> {
        let bad = scalars.iter().filter(|(scalar, _)| is_bad(*scalar));
        bad.map(|(_, name)| name.to_string()).collect()
    };
    let is_set = |flag| reading.is_set(flag);
    let is_infinite = |scalar| !reading.get(scalar).is_finite();

    let mut outputs = heads("logp", &|head| reading.head(PerHead::BadLogProb, head) > 0.0);
    outputs.extend(named(&is_set, &[(Scalar::BadValue, "value")]));
    let (gate, sources) = if !outputs.is_empty() {
        (FinitenessGate::G1, outputs)
    } else if is_set(Scalar::BadLoss) {
        let terms = [
            (Scalar::LossPolicy, "loss_policy"),
            (Scalar::LossValue, "loss_value"),
            (Scalar::LossEntropy, "loss_entropy"),
            (Scalar::EntropyFloorPenalty, "entropy_floor_penalty"),
        ];
        (FinitenessGate::G2, named(&is_infinite, &terms))
    } else if is_set(Scalar::BadGradient) && !reading.has_overflowed() {
        let mut sources = heads("gradient", &|head| {
            !reading.head(PerHead::GradSquares, head).is_finite()
        });
        sources.extend(named(&is_infinite, &[(Scalar::ValueGradSquares, "gradient[value]")]));
        sources.push("gradient".into());
        (FinitenessGate::G3, sources)
    } else {
        return None;
    };
    Some(NonfiniteSource {
        epoch: Some(reading.epoch),
        minibatch: Some(reading.minibatch),
        gate,
        sources,
    })
}

/// Warns where recomputed log-probabilities differ by more than rounding.
pub(super) fn announce_drift(measured: &UpdateMeasurements, precision: Option<Kind>) {
    let Some(first) = measured.readings.first() else {
        return;
    };
    let mean = first.get(Scalar::Drift);
    let tolerable = if precision.is_some() { 2e-2 } else { 1e-4 };
    if mean > MAX_DRIFT {
        tracing::error!(
            mean,
            "rollout and update disagree about the same policy (RolloutUpdateMismatch): observations, masks, \
             probability floors or initial states differ; the update is skipped"
        );
    } else if mean > tolerable {
        tracing::warn!(mean, "recomputed log-probabilities differ from those of the rollout");
    }
}

/// Writes into `update` what its minibatches measured: means over the steps taken unless said otherwise; what is not finite
/// is left out. `learnable` are [`learnable_shares`], `max_grad_norm` is the limit that gradients were clipped to.
pub(super) fn report(
    update: &mut LearnerUpdate,
    measured: &UpdateMeasurements,
    learnable: &[f64; HEADS],
    max_grad_norm: Option<f64>,
) {
    let readings = Readings::new(&measured.readings);
    let mean = |scalar| readings.mean(scalar);
    let state = |tensor: usize, number: usize| finite(measured.states.get(tensor)?[number]);
    let [outlier, clip] = measured.observation_shares.map(|share| finite(share * 100.0));
    let grad_norm = readings.extreme(Scalar::GradNorm, f64::max);
    let head_entropy_avail = readings.means_by_head(PerHead::EntropyAvailable, PerHead::Available);
    let [h, c] = [0, 1];
    update.measured = UpdateMeasures {
        loss_total: mean(Scalar::LossTotal),
        loss_policy: mean(Scalar::LossPolicy),
        loss_value: mean(Scalar::LossValue),
        loss_entropy: mean(Scalar::LossEntropy),
        entropy_floor_penalty: mean(Scalar::EntropyFloorPenalty),
        approx_kl: mean(Scalar::Kl),
        clip_fraction: mean(Scalar::Clipped),
        ratio_max: readings.extreme(Scalar::RatioMax, f64::max),
        ratio_min: readings.extreme(Scalar::RatioMin, f64::min),
        logp_drift_mean: readings.all.first().and_then(|first| finite(first.get(Scalar::Drift))),
        entropy_mean: mean_of_learnable(&head_entropy_avail, learnable),
        grad_norm,
        grad_clip_ratio: grad_norm.zip(max_grad_norm).map(|(Num(norm), limit)| Num(norm / limit)),
        value_mean: mean(Scalar::ValueMean),
        value_std: deviation_of(mean(Scalar::ValueMean), mean(Scalar::ValueSquare)),
        h_rms: state(h, 0),
        c_rms: state(c, 0),
        c_env_rms_max: state(c, 1),
        obs_outlier_pct: outlier,
        obs_clip_pct: clip,
        head_clip_fraction: readings.means_by_head(PerHead::Clipped, PerHead::Causal),
        head_ratio_max: readings.by_head(PerHead::Causal, |readings, head| {
            let ratios = readings.map(|reading| reading.head(PerHead::RatioMax, head));
            ratios.reduce(f64::max).map(Num)
        }),
        head_entropy_avail,
        head_learnable_fraction: by_head(|head| Num(learnable[head])),
        head_grad_norm: readings.by_head(PerHead::GradTensors, |readings, head| {
            mean_of(readings.map(|reading| reading.head(PerHead::GradSquares, head).sqrt()))
        }),
    };
    update.head_grad_state = by_head(|head| readings.head_gradient(head));
    let is_bad = |numbers: &[f64; STATE_NUMBERS]| numbers[2] > 0.0;
    update.state_nonfinite = (!measured.states.is_empty()).then(|| measured.states.iter().any(is_bad));
}

/// The minibatches that were evaluated, and those of them that took a step.
struct Readings<'a> {
    all: &'a [Reading],
    taken: Vec<&'a Reading>,
}

impl<'a> Readings<'a> {
    fn new(all: &'a [Reading]) -> Self {
        let taken = all.iter().filter(|reading| !reading.is_set(Scalar::Suppressed));
        Self {
            all,
            taken: taken.collect(),
        }
    }

    fn mean(&self, scalar: Scalar) -> Option<Num> {
        mean_of(self.taken.iter().map(|reading| reading.get(scalar)))
    }

    /// Smallest or largest.
    fn extreme(&self, scalar: Scalar, choose: fn(f64, f64) -> f64) -> Option<Num> {
        let values = self.taken.iter().map(|reading| reading.get(scalar));
        values.reduce(choose).and_then(finite)
    }

    /// Over the steps in which the head counted.
    fn by_head(
        &self,
        counted_by: PerHead,
        reduce: impl Fn(&mut dyn Iterator<Item = &Reading>, usize) -> Option<Num>,
    ) -> ByHead {
        let reduced = |head: usize| {
            let counted = |reading: &&Reading| reading.head(counted_by, head) > 0.0;
            reduce(&mut self.taken.iter().copied().filter(counted), head)
        };
        let heads = Head::ALL.iter();
        heads
            .filter_map(|&head| Some((head.name().into(), reduced(head as usize)?)))
            .collect()
    }

    fn means_by_head(&self, per_head: PerHead, counted_by: PerHead) -> ByHead {
        self.by_head(counted_by, |readings, head| {
            mean_of(readings.map(|reading| reading.head(per_head, head)))
        })
    }

    fn head_gradient(&self, head: usize) -> HeadGradient {
        let any = |per_head| self.all.iter().any(|reading| reading.head(per_head, head) > 0.0);
        let is_finite = |reading: &Reading| reading.head(PerHead::GradSquares, head).is_finite();
        match () {
            () if !self.all.iter().all(is_finite) => HeadGradient::Nonfinite,
            () if !any(PerHead::Causal) => HeadGradient::NotLearnable,
            () if !any(PerHead::GradTensors) => HeadGradient::Missing,
            () => HeadGradient::Finite,
        }
    }
}

fn by_head<T>(value: impl Fn(usize) -> T) -> std::collections::BTreeMap<String, T> {
    let heads = Head::ALL.iter();
    heads.map(|&head| (head.name().into(), value(head as usize))).collect()
}

fn finite(value: f64) -> Option<Num> {
    value.is_finite().then_some(Num(value))
}

fn mean_of(values: impl Iterator<Item = f64>) -> Option<Num> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    finite(sum / f64::from(count))
}

/// Of a quantity with that mean and that mean square.
fn deviation_of(mean: Option<Num>, square: Option<Num>) -> Option<Num> {
    let (Num(mean), Num(square)) = mean.zip(square)?;
    Some(Num((square - mean * mean).max(0.0).sqrt()))
}

/// Over the heads that had something to learn.
fn mean_of_learnable(values: &ByHead, learnable: &[f64; HEADS]) -> Option<Num> {
    let heads = Head::ALL.iter().filter(|&&head| learnable[head as usize] > 0.0);
    let known: Vec<f64> = heads.filter_map(|head| Some(values.get(head.name())?.0)).collect();
    statistics::mean_and_std(&known).map(|(mean, _)| Num(mean))
}

#[cfg(test)]
mod tests;
