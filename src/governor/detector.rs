//! Is this validation loss still that of a network that learns? Pure and deliberately insensitive: a false alarm costs a
//! segment of experience (spec 02 §8.3).
//!
//! Only losses of healthy steps are remembered, so thresholds stay those of healthy training however long an anomaly
//! lasts.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::growth::PruneReason;
use crate::scenario::GovernorConfig;
use crate::telemetry::AlarmKind;

/// Losses of early steps that are needed to call one of them an outlier.
const MIN_WARM_UP: usize = 3;

/// A loss up to this is never suspicious in image tasks, nats.
const IMAGE_LOSS_LIMIT: f64 = 12.0;

/// What losses are compared with; fixed for the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    sensitivity: f64,
    multiplier: f64,
    absolute_limit: f64,
    window: usize,
    min_history: usize,
    min_panics: u32,
    arm: f64,
    band: f64,
    random_loss: f64,
}

impl Thresholds {
    /// `random_loss`: nats of guessing, `ln(classes)`.
    pub fn new(config: &GovernorConfig, random_loss: f64) -> Self {
        Self {
            sensitivity: config.sensitivity,
            multiplier: config.multiplier,
            absolute_limit: config.absolute_limit.unwrap_or(IMAGE_LOSS_LIMIT),
            window: config.history_window,
            min_history: config.min_history,
            min_panics: config.min_panics,
            arm: config.collapse.arm,
            band: config.collapse.band,
            random_loss,
        }
    }

    /// Anomalies in a row that make a panic.
    pub fn required(&self) -> u32 {
        self.min_panics
    }
}

/// Why seeds are pruned by the rollback that an alarm leads to.
pub const fn prune_reason(kind: AlarmKind) -> PruneReason {
    match kind {
        AlarmKind::NonFinite => PruneReason::GovernorNan,
        AlarmKind::ChanceCollapse => PruneReason::GovernorLobotomy,
        AlarmKind::Divergence => PruneReason::GovernorDivergence,
    }
}

/// A loss that is not healthy, and what it was compared with. Losses in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    pub kind: AlarmKind,
    pub loss: f64,
    /// `None` for a loss that is no number.
    pub threshold: Option<f64>,
    /// Mean and standard deviation of the healthy losses; `None` without any.
    pub healthy: Option<(f64, f64)>,
    /// Anomalies in a row, this one included.
    pub consecutive: u32,
}

/// What a step's loss amounts to (spec 02 §8.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Verdict {
    #[default]
    Healthy,
    /// An anomaly, not yet a panic.
    Suspect(Alarm),
    /// Not to be left like this.
    Panic(Alarm),
}

impl Verdict {
    pub const fn alarm(&self) -> Option<&Alarm> {
        match self {
            Self::Healthy => None,
            Self::Suspect(alarm) | Self::Panic(alarm) => Some(alarm),
        }
    }
}

/// The memory of healthy losses and the run of anomalies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossMonitor {
    /// Oldest first, at most the window.
    history: VecDeque<f64>,
    streak: u32,
}

impl LossMonitor {
    /// Takes the loss of the next step. The order of the rows is the spec's: the first that applies decides.
    pub fn judge(&mut self, loss: f64, thresholds: &Thresholds) -> Verdict {
        let Some(moments) = Moments::of(&self.history) else {
            return self.judge_without_history(loss, thresholds);
        };
        let alarm = |kind, threshold, consecutive| Alarm {
            kind,
            loss,
            threshold,
            healthy: Some((moments.mean, moments.std)),
            consecutive,
        };
        if !loss.is_finite() {
            return Verdict::Panic(alarm(AlarmKind::NonFinite, None, self.streak));
        }
        let is_warm = self.history.len() >= thresholds.min_history;
        let random = thresholds.random_loss;
        let was_armed = is_warm && moments.mean < thresholds.arm * random;
        if was_armed && (loss - random).abs() < thresholds.band * random {
            return Verdict::Panic(alarm(AlarmKind::ChanceCollapse, Some(random), self.streak));
        }
        if loss <= thresholds.absolute_limit {
            return self.healthy(loss, thresholds);
        }
        let outlier = if is_warm {
            let limit = moments.mean + thresholds.sensitivity * moments.std;
            (loss > limit && loss > thresholds.multiplier * moments.mean).then_some(limit)
        } else {
            let limit = thresholds.multiplier * self.median();
            (self.history.len() >= MIN_WARM_UP && loss > limit).then_some(limit)
        };
        match outlier {
            Some(limit) => {
                self.streak += 1;
                let alarm = alarm(AlarmKind::Divergence, Some(limit), self.streak);
                if self.streak >= thresholds.min_panics {
                    Verdict::Panic(alarm)
                } else {
                    Verdict::Suspect(alarm)
                }
            }
            None if is_warm => self.healthy(loss, thresholds),
            None => self.too_high_to_remember(),
        }
    }

