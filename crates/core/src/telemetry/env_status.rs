//! One word on how an env is doing, for people.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

/// How an env is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvStatus {
    /// Until the first improvement.
    #[default]
    Initializing,
    /// A new best at or above the task's success accuracy.
    Excellent,
    /// A new best, or on the way from one.
    Healthy,
    /// No new best for long.
    Stalled,
    /// Accuracy falls again and again.
    Degraded,
    /// The governor restored an earlier state in the last few steps.
    RolledBack,
}

/// A bad state is announced once it has held for this many steps, so that the status does not flicker.
const STEPS_UNTIL_BAD: u32 = 3;
/// Steps without a new best that count as standing still.
const STALL_STEPS: u32 = 10;
/// A fall from one step to the next, in points, that counts as degradation.
const DEGRADATION_POINTS: f64 = 1.0;

/// Steps after a rollback for which it is shown.
const STEPS_ROLLED_BACK: u32 = 5;

/// Follows the accuracy of one env through one episode; start each episode with a fresh one.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnvStatusTracker {
    previous: Option<f64>,
    best: Option<f64>,
    has_improved: bool,
    steps_since_best: u32,
    stalled_steps: u32,
    degraded_steps: u32,
    rolled_back_steps_left: u32,
}

impl EnvStatusTracker {
    /// The step about to be taken in ended in a rollback.
    pub fn note_rollback(&mut self) {
        self.rolled_back_steps_left = STEPS_ROLLED_BACK + 1;
    }

    /// Takes the validation accuracy of the next step; `success_accuracy` is the task's. Both in percent.
    pub fn update(&mut self, accuracy: f64, success_accuracy: Option<f64>) -> EnvStatus {
        let is_new_best = self.note_best(accuracy);
        self.note_fall(accuracy);
        if self.steps_since_best > STALL_STEPS {
            self.stalled_steps += 1;
        } else {
            self.stalled_steps = 0;
        }

        if self.rolled_back_steps_left > 0 {
            self.rolled_back_steps_left -= 1;
            EnvStatus::RolledBack
        } else if !self.has_improved {
            EnvStatus::Initializing
        } else if is_new_best && success_accuracy.is_some_and(|success| accuracy >= success) {
            EnvStatus::Excellent
        } else if is_new_best {
            EnvStatus::Healthy
        } else if self.degraded_steps >= STEPS_UNTIL_BAD {
            EnvStatus::Degraded
        } else if self.stalled_steps >= STEPS_UNTIL_BAD {
            EnvStatus::Stalled
        } else {
            EnvStatus::Healthy
        }
    }

    fn note_best(&mut self, accuracy: f64) -> bool {
        let is_new_best = self.best.is_some_and(|best| accuracy > best);
        if is_new_best || self.best.is_none() {
            self.best = Some(accuracy);
            self.steps_since_best = 0;
        } else {
            self.steps_since_best += 1;
        }
        self.has_improved |= is_new_best;
        is_new_best
    }

    fn note_fall(&mut self, accuracy: f64) {
        if let Some(previous) = self.previous.replace(accuracy) {
            if accuracy > previous {
                self.degraded_steps = 0;
            } else if previous - accuracy > DEGRADATION_POINTS {
                self.degraded_steps += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
