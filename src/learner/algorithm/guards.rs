//! What an update's flags mean: was it performed, skipped or undone, and because of what.

use tch::Kind;

use super::measurements::{PerHead, Reading, Scalar, UpdateMeasurements};
use super::update::MAX_DRIFT;
use crate::controller::Head;
use crate::telemetry::{FinitenessGate, LearnerUpdate, NonfiniteSource, Num, UpdateSkip};

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
