//! Measurements of each minibatch - scalars and vectors by head that stay on the device until the update's one read - and an
//! update's report of them: whether it was performed, skipped or undone, and why. The meaning of every number is in
//! `docs/reference/learner.md`.

use std::collections::BTreeMap;

use tch::{Kind, Tensor};

use super::loss::{Gates, Losses, Ratios, count_by_head, drift, mean, mean_by_head};
use super::optimizer::Gradients;
use super::sequences::SequenceBatch;
use crate::actions::{HEADS, Head};
use crate::policy::Evaluation;
use crate::telemetry::{
    Fallbacks, FinitenessGate, LearnerUpdate, NonfiniteSource, Num, UpdateMeasures, UpdateSkip, statistics,
};
use crate::torch::{HostSyncCounter, NoGrad, TorchError, catch, read_f64};

/// Mean difference of stored and recomputed log-probabilities beyond which rollout and update do not belong together.
pub(super) const MAX_DRIFT: f64 = 0.05;

/// An enum whose members index an array of measurements.
macro_rules! measurements {
    ($(#[$doc:meta])* $name:ident { $($member:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $($member,)* }

        impl $name {
            const ALL: &[Self] = &[$(Self::$member,)*];
        }
    };
}

measurements! {
    /// One number a minibatch.
    Scalar {
        LossTotal,
        LossPolicy,
        LossValue,
        LossEntropy,
        EntropyFloorPenalty,
        // Not a number without a teacher.
        TeacherKl,
        Kl,
        Clipped,
        RatioMax,
        RatioMin,
        Drift,
        GradNorm,
        // Not a number where the loss is not scaled.
        LossScale,
        // Flags, 0 or 1.
        KlStop,
        Mismatch,
        BadValue,
        BadLoss,
        BadGradient,
        // No step was taken.
        Suppressed,
    }
}

measurements! {
    /// One number a head and minibatch.
    PerHead {
        EntropyAvailable,
        Available,
        BadLogProb,
    }
}

const WIDTH: usize = Scalar::ALL.len() + PerHead::ALL.len() * HEADS;

/// All that came up in the step of one minibatch.
pub(super) struct MinibatchStep<'a> {
    pub minibatch: &'a SequenceBatch,
    pub evaluation: &'a Evaluation,
    pub ratios: &'a Ratios,
    pub clip_ratio: f64,
    /// Joint divergence from the policy that acted.
    pub kl: &'a Tensor,
    pub losses: &'a Losses,
    pub gradients: &'a Gradients,
    pub gates: &'a Gates,
    /// Factor of the loss.
    pub loss_scale: Option<&'a Tensor>,
    pub kl_stop: &'a Tensor,
    pub mismatch: &'a Tensor,
    pub suppressed: &'a Tensor,
}

impl MinibatchStep<'_> {
    /// Measures the step after it has been taken or suppressed: f64 on the device, all scalars, then all vectors by head.
    pub fn measure(&self) -> Tensor {
        let _no_grad = NoGrad::new();
        let scalars = Scalar::ALL.iter().map(|&scalar| self.scalar(scalar));
        let by_head = PerHead::ALL.iter().map(|&per_head| self.by_head(per_head));
        let numbers = scalars.chain(by_head);
        let flat = numbers.map(|tensor| tensor.detach().reshape([-1]).to_kind(Kind::Double));
        Tensor::cat(&flat.collect::<Vec<_>>(), 0)
    }

    fn scalar(&self, scalar: Scalar) -> Tensor {
        let SequenceBatch { actor, causal, .. } = self.minibatch;
        let joint = self.ratios.joint.detach();
        let unknown = || Tensor::full([1], f64::NAN, (Kind::Double, joint.device()));
        match scalar {
            Scalar::LossTotal => self.losses.total.shallow_clone(),
            Scalar::LossPolicy => self.losses.policy.shallow_clone(),
            Scalar::LossValue => self.losses.value.shallow_clone(),
            Scalar::LossEntropy => self.losses.entropy.shallow_clone(),
            Scalar::EntropyFloorPenalty => self.losses.floor_penalty.shallow_clone(),
            Scalar::TeacherKl => self.losses.teacher.as_ref().map_or_else(unknown, Tensor::shallow_clone),
            Scalar::Kl => self.kl.shallow_clone(),
            Scalar::Clipped => mean(&self.is_clipped(&joint), actor),
            // Excluded steps have ratio 1 by construction: they widen neither end.
            Scalar::RatioMax => joint.max(),
            Scalar::RatioMin => joint.min(),
            Scalar::Drift => mean(
                &drift(&self.evaluation.log_probs, &self.minibatch.old_log_probs),
                causal,
            ),
            Scalar::GradNorm => self.gradients.norm.shallow_clone(),
            Scalar::LossScale => self.loss_scale.map_or_else(unknown, Tensor::shallow_clone),
            Scalar::KlStop => self.kl_stop.shallow_clone(),
            Scalar::Mismatch => self.mismatch.shallow_clone(),
            Scalar::BadValue => self.gates.value.shallow_clone(),
            Scalar::BadLoss => self.gates.loss.shallow_clone(),
            Scalar::BadGradient => self.gates.gradient.shallow_clone(),
            Scalar::Suppressed => self.suppressed.shallow_clone(),
        }
    }

    fn by_head(&self, per_head: PerHead) -> Tensor {
        let available = &self.minibatch.available;
        match per_head {
            PerHead::EntropyAvailable => mean_by_head(&self.evaluation.entropy_available.detach(), available),
            PerHead::Available => count_by_head(available),
            PerHead::BadLogProb => self.gates.log_probs.shallow_clone(),
        }
    }

    /// 1 where a ratio is beyond the clip, else 0.
    fn is_clipped(&self, ratios: &Tensor) -> Tensor {
        (ratios - 1.0).abs().gt(self.clip_ratio).to_kind(Kind::Float)
    }
}

