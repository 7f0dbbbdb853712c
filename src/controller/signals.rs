//! What an env's training looks like to a controller: deltas, plateau, stabilisation (spec 03 §5).
//!
//! In: one step's losses and accuracies. Out: [`TrainingSignals`]. One tracker per env, new for every episode,
//! updated once per step before masks are built.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::scenario::TrackerConfig;

/// Losses and accuracies that an observation shows.
pub const SHOWN_HISTORY: usize = 5;
/// What a loss that is not finite is counted as.
pub const NONFINITE_LOSS: f64 = 1.0e6;
/// A previous loss at or below this says nothing about relative improvement.
const SMALLEST_LOSS: f64 = 1e-8;

/// What one step measured: losses in nats, accuracies in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepMetrics {
    /// 1-based.
    pub step: u32,
    pub train_loss: f64,
    pub train_accuracy: f64,
    pub val_loss: f64,
    pub val_accuracy: f64,
}

/// An accuracy outside 0..=100: the producer mixes up units.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("step {step} reports an accuracy of {accuracy}; accuracies are percent, 0 to 100")]
pub struct AccuracyOutOfRange {
    pub step: u32,
    pub accuracy: f64,
}

/// One step of an env as controllers see it. Losses in nats, accuracies in percent, all finite.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrainingSignals {
    pub step: u32,
    pub train_loss: f64,
    pub train_accuracy: f64,
    pub val_loss: f64,
    pub val_accuracy: f64,
    /// Positive = better; 0 on the first step.
    pub accuracy_delta: f64,
    /// Positive = better; 0 on the first step.
    pub loss_delta: f64,
    /// Steps in a row without a gain worth the name.
    pub plateau_epochs: u32,
    /// Stable steps in a row; stays once the host is stabilised.
    pub stable_count: u32,
    pub host_stabilized: bool,
    /// The host stabilised in this very step.
    pub just_stabilized: bool,
    pub best_val_accuracy: f64,
    pub best_val_loss: f64,
    /// Over the remembered steps only.
    pub best_val_loss_window: f64,
    /// A loss or accuracy was not finite and has been replaced.
    pub nonfinite: bool,
    /// An accuracy in (0, 1] after the first step: perhaps a fraction, where percent is expected.
    pub looks_like_fraction: bool,
    /// Oldest first, at most [`SHOWN_HISTORY`].
    pub loss_history: SmallVec<[f64; SHOWN_HISTORY]>,
    /// Oldest first, at most [`SHOWN_HISTORY`].
    pub accuracy_history: SmallVec<[f64; SHOWN_HISTORY]>,
}

/// The memory behind [`TrainingSignals`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalTracker {
    config: TrackerConfig,
    /// Validation loss and accuracy of the step before.
    previous: Option<(f64, f64)>,
    best_accuracy: f64,
    best_loss: Option<f64>,
    plateau: u32,
    stable_count: u32,
    stabilized: bool,
    losses: VecDeque<f64>,
    accuracies: VecDeque<f64>,
}

impl SignalTracker {
    pub fn new(config: TrackerConfig) -> Self {
        Self {
            config,
            previous: None,
            best_accuracy: 0.0,
            best_loss: None,
            plateau: 0,
            stable_count: 0,
            stabilized: config.stabilization_epochs == 0,
            losses: VecDeque::with_capacity(config.history_window),
            accuracies: VecDeque::with_capacity(config.history_window),
        }
    }

