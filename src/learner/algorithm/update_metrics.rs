//! The minibatches of an update reduced to what telemetry tells of it: means over the steps taken unless said otherwise;
//! what is not finite is left out.

use super::measurements::{PerHead, Reading, Scalar, UpdateMeasurements};
use super::recurrent::{any_infinite, any_nan, recurrent_health};
use crate::controller::{HEADS, Head};
use crate::telemetry::{
    ByHead, CriticQuality, HeadGradient, LearnerUpdate, Num, ObservationHealth, PolicyEntropy, PolicyGradients,
    TrustRegion, UpdateLosses, statistics,
};

/// Writes into `update` what its minibatches measured. `learnable` are the shares of valid steps in which each head had
/// something to learn, `max_grad_norm` is the limit that gradients were clipped to.
pub(super) fn report(
    update: &mut LearnerUpdate,
    measured: &UpdateMeasurements,
    learnable: &[f64; HEADS],
    max_grad_norm: Option<f64>,
) {
    let readings = Readings::new(measured);
    update.losses = losses(&readings);
    update.trust = trust_region(&readings);
    update.entropy = entropy(&readings, learnable);
    update.gradients = gradients(&readings, max_grad_norm);
    update.gradients.param_update_ratio = finite((measured.change_squares / measured.parameter_squares).sqrt());
    update.head_grad_state = Head::ALL
        .iter()
        .map(|&head| (head.name().into(), readings.head_gradient(head as usize)))
        .collect();
    let value_mean = readings.average(Scalar::ValueMean);
    update.critic = CriticQuality {
        value_mean,
        value_std: deviation(value_mean, readings.average(Scalar::ValueSquare)),
        value_min: readings.extreme(Scalar::ValueMin, f64::min),
        value_max: readings.extreme(Scalar::ValueMax, f64::max),
        ..std::mem::take(&mut update.critic)
    };
    update.recurrent = recurrent_health(&measured.states, &measured.rollout_states);
    update.update_has_nan = any_nan(&measured.states);
    update.update_has_inf = any_infinite(&measured.states);
    update.rollout_has_nan = any_nan(&measured.rollout_states);
    update.rollout_has_inf = any_infinite(&measured.rollout_states);
    let [outlier, near_clip, clip] = measured.observation_shares.map(|share| finite(share * 100.0));
    update.observation = ObservationHealth {
        obs_outlier_pct: outlier,
        obs_near_clip_pct: near_clip,
        obs_clip_pct: clip,
        obs_norm_drift: None,
    };
    let [nan, infinite] = measured.observation_faults.map(|elements| Some(elements as u64));
    (update.obs_nan_count, update.obs_inf_count) = (nan, infinite);
    update.learner_step_us_p50 = statistics::median(&measured.step_us).map(Num);
}

/// The minibatches that were evaluated, and those of them that took a step.
struct Readings<'a> {
    all: &'a [Reading],
    taken: Vec<&'a Reading>,
}

impl<'a> Readings<'a> {
    fn new(measured: &'a UpdateMeasurements) -> Self {
        let all = &measured.readings;
        let taken = all.iter().filter(|reading| !reading.is_set(Scalar::Suppressed));
        Self {
            all,
            taken: taken.collect(),
        }
    }