    fn judge_without_history(&mut self, loss: f64, thresholds: &Thresholds) -> Verdict {
        if !loss.is_finite() {
            Verdict::Panic(Alarm {
                kind: AlarmKind::NonFinite,
                loss,
                threshold: None,
                healthy: None,
                consecutive: self.streak,
            })
        } else if loss <= thresholds.absolute_limit {
            self.healthy(loss, thresholds)
        } else {
            self.too_high_to_remember()
        }
    }

    fn healthy(&mut self, loss: f64, thresholds: &Thresholds) -> Verdict {
        self.streak = 0;
        self.history.push_back(loss);
        while self.history.len() > thresholds.window {
            self.history.pop_front();
        }
        Verdict::Healthy
    }

    /// An early loss that nothing is known against; remembered, one spike would blind σ for a whole window.
    fn too_high_to_remember(&mut self) -> Verdict {
        self.streak = 0;
        Verdict::Healthy
    }

    fn median(&self) -> f64 {
        let mut sorted: Vec<f64> = self.history.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        } else {
            sorted[middle]
        }
    }

    /// Healthy losses, oldest first.
    pub fn history(&self) -> &VecDeque<f64> {
        &self.history
    }

    /// As it was when `history` was copied; no anomaly is pending.
    pub fn restore(&mut self, history: VecDeque<f64>) {
        *self = Self { history, streak: 0 };
    }
}

/// Mean and population standard deviation.
struct Moments {
    mean: f64,
    std: f64,
}