    /// Takes in one step.
    ///
    /// # Errors
    /// A finite accuracy outside 0..=100; the tracker is then unchanged.
    pub fn update(&mut self, metrics: StepMetrics) -> Result<TrainingSignals, AccuracyOutOfRange> {
        let mut nonfinite = false;
        let mut or_else = |value: f64, replacement: f64| {
            nonfinite |= !value.is_finite();
            if value.is_finite() { value } else { replacement }
        };
        let train_loss = or_else(metrics.train_loss, NONFINITE_LOSS);
        let val_loss = or_else(metrics.val_loss, NONFINITE_LOSS);
        let train_accuracy = or_else(metrics.train_accuracy, 0.0);
        let val_accuracy = or_else(metrics.val_accuracy, 0.0);
        let step = metrics.step;
        for accuracy in [train_accuracy, val_accuracy] {
            if !(0.0..=100.0).contains(&accuracy) {
                return Err(AccuracyOutOfRange { step, accuracy });
            }
        }

        let (loss_delta, accuracy_delta) = self.previous.map_or((0.0, 0.0), |(loss, accuracy)| {
            (loss - val_loss, val_accuracy - accuracy)
        });
        self.track_plateau(accuracy_delta);
        let just_stabilized = self.track_stabilisation(loss_delta, nonfinite);
        let best_loss = self.best_loss.map_or(val_loss, |best| best.min(val_loss));
        self.best_loss = Some(best_loss);
        self.best_accuracy = self.best_accuracy.max(val_accuracy);
        self.remember(val_loss, val_accuracy);
        self.previous = Some((val_loss, val_accuracy));

        Ok(TrainingSignals {
            step,
            train_loss,
            train_accuracy,
            val_loss,
            val_accuracy,
            accuracy_delta,
            loss_delta,
            plateau_epochs: self.plateau,
            stable_count: self.stable_count,
            host_stabilized: self.stabilized,
            just_stabilized,
            best_val_accuracy: self.best_accuracy,
            best_val_loss: best_loss,
            best_val_loss_window: self.losses.iter().copied().fold(val_loss, f64::min),
            nonfinite,
            looks_like_fraction: step > 1 && val_accuracy > 0.0 && val_accuracy <= 1.0,
            loss_history: newest(&self.losses, SHOWN_HISTORY).collect(),
            accuracy_history: newest(&self.accuracies, SHOWN_HISTORY).collect(),
        })
    }

    /// The lowest of the last `steps` validation accuracies; `None` for no steps or no history.
    pub fn stable_val_accuracy(&self, steps: usize) -> Option<f64> {
        newest(&self.accuracies, steps).reduce(f64::min)
    }

    fn track_plateau(&mut self, accuracy_delta: f64) {
        if self.previous.is_none() {
            return;
        }
        if accuracy_delta < self.config.plateau_threshold_pct {
            self.plateau += 1;
        } else {
            self.plateau = 0;
        }
    }

    /// Returns whether the host stabilised just now; once stabilised, it stays so.
    fn track_stabilisation(&mut self, loss_delta: f64, nonfinite: bool) -> bool {
        let Some((previous_loss, _)) = self.previous else {
            return false;
        };
        if self.stabilized || previous_loss <= SMALLEST_LOSS {
            return false;
        }
        let improvement = loss_delta / previous_loss;
        let is_stable = !nonfinite
            && improvement > -self.config.regression_threshold
            && improvement < self.config.stabilization_threshold;
        self.stable_count = if is_stable { self.stable_count + 1 } else { 0 };
        self.stabilized = self.stable_count >= self.config.stabilization_epochs;
        self.stabilized
    }

    fn remember(&mut self, loss: f64, accuracy: f64) {
        for (history, value) in [(&mut self.losses, loss), (&mut self.accuracies, accuracy)] {
            if history.len() >= self.config.history_window {
                history.pop_front();
            }
            history.push_back(value);
        }
    }
}

