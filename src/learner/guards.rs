//! What an update's flags mean: was it performed, skipped or spoilt, and by what (spec 04 §7.5, §7.6, §10).

use tch::Kind;

use super::metrics::{Gate, NonfiniteSkip, SkipReason};
use super::readings::{PerHead, Reading, Scalar};
use super::update::{MAX_DRIFT, Measured};
use crate::controller::Head;

/// Outcome of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// At least one step was taken and the parameters are finite.
    Performed,
    /// No step was taken.
    Skipped(SkipReason),
    /// The parameters are not finite (gate G4).
    Spoilt,
}

impl Verdict {
    pub const fn reason(self) -> Option<SkipReason> {
        match self {
            Self::Performed => None,
            Self::Skipped(reason) => Some(reason),
            Self::Spoilt => Some(SkipReason::Nonfinite),
        }
    }
}

#[derive(Debug)]
pub(super) struct Findings {
    pub verdict: Verdict,
    pub steps_taken: u32,
    pub early_stop_epoch: Option<u32>,
    pub nonfinite_skips: u32,
    pub sources: Vec<NonfiniteSkip>,
}

pub(super) fn findings(measured: &Measured) -> Findings {
    let readings = || measured.minibatches.iter();
    let steps_taken = readings()
        .filter(|(_, reading)| !reading.is_set(Scalar::Suppressed))
        .count() as u32;
    let stop = readings().find(|(_, reading)| reading.is_set(Scalar::KlStop));
    let has_mismatch = readings().any(|(_, reading)| reading.is_set(Scalar::Mismatch));
    // What follows a stop or a mismatch would not have stepped anyway.
    let open = readings().filter(|(_, reading)| !reading.is_set(Scalar::KlStop) && !reading.is_set(Scalar::Mismatch));
    let mut sources: Vec<NonfiniteSkip> = open
        .filter_map(|&(place, ref reading)| nonfinite_skip(place, reading))
        .collect();
    let nonfinite_skips = sources.len() as u32;
    let is_spoilt = !(measured.parameter_squares.is_finite() && measured.change_squares.is_finite());
    if is_spoilt {
        sources.push(NonfiniteSkip {
            place: None,
            gate: Gate::G4,
            sources: vec!["parameters".into()],
        });
    }
    let verdict = if is_spoilt {
        Verdict::Spoilt
    } else if steps_taken > 0 {
        Verdict::Performed
    } else if has_mismatch {
        Verdict::Skipped(SkipReason::Mismatch)
    } else if nonfinite_skips > 0 {
        Verdict::Skipped(SkipReason::Nonfinite)
    } else if stop.is_some() {
        Verdict::Skipped(SkipReason::Kl)
    } else {
        Verdict::Skipped(SkipReason::Empty)
    };
    Findings {
        verdict,
        steps_taken,
        early_stop_epoch: stop.map(|((epoch, _), _)| *epoch),
        nonfinite_skips,
        sources,
    }
}

/// The first gate that a minibatch did not pass, and what was not finite there.
fn nonfinite_skip(place: (u32, u32), reading: &Reading) -> Option<NonfiniteSkip> {
    let mut forward: Vec<String> = Head::ALL
        .iter()
        .filter(|&&head| reading.head(PerHead::BadLogProb, head as usize) > 0.0)
        .map(|head| format!("logp[{head}]"))
        .collect();
    let named = [(Scalar::BadValue, "value"), (Scalar::BadContribution, "contributions")];
    forward.extend(
        named
            .iter()
            .filter(|(flag, _)| reading.is_set(*flag))
            .map(|(_, name)| (*name).into()),
    );
    let (gate, sources) = if !forward.is_empty() {
        (Gate::G1, forward)
    } else if reading.is_set(Scalar::BadLoss) {
        let terms = [
            (Scalar::LossPolicy, "loss_policy"),
            (Scalar::LossValue, "loss_value"),
            (Scalar::LossEntropy, "loss_entropy"),
            (Scalar::EntropyFloorPenalty, "entropy_floor_penalty"),
        ];
        let bad = terms.iter().filter(|(term, _)| !reading.get(*term).is_finite());
        (Gate::G2, bad.map(|(_, name)| (*name).into()).collect())
    } else if reading.is_set(Scalar::BadGradient) {
        let mut sources: Vec<String> = Head::ALL
            .iter()
            .filter(|&&head| !reading.head(PerHead::GradSquares, head as usize).is_finite())
            .map(|head| format!("gradient[{head}]"))
            .collect();
        if !reading.get(Scalar::ValueGradSquares).is_finite() {
            sources.push("gradient[value]".into());
        }
        sources.push("gradient".into());
        (Gate::G3, sources)
    } else {
        return None;
    };
    Some(NonfiniteSkip {
        place: Some(place),
        gate,
        sources,
    })
}

/// Warns where recomputed log-probabilities differ by more than rounding (spec 04 §7.6).
pub(super) fn announce_drift(measured: &Measured, precision: Option<Kind>) {
    let Some((_, first)) = measured.minibatches.first() else {
        return;
    };
    let (mean, max) = (first.get(Scalar::DriftMean), first.get(Scalar::DriftMax));
    let tolerable = if precision.is_some() { 2e-2 } else { 1e-4 };
    if mean > MAX_DRIFT {
        tracing::error!(
            mean,
            max,
            "rollout and update disagree about the same policy (RolloutUpdateMismatch): observations, masks, \
             probability floors or initial states differ; the update is skipped"
        );
    } else if mean > tolerable {
        tracing::warn!(
            mean,
            max,
            "recomputed log-probabilities differ from those of the rollout"
        );
    }
}
