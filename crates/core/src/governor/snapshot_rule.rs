//! The rule that decides when a healthy env is captured, and when a capture is trusted. Pure: it maps steps and losses to orders.
//!
//! Weights can be poisoned before the loss shows it. A capture is therefore on probation, and replaces the last known
//! good state only after further healthy steps.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::env::ValMetrics;

/// The number of recent healthy losses, including the newest. Their minimum shows how rough the current one is.
const RECENT_LOSSES: usize = 5;
/// Fewest steps between captures.
const MIN_INTERVAL: u32 = 2;
/// Steps after which a capture is due without an improvement.
const MAX_INTERVAL: u32 = 5;
/// Relative improvement of the loss that makes a capture due early.
const IMPROVEMENT: f64 = 0.01;
/// Factor by which the loss may exceed the lowest of the last few.
const STABLE_RATIO: f64 = 1.1;
/// Steps after which a capture need not be stable.
const PATIENCE: u32 = 15;
/// Healthy steps until a capture is trusted.
const PROBATION: u32 = 2;

/// Metrics of an env at the end of a healthy step: everything in a snapshot that isn't a tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SnapshotInput {
    /// 0 for a fresh host.
    pub step: u32,
    /// `None` for a fresh host.
    pub val: Option<ValMetrics>,
    /// Best accuracy of the episode up to then.
    pub best_accuracy_percent: f64,
    /// The step that reached it.
    pub best_step: u32,
    /// Healthy losses, oldest first, including this step's if it is remembered.
    pub history: VecDeque<f64>,
}

impl SnapshotInput {
    fn loss(&self) -> Option<f64> {
        self.val.map(|val| val.loss)
    }

    /// Returns whether the loss is near the lowest of the last few.
    fn is_stable(&self, loss: f64) -> bool {
        let is_remembered = self.history.back() == Some(&loss);
        let others = RECENT_LOSSES - usize::from(!is_remembered);
        let least = self
            .history
            .iter()
            .rev()
            .take(others)
            .fold(loss, |least, &loss| least.min(loss));
        loss <= STABLE_RATIO * least
    }
}

/// Orders for the tensors, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The probation has become the known good state.
    pub promote: bool,
    /// Capture into probation.
    pub capture: bool,
}

/// The snapshots of an env as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotRule {
    known_good: SnapshotInput,
    probation: Option<SnapshotInput>,
    /// Step and loss from which the next capture is reckoned.
    last: (u32, Option<f64>),
}

impl Default for SnapshotRule {
    /// Only the fresh host is known.
    fn default() -> Self {
        Self {
            known_good: SnapshotInput::default(),
            probation: None,
            last: (0, None),
        }
    }
}

impl SnapshotRule {
    /// The state that a rollback restores.
    pub fn known_good(&self) -> &SnapshotInput {
        &self.known_good
    }

    /// Returns whether a capture waits for its judgement.
    pub fn has_probation(&self) -> bool {
        self.probation.is_some()
    }

    /// A healthy step is over.
    pub fn healthy(&mut self, now: &SnapshotInput) -> Orders {
        let mut orders = Orders::default();
        let has_proven_itself = |taken: &mut SnapshotInput| now.step.saturating_sub(taken.step) >= PROBATION;
        if let Some(proven) = self.probation.take_if(has_proven_itself) {
            self.known_good = proven;
            orders.promote = true;
        }
        if self.probation.is_none() && self.is_due(now) {
            self.probation = Some(self.taken(now));
            orders.capture = true;
        }
        orders
    }

    /// Drops the capture on probation, if there is one: the next is reckoned from the known good state.
    pub fn discard(&mut self) -> bool {
        let is_dropped = self.probation.take().is_some();
        if is_dropped {
            self.last = (self.known_good.step, self.known_good.loss());
        }
        is_dropped
    }

    /// A seed was committed in this healthy step: its state is trusted at once.
    pub fn commit(&mut self, now: &SnapshotInput) {
        self.known_good = self.taken(now);
        self.probation = None;
    }

    /// The known good state is restored at the end of `step`.
    pub fn rolled_back(&mut self, step: u32) {
        self.probation = None;
        self.last = (step, self.known_good.loss());
    }

    /// The next capture is reckoned from this one.
    fn taken(&mut self, now: &SnapshotInput) -> SnapshotInput {
        self.last = (now.step, now.loss());
        now.clone()
    }

    fn is_due(&self, now: &SnapshotInput) -> bool {
        let Some(loss) = now.loss() else { return false };
        let (last_step, last_loss) = self.last;
        let waited = now.step.saturating_sub(last_step);
        let has_improved = last_loss.is_none_or(|last| loss <= (1.0 - IMPROVEMENT) * last);
        let is_time = waited >= MAX_INTERVAL || (waited >= MIN_INTERVAL && has_improved);
        is_time && (now.is_stable(loss) || waited >= PATIENCE)
    }
}

#[cfg(test)]
mod tests;