/// The last `count` values, oldest first.
fn newest(history: &VecDeque<f64>, count: usize) -> impl Iterator<Item = f64> + '_ {
    history.iter().skip(history.len().saturating_sub(count)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(step: u32, val_loss: f64, val_accuracy: f64) -> StepMetrics {
        StepMetrics {
            step,
            train_loss: val_loss,
            train_accuracy: val_accuracy.clamp(0.0, 100.0),
            val_loss,
            val_accuracy,
        }
    }

    fn run(losses: &[f64], accuracies: &[f64]) -> Vec<TrainingSignals> {
        let mut tracker = SignalTracker::new(TrackerConfig::default());
        (1..)
            .zip(losses.iter().zip(accuracies))
            .map(|(step, (&loss, &accuracy))| tracker.update(metrics(step, loss, accuracy)).unwrap())
            .collect()
    }

    fn latches(signals: &[TrainingSignals]) -> Vec<(u32, bool, u32)> {
        signals
            .iter()
            .map(|signals| (signals.stable_count, signals.host_stabilized, signals.plateau_epochs))
            .collect()
    }

    #[test]
    fn three_stable_steps_latch_and_a_later_jump_does_not_unlatch() {
        let signals = run(
            &[2.3, 1.8, 1.77, 1.75, 1.74, 1.5],
            &[30.0, 40.0, 40.4, 41.0, 41.2, 41.3],
        );
        assert_eq!(
            latches(&signals),
            [
                (0, false, 0),
                (0, false, 0),
                (1, false, 1),
                (2, false, 0),
                (3, true, 1),
                (3, true, 2)
            ]
        );
        let announced: Vec<bool> = signals.iter().map(|s| s.just_stabilized).collect();
        assert_eq!(announced, [false, false, false, false, true, false]);
    }

    #[test]
    fn regressions_and_recoveries_restart_the_count() {
        let signals = run(&[2.0, 2.0, 2.11, 2.0, 2.0, 2.0], &[30.0, 30.0, 30.0, 30.5, 30.6, 30.7]);
        assert_eq!(
            latches(&signals),
            [
                (0, false, 0),
                (1, false, 1),
                (0, false, 2),
                (0, false, 0),
                (1, false, 1),
                (2, false, 2)
            ]
        );
    }

    #[test]
    fn a_loss_that_is_not_finite_is_replaced_and_flagged() {
        let signals = run(&[2.0, 2.0, f64::NAN], &[30.0, 30.0, 30.0]);
        let last = &signals[2];
        assert_eq!(last.val_loss, 1.0e6);
        assert!(last.nonfinite);
        assert_eq!(last.stable_count, 0);
    }

    #[test]
    fn the_first_step_has_no_deltas_and_the_second_counts_gains_as_positive() {
        let signals = run(&[2.5, 2.0], &[30.0, 40.0]);
        assert_eq!((signals[0].loss_delta, signals[0].accuracy_delta), (0.0, 0.0));
        assert_eq!(signals[1].loss_delta, 0.5);
        assert_eq!(signals[1].accuracy_delta, 10.0);
    }

    #[test]
    fn histories_show_five_steps_and_bests_cover_episode_and_window() {
        let losses: Vec<f64> = (0..12).map(|i| 1.0 + f64::from(i)).collect();
        let accuracies: Vec<f64> = (0..12).map(|i| 50.0 - f64::from(i)).collect();
        let signals = run(&losses, &accuracies);
        let last = &signals[11];
        assert_eq!(last.loss_history.as_slice(), [8.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!(last.accuracy_history.as_slice(), [43.0, 42.0, 41.0, 40.0, 39.0]);
        assert_eq!(last.best_val_accuracy, 50.0);
        assert_eq!(last.best_val_loss, 1.0);
        assert_eq!(last.best_val_loss_window, 3.0);
    }

    #[test]
    fn the_stable_accuracy_is_the_lowest_of_the_last_steps() {
        let mut tracker = SignalTracker::new(TrackerConfig::default());
        assert_eq!(tracker.stable_val_accuracy(3), None);
        for (step, accuracy) in [(1, 10.0), (2, 42.0), (3, 40.0), (4, 41.0)] {
            tracker.update(metrics(step, 1.0, accuracy)).unwrap();
        }
        assert_eq!(tracker.stable_val_accuracy(0), None);
        assert_eq!(tracker.stable_val_accuracy(3), Some(40.0));
        assert_eq!(tracker.stable_val_accuracy(9), Some(10.0));
    }

    #[test]
    fn an_accuracy_beyond_percent_is_an_error_and_a_tiny_one_is_suspicious() {
        let mut tracker = SignalTracker::new(TrackerConfig::default());
        let before = tracker.clone();
        assert!(tracker.update(metrics(1, 1.0, 100.1)).is_err());
        assert_eq!(tracker, before);
        tracker.update(metrics(1, 1.0, 0.4)).unwrap();
        let second = tracker.update(metrics(2, 1.0, 0.5)).unwrap();
        assert!(second.looks_like_fraction);
    }

    #[test]
    fn without_a_waiting_time_the_host_counts_as_stabilised_at_once() {
        let mut tracker = SignalTracker::new(TrackerConfig {
            stabilization_epochs: 0,
            ..Default::default()
        });
        assert!(tracker.update(metrics(1, 2.0, 30.0)).unwrap().host_stabilized);
    }
}