    fn average(&self, scalar: Scalar) -> Option<Num> {
        mean(self.taken.iter().map(|reading| reading.get(scalar)))
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

    fn averages(&self, per_head: PerHead, counted_by: PerHead) -> ByHead {
        self.by_head(counted_by, |readings, head| {
            mean(readings.map(|reading| reading.head(per_head, head)))
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

fn losses(readings: &Readings) -> UpdateLosses {
    UpdateLosses {
        loss_total: readings.average(Scalar::LossTotal),
        loss_policy: readings.average(Scalar::LossPolicy),
        loss_value: readings.average(Scalar::LossValue),
        loss_entropy: readings.average(Scalar::LossEntropy),
        entropy_floor_penalty: readings.average(Scalar::EntropyFloorPenalty),
    }
}

fn trust_region(readings: &Readings) -> TrustRegion {
    let first = |scalar| finite(readings.all.first()?.get(scalar));
    let (positive, negative) = (
        readings.average(Scalar::ClipPositive),
        readings.average(Scalar::ClipNegative),
    );
    let ratio_mean = readings.average(Scalar::RatioMean);
    TrustRegion {
        approx_kl: readings.average(Scalar::Kl),
        approx_kl_last: readings.all.last().and_then(|last| finite(last.get(Scalar::Kl))),
        clip_fraction: positive
            .zip(negative)
            .map(|(Num(positive), Num(negative))| Num(positive + negative)),
        clip_fraction_pos: positive,
        clip_fraction_neg: negative,
        ratio_mean,
        ratio_std: deviation(ratio_mean, readings.average(Scalar::RatioSquare)),
        ratio_max: readings.extreme(Scalar::RatioMax, f64::max),
        ratio_min: readings.extreme(Scalar::RatioMin, f64::min),
        logp_drift_mean: first(Scalar::DriftMean),
        logp_drift_max: first(Scalar::DriftMax),
        logp_min: readings.extreme(Scalar::LogProbMin, f64::min),
        logp_max: readings.extreme(Scalar::LogProbMax, f64::max),
        head_kl: readings.averages(PerHead::Kl, PerHead::Causal),
        head_clip_fraction: readings.averages(PerHead::Clipped, PerHead::Causal),
        head_ratio_max: readings.by_head(PerHead::Causal, |readings, head| {
            let ratios = readings.map(|reading| reading.head(PerHead::RatioMax, head));
            ratios.reduce(f64::max).map(Num)
        }),
    }
}

fn entropy(readings: &Readings, learnable: &[f64; HEADS]) -> PolicyEntropy {
    let available = readings.averages(PerHead::EntropyAvailable, PerHead::Available);
    let counted: Vec<f64> = Head::ALL
        .iter()
        .filter(|&&head| learnable[head as usize] > 0.0)
        .filter_map(|head| Some(available.get(head.name())?.0))
        .collect();
    PolicyEntropy {
        entropy: readings.average(Scalar::LossEntropy).map(|Num(loss)| Num(-loss)),
        entropy_mean: statistics::mean_and_std(&counted).map(|(mean, _)| Num(mean)),
        head_entropy: readings.averages(PerHead::Entropy, PerHead::Causal),
        head_entropy_avail: available,
        head_learnable_fraction: Head::ALL
            .iter()
            .map(|&head| (head.name().into(), Num(learnable[head as usize])))
            .collect(),
    }
}

fn gradients(readings: &Readings, max_grad_norm: Option<f64>) -> PolicyGradients {
    let taken = || readings.taken.iter();
    let grad_norm = readings.extreme(Scalar::GradNorm, f64::max);
    let clipped = taken().map(|reading| {
        let is_clipped = max_grad_norm.is_some_and(|limit| reading.get(Scalar::GradNorm) > limit);
        f64::from(u8::from(is_clipped))
    });
    let head_grad_norm = readings.by_head(PerHead::GradTensors, |readings, head| {
        mean(readings.map(|reading| reading.head(PerHead::GradSquares, head).sqrt()))
    });
    PolicyGradients {
        grad_norm,
        grad_clip_ratio: grad_norm.zip(max_grad_norm).map(|(Num(norm), limit)| Num(norm / limit)),
        grad_clip_fraction: mean(clipped),
        value_grad_norm: mean(taken().map(|reading| reading.get(Scalar::ValueGradSquares).sqrt())),
        grad_cv: coefficient_of_variation(&head_grad_norm),
        param_update_ratio: None,
        head_grad_norm,
    }
}

fn finite(value: f64) -> Option<Num> {
    value.is_finite().then_some(Num(value))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<Num> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    finite(sum / f64::from(count))
}

/// Of a quantity with that mean and that mean square.
fn deviation(mean: Option<Num>, square: Option<Num>) -> Option<Num> {
    let (Num(mean), Num(square)) = mean.zip(square)?;
    Some(Num((square - mean * mean).max(0.0).sqrt()))
}

/// Sample deviation over mean, summed in the order of the heads.
fn coefficient_of_variation(norms: &ByHead) -> Option<Num> {
    let known = || Head::ALL.iter().filter_map(|head| Some(norms.get(head.name())?.0));
    let Num(average) = mean(known())?;
    let squares: f64 = known().map(|norm| (norm - average).powi(2)).sum();
    finite((squares / (norms.len() as f64 - 1.0)).sqrt() / average)
}
