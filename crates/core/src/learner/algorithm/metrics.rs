//! What an update reports: its rollout, measured before anything moves; whether it was performed, skipped or undone,
//! and why; and what its minibatches measured. The meaning of every number is in `docs/reference/learner.md`.

use std::collections::BTreeMap;

use tch::Kind;

use super::advantages::StepTargets;
use super::buffer::RolloutBuffer;
use super::measurements::{PerHead, Reading, Scalar, UpdateMeasurements};
use super::update::MAX_DRIFT;
use crate::actions::{HEADS, Head};
use crate::telemetry::{
    FinitenessGate, LearnerUpdate, NonfiniteSource, Num, OffPolicy, RolloutData, UpdateMeasures, UpdateSkip, statistics,
};

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
    let (returns, values) = (column(|target| target.ret), column(|target| target.value));
    let (return_mean, return_std) = statistics::mean_and_std(&returns).unwrap_or_default();
    let advantages = statistics::mean_and_std(free);
    RolloutData {
        steps_valid: returns.len() as u64,
        steps_actor: free.len() as u64,
        explained_variance: Num(explained_variance(&returns, &values)),
        explained_variance_free: explained_variance_of_choices(buffer, targets),
        ev_low_return_variance: return_std.powi(2) < LOW_VARIANCE,
        return_mean: Num(return_mean),
        return_std: Num(return_std),
        reward_scale: Num(scale),
        adv_pre_mean: advantages.map(|(mean, _)| Num(mean)),
        adv_pre_std: advantages.map(|(_, deviation)| Num(deviation)),
        off_policy: None,
    }
}

/// How far the steps that the actor learns from are from the policy before the update.
pub(super) fn off_policy(buffer: &RolloutBuffer) -> OffPolicy {
    let records = buffer.valid_steps().map(|(env, step)| &buffer.rows[env].steps[step]);
    let ratios = records
        .filter(|record| record.is_free())
        .map(|record| record.log_ratio().exp());
    let (count, sum, squares) = ratios.fold((0.0, 0.0, 0.0), |(count, sum, squares), ratio| {
        (count + 1.0, sum + ratio, squares + ratio * ratio)
    });
    OffPolicy {
        behaviour_ratio_mean: Num(sum / count),
        effective_share: Num(sum * sum / (count * squares)),
        stale_segments: buffer.segments().filter(|segment| !segment.valid).count() as u64,
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
/// is left out. `learnable` are [`learnable_shares`].
pub(super) fn report(update: &mut LearnerUpdate, measured: &UpdateMeasurements, learnable: &[f64; HEADS]) {
    let taken = || {
        measured
            .readings
            .iter()
            .filter(|reading| !reading.is_set(Scalar::Suppressed))
    };
    let mean = |scalar| mean_of(taken().map(|reading| reading.get(scalar)));
    let extreme =
        |scalar, of: fn(f64, f64) -> f64| taken().map(|reading| reading.get(scalar)).reduce(of).and_then(finite);
    let first = measured.readings.first();
    let entropy = |&head: &Head| -> Option<(String, Num)> {
        let counted = taken().filter(|reading| reading.head(PerHead::Available, head as usize) > 0.0);
        let mean = mean_of(counted.map(|reading| reading.head(PerHead::EntropyAvailable, head as usize)))?;
        Some((head.name().into(), mean))
    };
    let head_entropy_avail = Head::ALL.iter().filter_map(entropy).collect();
    update.measured = UpdateMeasures {
        loss_total: mean(Scalar::LossTotal),
        loss_policy: mean(Scalar::LossPolicy),
        loss_value: mean(Scalar::LossValue),
        loss_entropy: mean(Scalar::LossEntropy),
        entropy_floor_penalty: mean(Scalar::EntropyFloorPenalty),
        teacher_kl: mean(Scalar::TeacherKl),
        approx_kl: mean(Scalar::Kl),
        clip_fraction: mean(Scalar::Clipped),
        ratio_max: extreme(Scalar::RatioMax, f64::max),
        ratio_min: extreme(Scalar::RatioMin, f64::min),
        logp_drift_mean: first.and_then(|first| finite(first.get(Scalar::Drift))),
        entropy_mean: mean_of_learnable(&head_entropy_avail, learnable),
        grad_norm: extreme(Scalar::GradNorm, f64::max),
        head_entropy_avail,
    };
}

fn finite(value: f64) -> Option<Num> {
    value.is_finite().then_some(Num(value))
}

fn mean_of(values: impl Iterator<Item = f64>) -> Option<Num> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    finite(sum / f64::from(count))
}

/// Over the heads that had something to learn.
fn mean_of_learnable(values: &BTreeMap<String, Num>, learnable: &[f64; HEADS]) -> Option<Num> {
    let heads = Head::ALL.iter().filter(|&&head| learnable[head as usize] > 0.0);
    let known: Vec<f64> = heads.filter_map(|head| Some(values.get(head.name())?.0)).collect();
    statistics::mean_and_std(&known).map(|(mean, _)| Num(mean))
}

#[cfg(test)]
mod tests;
