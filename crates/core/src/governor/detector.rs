//! Is this validation loss still that of a network that learns? Pure and deliberately insensitive: a false alarm costs a
//! segment of experience.
//!
//! Only losses of healthy steps are remembered, so thresholds stay those of healthy training however long an anomaly
//! lasts.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::growth::PruneReason;
use crate::telemetry::{AlarmKind, statistics};

/// Losses of early steps that are needed to call one of them an outlier.
const MIN_WARM_UP: usize = 3;
/// Healthy losses needed before their mean is trusted.
const MIN_HISTORY: usize = 10;
/// Healthy losses remembered.
const HISTORY_WINDOW: usize = 20;
/// A loss this many standard deviations above the healthy mean is suspicious.
const SENSITIVITY: f64 = 6.0;
/// A loss above this multiple of the healthy mean is suspicious.
const MULTIPLIER: f64 = 3.0;
/// A loss up to this multiple of that of guessing is never suspicious: a network may begin worse than chance, but one that was
/// better and then costs twice as much has diverged, at any number of classes.
const HARMLESS: f64 = 2.0;
/// Suspicious steps in a row after which the env is rolled back.
pub const MIN_PANICS: u32 = 3;
/// A network was better than chance where its healthy mean lies below this share of the loss of guessing.
const COLLAPSE_ARM: f64 = 0.6;
/// It guesses again where its loss differs from that of guessing by less than this share of it.
const COLLAPSE_BAND: f64 = 0.065;

/// The limit that `loss` exceeds: of outliers once enough healthy losses are known, of a multiple of their median
/// before.
fn exceeded_by(loss: f64, healthy: &[f64]) -> Option<f64> {
    if healthy.len() >= MIN_HISTORY {
        let (mean, std) = statistics::mean_and_std(healthy)?;
        let limit = mean + SENSITIVITY * std;
        (loss > limit && loss > MULTIPLIER * mean).then_some(limit)
    } else {
        let limit = MULTIPLIER * statistics::median(healthy)?;
        (healthy.len() >= MIN_WARM_UP && loss > limit).then_some(limit)
    }
}

/// Why seeds are pruned by the rollback that an alarm leads to.
pub const fn prune_reason(kind: AlarmKind) -> PruneReason {
    match kind {
        AlarmKind::NonFinite => PruneReason::GovernorNan,
        AlarmKind::ChanceCollapse => PruneReason::GovernorChanceCollapse,
        AlarmKind::Divergence => PruneReason::GovernorDivergence,
    }
}

/// A loss that is not healthy, and what it was compared with. Losses in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// What is wrong.
    pub kind: AlarmKind,
    /// The loss that was judged.
    pub loss: f64,
    /// `None` for a loss that is no number.
    pub threshold: Option<f64>,
    /// Mean and standard deviation of the healthy losses; `None` without any.
    pub healthy: Option<(f64, f64)>,
    /// Anomalies in a row, this one included.
    pub consecutive: u32,
}

/// How healthy a step's loss is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum LossVerdict {
    /// Nothing is wrong.
    #[default]
    Healthy,
    /// An anomaly, not yet a panic.
    Suspect(Alarm),
    /// Not to be left like this.
    Panic(Alarm),
}

impl LossVerdict {
    /// What is wrong with a loss that is not healthy.
    pub const fn alarm(&self) -> Option<&Alarm> {
        match self {
            Self::Healthy => None,
            Self::Suspect(alarm) | Self::Panic(alarm) => Some(alarm),
        }
    }
}

/// The memory of healthy losses and the run of anomalies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossMonitor {
    /// Healthy losses, oldest first, at most the window.
    pub history: VecDeque<f64>,
    streak: u32,
}

impl LossMonitor {
    /// Takes the loss of the next step; guessing costs `random` nats, `ln(classes)`. The conditions are tried in this
    /// order; the first that applies decides.
    pub fn judge(&mut self, loss: f64, random: f64) -> LossVerdict {
        let remembered: Vec<f64> = self.history.iter().copied().collect();
        let healthy = statistics::mean_and_std(&remembered);
        let alarm = |kind, threshold, consecutive| Alarm {
            kind,
            loss,
            threshold,
            healthy,
            consecutive,
        };
        if !loss.is_finite() {
            return LossVerdict::Panic(alarm(AlarmKind::NonFinite, None, self.streak));
        }
        let is_warm = remembered.len() >= MIN_HISTORY;
        let was_armed = is_warm && healthy.is_some_and(|(mean, _)| mean < COLLAPSE_ARM * random);
        if was_armed && (loss - random).abs() < COLLAPSE_BAND * random {
            return LossVerdict::Panic(alarm(AlarmKind::ChanceCollapse, Some(random), self.streak));
        }
        if loss <= HARMLESS * random {
            return self.healthy(loss);
        }
        match exceeded_by(loss, &remembered) {
            Some(limit) => {
                self.streak += 1;
                let alarm = alarm(AlarmKind::Divergence, Some(limit), self.streak);
                if self.streak >= MIN_PANICS {
                    LossVerdict::Panic(alarm)
                } else {
                    LossVerdict::Suspect(alarm)
                }
            }
            None if is_warm && healthy.is_some() => self.healthy(loss),
            // Remembered, an early spike that nothing is known against would blind σ for a whole window.
            None => {
                self.streak = 0;
                LossVerdict::Healthy
            }
        }
    }

    fn healthy(&mut self, loss: f64) -> LossVerdict {
        self.streak = 0;
        self.history.push_back(loss);
        while self.history.len() > HISTORY_WINDOW {
            self.history.pop_front();
        }
        LossVerdict::Healthy
    }

    /// As it was when `history` was copied; no anomaly is pending.
    pub fn restore(&mut self, history: VecDeque<f64>) {
        *self = Self { history, streak: 0 };
    }
}

#[cfg(test)]
mod tests;