/// A minibatch of an update, still on the device.
pub(super) struct MeasuredStep {
    pub epoch: u32,
    pub minibatch: u32,
    pub numbers: Tensor,
}

/// A minibatch of an update on the host.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub epoch: u32,
    pub minibatch: u32,
    values: Vec<f64>,
}

impl Reading {
    pub fn get(&self, scalar: Scalar) -> f64 {
        self.values[scalar as usize]
    }

    pub fn is_set(&self, flag: Scalar) -> bool {
        self.get(flag) > 0.0
    }

    /// Returns whether scaled gradients weren't finite, so that the scale must shrink. Scales below 1 can't be the cause.
    pub fn has_overflowed(&self) -> bool {
        self.is_set(Scalar::BadGradient) && self.get(Scalar::LossScale) >= 1.0
    }

    pub fn head(&self, per_head: PerHead, head: usize) -> f64 {
        self.values[Scalar::ALL.len() + per_head as usize * HEADS + head]
    }
}

/// All that was measured in an update.
#[derive(Debug)]
pub(super) struct UpdateMeasurements {
    /// By minibatch, in order.
    pub readings: Vec<Reading>,
    /// Squared norm of the parameters.
    parameter_squares: f64,
    /// Fallbacks of its minibatches.
    pub fallbacks: Fallbacks,
}

impl UpdateMeasurements {
    /// The parameters are not finite any more (gate G4): they are to be restored.
    pub fn are_parameters_spoilt(&self) -> bool {
        !self.parameter_squares.is_finite()
    }
}

/// Reads all minibatches of an update, and what was measured of the whole of it, at once. `squares` is that of
/// [`PolicyOptimizer::squares`](super::optimizer::PolicyOptimizer::squares).
pub(super) fn read_all(
    steps: &[MeasuredStep],
    squares: &Tensor,
    reads: &HostSyncCounter,
) -> Result<UpdateMeasurements, TorchError> {
    let packed = catch(|| {
        let parts = steps.iter().map(|step| &step.numbers).chain([squares]);
        let flat = parts.map(|tensor| tensor.reshape([-1]).to_kind(Kind::Double));
        Tensor::cat(&flat.collect::<Vec<_>>(), 0)
    })?;
    let values = read_f64(&packed, reads)?;
    let (readings, rest) = values.split_at(steps.len() * WIDTH);
    let reading = |(step, values): (&MeasuredStep, &[f64])| Reading {
        epoch: step.epoch,
        minibatch: step.minibatch,
        values: values.to_vec(),
    };
    Ok(UpdateMeasurements {
        readings: steps.iter().zip(readings.chunks(WIDTH)).map(reading).collect(),
        parameter_squares: rest[0],
        fallbacks: Fallbacks::default(),
    })
}

/// Writes into `update` what its measurements say about it.
pub(super) fn judge(update: &mut LearnerUpdate, measured: &UpdateMeasurements) {
    let readings = || measured.readings.iter();
    let stop = readings().find(|reading| reading.is_set(Scalar::KlStop));
    let has_mismatch = readings().any(|reading| reading.is_set(Scalar::Mismatch));
    // Minibatches after a stop or a mismatch would not have stepped anyway.
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

/// Source at a gate that concerns the whole update.
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
    let is_bad = |head: &&Head| reading.head(PerHead::BadLogProb, **head as usize) > 0.0;
    let bad_heads = Head::ALL.iter().filter(is_bad);
    let bad_value = reading.is_set(Scalar::BadValue).then(|| "value".to_owned());
    let outputs: Vec<String> = bad_heads.map(|head| format!("logp[{head}]")).chain(bad_value).collect();
    let (gate, sources) = if !outputs.is_empty() {
        (FinitenessGate::G1, outputs)
    } else if reading.is_set(Scalar::BadLoss) {
        let terms = [
            (Scalar::LossPolicy, "loss_policy"),
            (Scalar::LossValue, "loss_value"),
            (Scalar::LossEntropy, "loss_entropy"),
            (Scalar::EntropyFloorPenalty, "entropy_floor_penalty"),
        ];
        let infinite = terms.iter().filter(|(term, _)| !reading.get(*term).is_finite());
        (
            FinitenessGate::G2,
            infinite.map(|(_, name)| (*name).to_owned()).collect(),
        )
    } else if reading.is_set(Scalar::BadGradient) && !reading.has_overflowed() {
        (FinitenessGate::G3, vec!["gradient".to_owned()])
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
/// is left out. `learnable`: the heads that had something to learn.
pub(super) fn report(update: &mut LearnerUpdate, measured: &UpdateMeasurements, learnable: &[bool; HEADS]) {
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
fn mean_of_learnable(values: &BTreeMap<String, Num>, learnable: &[bool; HEADS]) -> Option<Num> {
    let heads = Head::ALL.iter().filter(|&&head| learnable[head as usize]);
    let known: Vec<f64> = heads.filter_map(|head| Some(values.get(head.name())?.0)).collect();
    statistics::mean_and_std(&known).map(|(mean, _)| Num(mean))
}

#[cfg(test)]
mod tests;
