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

/// The reason of the prunes in the rollback that an alarm leads to.
pub const fn prune_reason(kind: AlarmKind) -> PruneReason {
    match kind {
        AlarmKind::NonFinite => PruneReason::GovernorNan,
        AlarmKind::ChanceCollapse => PruneReason::GovernorChanceCollapse,
        AlarmKind::Divergence => PruneReason::GovernorDivergence,
    }
}

/// A loss that is not healthy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// Kind of the anomaly.
    pub kind: AlarmKind,
    /// The loss that was judged, in nats.
    pub loss: f64,
    /// Anomalies in a row, this one included.
    pub consecutive: u32,
}

/// The health of a step's loss.
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
    /// The alarm of a loss that is not healthy.
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
    /// Takes the loss of the next step. Guessing costs `random` nats, `ln(classes)`. The conditions are tried in this
    /// order, and the first that applies decides.
    pub fn judge(&mut self, loss: f64, random: f64) -> LossVerdict {
        let remembered: Vec<f64> = self.history.iter().copied().collect();
        let healthy = statistics::mean_and_std(&remembered).filter(|_| remembered.len() >= MIN_HISTORY);
        let alarm = |kind, consecutive| Alarm {
            kind,
            loss,
            consecutive,
        };
        if !loss.is_finite() {
            return LossVerdict::Panic(alarm(AlarmKind::NonFinite, self.streak));
        }
        let was_armed = healthy.is_some_and(|(mean, _)| mean < COLLAPSE_ARM * random);
        if was_armed && (loss - random).abs() < COLLAPSE_BAND * random {
            return LossVerdict::Panic(alarm(AlarmKind::ChanceCollapse, self.streak));
        }
        if loss <= HARMLESS * random {
            return self.healthy(loss);
        }
        // An outlier once enough healthy losses are known, a multiple of their median before.
        let is_excessive = match healthy {
            Some((mean, std)) => loss > mean + SENSITIVITY * std && loss > MULTIPLIER * mean,
            None => {
                let median = statistics::median(&remembered).filter(|_| remembered.len() >= MIN_WARM_UP);
                median.is_some_and(|median| loss > MULTIPLIER * median)
            }
        };
        if is_excessive {
            self.streak += 1;
            let alarm = alarm(AlarmKind::Divergence, self.streak);
            return match self.streak >= MIN_PANICS {
                true => LossVerdict::Panic(alarm),
                false => LossVerdict::Suspect(alarm),
            };
        }
        if healthy.is_some() {
            return self.healthy(loss);
        }
        // Too early to tell: this loss may be a spike, which would blind σ for a whole window if it were remembered.
        self.streak = 0;
        LossVerdict::Healthy
    }

    fn healthy(&mut self, loss: f64) -> LossVerdict {
        self.streak = 0;
        self.history.push_back(loss);
        while self.history.len() > HISTORY_WINDOW {
            self.history.pop_front();
        }
        LossVerdict::Healthy
    }

    /// Restores the state from which `history` was copied. No anomaly is pending.
    pub fn restore(&mut self, history: VecDeque<f64>) {
        *self = Self { history, streak: 0 };
    }
}

#[cfg(test)]
mod tests;