impl Moments {
    fn of(values: &VecDeque<f64>) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        Some(Self {
            mean,
            std: variance.sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ten classes.
    const LN_10: f64 = std::f64::consts::LN_10;

    fn thresholds(random_loss: f64) -> Thresholds {
        Thresholds::new(&GovernorConfig::default(), random_loss)
    }

    /// A governor that has seen nothing but these losses. The collapse row is out of the way: guessing is far off.
    fn after(history: impl IntoIterator<Item = f64>) -> LossMonitor {
        LossMonitor {
            history: history.into_iter().collect(),
            streak: 0,
        }
    }

    fn words(monitor: &mut LossMonitor, random_loss: f64, losses: &[f64]) -> Vec<&'static str> {
        let word = |&loss: &f64| match monitor.judge(loss, &thresholds(random_loss)) {
            Verdict::Healthy => "healthy",
            Verdict::Suspect(_) => "suspect",
            Verdict::Panic(_) => "panic",
        };
        losses.iter().map(word).collect()
    }

    fn calm() -> LossMonitor {
        after([0.9, 1.1].repeat(10))
    }

    #[test]
    fn a_loss_must_pass_all_three_limits_to_be_an_anomaly() {
        assert_eq!(words(&mut calm(), LN_10, &[12.0]), ["healthy"]);
        assert_eq!(words(&mut calm(), LN_10, &[12.0001]), ["suspect"]);

        let spread = || after([5.0, 5.5, 6.0, 4.5, 5.0, 5.5, 6.0, 4.5, 5.0, 5.0]);
        assert_eq!(words(&mut spread(), LN_10, &[14.0]), ["healthy"]);
        let Verdict::Suspect(alarm) = spread().judge(15.7, &thresholds(LN_10)) else {
            panic!("15.7 is an anomaly");
        };
        let (mean, std) = alarm.healthy.unwrap();
        assert!((mean - 5.2).abs() < 1e-12 && (std - 0.509_901_95).abs() < 1e-8);
        assert!((alarm.threshold.unwrap() - (5.2 + 6.0 * 0.509_901_95)).abs() < 1e-7);
    }

    #[test]
    fn only_anomalies_in_a_row_make_a_panic_and_none_is_remembered() {
        let mut monitor = calm();

        let words = words(&mut monitor, LN_10, &[50.0, 50.0, 1.0, 50.0, 50.0, 50.0]);

        assert_eq!(words, ["suspect", "suspect", "healthy", "suspect", "suspect", "panic"]);
        assert_eq!(monitor.history.len(), 20);
        assert!(!monitor.history.contains(&50.0));
    }

    #[test]
    fn an_early_spike_is_judged_by_the_median_and_never_remembered() {
        let mut nine = after([1.0; 9]);
        assert_eq!(
            words(&mut nine, LN_10, &[1e6, 1e6, 1e6]),
            ["suspect", "suspect", "panic"]
        );
        assert_eq!(nine.history, [1.0; 9]);

        let mut two = after([1.0; 2]);
        assert_eq!(words(&mut two, LN_10, &[1e6]), ["healthy"]);
        assert_eq!(two.history, [1.0; 2]);

        let mut below_the_limit = after([1.0; 9]);
        assert_eq!(words(&mut below_the_limit, LN_10, &[11.9]), ["healthy"]);
        assert_eq!(below_the_limit.history.back(), Some(&11.9));

        let mut even = after([1.0, 5.0, 1.0, 5.0]);
        assert_eq!(
            words(&mut even, 1e9, &[12.5]),
            ["suspect"],
            "three times the median is 9"
        );
    }

    #[test]
    fn a_network_that_was_better_than_chance_and_guesses_again_panics_at_once() {
        assert_eq!(words(&mut after([0.8; 15]), LN_10, &[LN_10]), ["panic"]);
        assert_eq!(words(&mut after([2.0; 15]), LN_10, &[LN_10]), ["healthy"]);
        assert_eq!(words(&mut after([0.8; 15]), LN_10, &[2.1529]), ["healthy"]);
        assert_eq!(words(&mut after([0.8; 15]), LN_10, &[2.1530]), ["panic"]);
        assert_eq!(words(&mut after([0.8; 9]), LN_10, &[LN_10]), ["healthy"]);

        let vocabulary = f64::from(50_257).ln();
        assert_eq!(words(&mut after([4.0; 15]), vocabulary, &[10.2]), ["panic"]);
        assert_eq!(words(&mut after([4.0; 15]), vocabulary, &[10.0]), ["healthy"]);
    }

    #[test]
    fn a_loss_that_is_no_number_panics_at_any_time_and_leaves_the_streak() {
        assert_eq!(words(&mut LossMonitor::default(), LN_10, &[f64::NAN]), ["panic"]);
        assert_eq!(words(&mut LossMonitor::default(), LN_10, &[f64::INFINITY]), ["panic"]);

        let mut monitor = calm();
        assert_eq!(
            words(&mut monitor, LN_10, &[50.0, f64::NAN, 50.0, 50.0]),
            ["suspect", "panic", "suspect", "panic"]
        );
    }

    #[test]
    fn the_state_survives_a_checkpoint() {
        let mut monitor = calm();
        words(&mut monitor, LN_10, &[50.0]);

        let text = serde_json::to_string(&monitor).unwrap();

        assert_eq!(serde_json::from_str::<LossMonitor>(&text).unwrap(), monitor);
    }

    proptest! {
        /// Whatever comes, the memory holds finite losses only, no more than the window, and no run of anomalies
        /// shorter than required makes a divergence panic.
        #[test]
        fn the_memory_stays_healthy(losses in prop::collection::vec(prop_oneof![0.0..3.0f64, 0.0..1e9f64, Just(f64::NAN)], 0..80)) {
            let mut monitor = LossMonitor::default();
            let mut anomalies = 0;
            for loss in losses {
                let verdict = monitor.judge(loss, &thresholds(LN_10));
                prop_assert!(monitor.history.len() <= 20);
                prop_assert!(monitor.history.iter().all(|loss| loss.is_finite()));
                match verdict {
                    Verdict::Healthy => anomalies = 0,
                    Verdict::Suspect(_) => anomalies += 1,
                    Verdict::Panic(alarm) if alarm.kind == AlarmKind::Divergence => {
                        anomalies += 1;
                        prop_assert!(anomalies >= 3);
                    }
                    Verdict::Panic(_) => {}
                }
            }
        }
    }
}
