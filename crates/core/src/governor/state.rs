//! The state of an env's watchdog, the rollback of a step, and the end of a run in the governor's name.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::detector::{Alarm, LossMonitor, LossVerdict};
use super::preflight;
use super::snapshot_rule::{SnapshotInput, SnapshotRule};
use crate::env::ValMetrics;
use crate::growth::{LifecycleCommand, SlotId};
use crate::seed::{SeedRecord, SlotView};
use crate::telemetry::GovernorCounts;

/// Mistakes of the engine or of a host, never of training: those are what the governor is for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum GovernorError {
    #[error(
        "the env cannot be restored, as its network isn't the captured one: missing {}, unexpected {}; nothing was written",
        list(.missing),
        list(.unexpected)
    )]
    /// The network isn't the one that was captured.
    SnapshotMismatch {
        /// Captured, but not there any more.
        missing: Vec<String>,
        /// There, but not captured.
        unexpected: Vec<String>,
    },
    /// Nothing was captured yet.
    #[error("the env is to be restored, but nothing was captured; the episode must begin with a capture")]
    NoSnapshot,
    #[error(
        "{count} values of the state captured at step {step} aren't finite numbers, and no other is known to be good"
    )]
    /// The state that a rollback would restore is broken.
    NonFiniteState { step: u32, count: u64 },
    /// The lifecycle refused to prune a live seed.
    #[error("the seed in slot {slot} could not be pruned by a rollback: {reason}")]
    PruneFailed { slot: SlotId, reason: String },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "nothing".into()
    } else {
        names.join(", ")
    }
}

/// The state of an env's watchdog. All of it is plain data and new at every episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Governor {
    /// If not, it looks and reports only.
    pub(super) is_enabled: bool,
    pub(super) monitor: LossMonitor,
    /// Captured states: which is known good, which on probation.
    pub snapshots: SnapshotRule,
    /// The health of this step's loss.
    pub verdict: LossVerdict,
    /// The last step in which some seed took part in the network. `None` if none did since the episode or the last rollback
    /// began.
    pub(super) seed_in_network: Option<u32>,
    /// Step of the state that the last rollback of the episode restored.
    pub(super) last_restored: Option<u32>,
    /// Counts of this episode.
    pub counts: GovernorCounts,
}

impl Governor {
    /// Returns whether this step's verdict is a panic that requires an action.
    pub fn demands_rollback(&self) -> bool {
        self.is_enabled && matches!(self.verdict, LossVerdict::Panic(_))
    }

    /// Returns whether states may be captured in this step.
    pub(super) fn may_capture(&self) -> bool {
        self.is_enabled && self.verdict == LossVerdict::Healthy
    }

    /// Judges the step's validation loss. Guessing costs `random` nats.
    pub(super) fn judge(&mut self, loss: f64, random: f64) {
        self.verdict = self.monitor.judge(loss, random);
        self.counts.anomalies += u32::from(self.verdict != LossVerdict::Healthy);
        self.counts.panics += u32::from(matches!(self.verdict, LossVerdict::Panic(_)));
    }

    /// Takes note of the seeds in the network of `step`, before the step's commands.
    pub(super) fn note_seeds<'a>(&mut self, step: u32, mut seeds: impl Iterator<Item = &'a SeedRecord>) {
        if seeds.any(SeedRecord::bears_on_network) {
            self.seed_in_network = Some(step);
        }
    }

    /// Returns whether growth can have led from the known good state to this one. A seed that was pruned in the very step
    /// of the capture counts: its removal is a change that the capture does not hold.
    pub(super) fn blames(&self) -> bool {
        let restored = self.snapshots.known_good().step;
        self.seed_in_network.is_some_and(|step| step >= restored)
    }

    /// Returns whether a rollback now would restore the same state as the last one, without a seed to blame for the
    /// outcome: the host alone leads here, and would again.
    pub(super) fn would_repeat_itself(&self) -> bool {
        let restored = self.snapshots.known_good().step;
        self.last_restored == Some(restored) && self.seed_in_network.is_none()
    }

    /// Returns whether this step's panic is accepted and not rolled back.
    pub(super) fn accepts(&self) -> bool {
        let is_finite = self.verdict.alarm().is_some_and(|alarm| alarm.loss.is_finite());
        self.demands_rollback() && is_finite && self.would_repeat_itself()
    }

    /// Takes `loss` as the normal loss of the host. Later losses are compared only with it.
    pub(super) fn accept(&mut self, loss: f64) {
        self.monitor.restore([loss].into());
        self.verdict = LossVerdict::Healthy;
    }

    /// The env has been restored at the end of `step`. Returns what it was restored to.
    pub(super) fn rolled_back(&mut self, step: u32) -> SnapshotInput {
        self.snapshots.rolled_back(step);
        let moment = self.snapshots.known_good().clone();
        self.last_restored = Some(moment.step);
        self.seed_in_network = None;
        self.monitor.restore(moment.history.clone());
        moment
    }

    /// Checks a command before it changes anything. Returns the name of the objection, or `None` if there is none.
    ///
    /// `val` is the step's. `slots` are in policy order, and `None` is an empty one. `max_seeds` limits live and committed
    /// seeds, 0 = unlimited.
    pub fn veto(
        &self,
        command: &LifecycleCommand,
        val: &ValMetrics,
        slots: &[Option<SlotView>],
        max_seeds: u32,
    ) -> Option<&'static str> {
        preflight::veto(command, &self.verdict, val, slots, max_seeds).filter(|_| self.is_enabled)
    }
}

/// The rollback of this step, for the learner that gives credit for it. `None` in every other step.
///
/// Written by [`Work::GovernorRollback`](crate::schedule::Work::GovernorRollback). A learner reads it between that and [`Work::ReportRollbacks`](crate::schedule::Work::ReportRollbacks), edits its
/// buffer, clears the env's recurrent state and notes in [`Rollback::is_charged`] what it did.
#[derive(Component, Clone, Debug, Default, PartialEq)]
pub struct RollbackVerdict(pub Option<Rollback>);

/// A rollback of an env.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollback {
    /// The alarm that led to it.
    pub alarm: Alarm,
    /// True if the controller is charged for it: growth can have led here.
    pub blamed: bool,
    /// Penalty: negative, neither clamped nor scaled. 0 if the controller isn't blamed.
    pub raw_penalty: f64,
    /// Step of the restored state. 0 is the fresh host.
    pub snapshot_step: u32,
    /// Steps between the restored state and the panic.
    pub steps_lost: u32,
    /// Slots, in policy order, whose live seeds were pruned: those that took part in the network.
    pub pruned: SmallVec<[usize; 4]>,
    /// A learner has charged it to the last transition that it had stored, so that the seeds that it pruned cost nothing extra.
    pub is_charged: bool,
}
