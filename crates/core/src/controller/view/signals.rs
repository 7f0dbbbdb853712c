//! An env's training as a controller sees it: deltas, plateau, stabilisation.
//!
//! In: one step's losses and accuracies. Out: [`TrainingSignals`]. One tracker per env, new for every episode,
//! updated once per step before masks are built.

use std::collections::VecDeque;

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::clock::RunClock;
use crate::env::{EnvId, Experiment, StepStatus, TrainMetrics, ValMetrics};
use crate::health::{Failure, InEnv};
use crate::telemetry::{Event, HostStabilized, Num, TelemetryOutbox};
use crate::validation::MeasuredNetwork;

/// Losses and accuracies that an observation shows.
pub const SHOWN_HISTORY: usize = 5;
/// The value that replaces a loss that is not finite.
pub const NONFINITE_LOSS: f64 = 1.0e6;
/// A previous loss at or below this says nothing about relative improvement.
const SMALLEST_LOSS: f64 = 1e-8;
/// A step that gains fewer percentage points of accuracy extends the plateau.
const PLATEAU_GAIN: f64 = 0.5;
/// A relative improvement of the loss from this on does not count as stable.
const IMPROVEMENT_THRESHOLD: f64 = 0.03;
/// Stable steps in a row until the host counts as stabilised.
const STABLE_STEPS: u32 = 3;
/// A relative worsening of the loss from this on does not count as stable.
const REGRESSION_THRESHOLD: f64 = 0.05;

/// An accuracy outside 0..=100: the producer mixes up units.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("step {step} reports an accuracy of {accuracy}; accuracies are percent, 0 to 100")]
pub struct AccuracyOutOfRange {
    pub step: u32,
    pub accuracy: f64,
}

/// One step of an env as controllers see it. Losses in nats, accuracies in percent, all finite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingSignals {
    /// 1-based.
    pub step: u32,
    /// On training data.
    pub train_loss: f64,
    /// On training data, 0 to 100.
    pub train_accuracy: f64,
    /// On validation data.
    pub val_loss: f64,
    /// Accuracy on validation data, 0 to 100.
    pub val_accuracy: f64,
    /// Accuracy on validation data with only the committed seeds, 0 to 100. Equals `val_accuracy` if it wasn't measured.
    pub committed_accuracy: f64,
    /// Trainable elements of the host without seeds.
    pub host_params: u64,
    /// Steps in a row without a gain worth the name.
    pub plateau_steps: u32,
    /// True if the host has settled, in this step or before. Stays so until the episode ends.
    pub host_stabilized: bool,
    /// The host stabilised in this very step.
    pub just_stabilized: bool,
    /// Oldest first, at most the five that an observation shows.
    pub loss_history: SmallVec<[f64; SHOWN_HISTORY]>,
    /// Oldest first, at most the five that an observation shows.
    pub accuracy_history: SmallVec<[f64; SHOWN_HISTORY]>,
}

/// The memory from which [`TrainingSignals`] are computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SignalTracker {
    /// Validation loss and accuracy of the step before.
    previous: Option<(f64, f64)>,
    plateau: u32,
    stable_count: u32,
    stabilized: bool,
    losses: VecDeque<f64>,
    accuracies: VecDeque<f64>,
}

impl SignalTracker {
    /// Takes in one step, counted from 1.
    ///
    /// # Errors
    /// A finite accuracy outside 0..=100. The tracker is then unchanged.
    pub fn update(
        &mut self,
        step: u32,
        train: &TrainMetrics,
        val: &ValMetrics,
    ) -> Result<TrainingSignals, AccuracyOutOfRange> {
        let mut nonfinite = false;
        let mut or_else = |value: f64, replacement: f64| {
            nonfinite |= !value.is_finite();
            if value.is_finite() { value } else { replacement }
        };
        let train_loss = or_else(train.loss, NONFINITE_LOSS);
        let val_loss = or_else(val.loss, NONFINITE_LOSS);
        let train_accuracy = or_else(train.accuracy_percent, 0.0);
        let val_accuracy = or_else(val.accuracy_percent, 0.0);
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
        self.remember(val_loss, val_accuracy);
        self.previous = Some((val_loss, val_accuracy));

        Ok(TrainingSignals {
            step,
            train_loss,
            train_accuracy,
            val_loss,
            val_accuracy,
            committed_accuracy: val_accuracy,
            host_params: 0,
            plateau_steps: self.plateau,
            host_stabilized: self.stabilized,
            just_stabilized,
            loss_history: self.losses.iter().copied().collect(),
            accuracy_history: self.accuracies.iter().copied().collect(),
        })
    }

    fn track_plateau(&mut self, accuracy_delta: f64) {
        if self.previous.is_none() {
            return;
        }
        if accuracy_delta < PLATEAU_GAIN {
            self.plateau += 1;
        } else {
            self.plateau = 0;
        }
    }

    /// Returns whether the host stabilised just now. Once stabilised, it stays so.
    fn track_stabilisation(&mut self, loss_delta: f64, nonfinite: bool) -> bool {
        let Some((previous_loss, _)) = self.previous else {
            return false;
        };
        if self.stabilized || previous_loss <= SMALLEST_LOSS {
            return false;
        }
        let improvement = loss_delta / previous_loss;
        let is_stable = !nonfinite && improvement > -REGRESSION_THRESHOLD && improvement < IMPROVEMENT_THRESHOLD;
        self.stable_count = if is_stable { self.stable_count + 1 } else { 0 };
        self.stabilized = self.stable_count >= STABLE_STEPS;
        self.stabilized
    }

    fn remember(&mut self, loss: f64, accuracy: f64) {
        for (history, value) in [(&mut self.losses, loss), (&mut self.accuracies, accuracy)] {
            while history.len() >= SHOWN_HISTORY {
                history.pop_front();
            }
            history.push_back(value);
        }
    }
}

/// The memory from which an env's [`TrainingSignals`] are computed.
#[derive(Component, Default, Serialize, Deserialize)]
pub struct Tracker(pub SignalTracker);

/// The env's signals as controllers see them. A step that was rolled back leaves those of the previous step.
#[derive(Component, Default, Serialize, Deserialize)]
pub struct Signals(pub TrainingSignals);

/// The state of an env that signals are made from.
#[derive(QueryData)]
#[query_data(mutable)]
pub(crate) struct SignallingEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    train: &'static TrainMetrics,
    val: &'static ValMetrics,
    network: MeasuredNetwork,
    tracker: &'static mut Tracker,
    signals: &'static mut Signals,
}

pub(crate) fn update_signals(
    mut envs: Query<SignallingEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    mut outbox: ResMut<TelemetryOutbox>,
) -> Result<(), Failure> {
    for mut env in &mut envs {
        if !env.status.participates() {
            continue;
        }
        let (id, val) = (env.id, env.val);
        let mut signals = env.tracker.0.update(clock.step(), env.train, val).in_env(id.index)?;
        let committed = env.network.committed_accuracy(signals.val_accuracy);
        signals.committed_accuracy = committed.unwrap_or(signals.val_accuracy);
        signals.host_params = env.network.host.0;
        env.signals.0 = signals;
        if env.signals.0.just_stabilized {
            outbox.push(Event::env(
                experiment.context(id, &clock),
                HostStabilized {
                    val_loss: Num(val.loss),
                },
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
