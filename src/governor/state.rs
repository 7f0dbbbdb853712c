//! What an env's watchdog knows, and the rollback of a step.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::detector::{Alarm, LossMonitor, Thresholds, Verdict};
use super::preflight::Preflight;
use super::snapshot_rule::{Moment, SnapshotRule};
use crate::growth::LifecycleCommand;
use crate::telemetry::GovernorCounts;

/// The state of an env's watchdog, all of it plain data; new at every episode.
#[derive(Component, Clone, Debug, Default, PartialEq)]
pub struct Governor {
    /// If not, it looks and reports only.
    pub(super) is_enabled: bool,
    pub(super) monitor: LossMonitor,
    /// Captured states: which is known good, which on probation.
    pub snapshots: SnapshotRule,
    /// How healthy this step's loss is.
    pub verdict: Verdict,
    /// The last step in which a command was carried out.
    pub(super) last_action_step: Option<u32>,
    /// What was seen, refused, captured, promoted, discarded and lost in this episode.
    pub counts: GovernorCounts,
}

impl Governor {
    /// Whether this step's verdict is a panic that has to be acted on.
    pub fn demands_rollback(&self) -> bool {
        self.is_enabled && matches!(self.verdict, Verdict::Panic(_))
    }

    /// Whether states may be captured in this step.
    pub(super) fn may_capture(&self) -> bool {
        self.is_enabled && self.verdict == Verdict::Healthy
    }

    /// Judges the step's validation loss.
    pub(super) fn judge(&mut self, loss: f64, thresholds: &Thresholds) {
        self.verdict = self.monitor.judge(loss, thresholds);
        self.counts.anomalies += u32::from(self.verdict != Verdict::Healthy);
        self.counts.panics += u32::from(matches!(self.verdict, Verdict::Panic(_)));
    }

    /// The env has been restored at the end of `step`. Returns what it was restored to.
    pub(super) fn rolled_back(&mut self, step: u32) -> Moment {
        self.snapshots.rolled_back(step);
        let moment = self.snapshots.known_good().moment.clone();
        self.monitor.restore(moment.history.clone());
        self.counts.steps_lost += step.saturating_sub(moment.step);
        moment
    }

    /// Looks at a command before it changes anything. The name of what speaks against it; `None`: go ahead.
    pub fn veto(&mut self, command: &LifecycleCommand, preflight: &Preflight) -> Option<&'static str> {
        let factor = preflight.veto(command, &self.verdict).filter(|_| self.is_enabled);
        self.counts.vetoes += u32::from(factor.is_some());
        factor
    }
}

/// The rollback of this step, for whoever gives credit for it; `None` in every other step.
///
/// Written by [`Work::GovernorRollback`](crate::schedule::Work::GovernorRollback). A learner reads it between that and [`Work::ReportRollbacks`](crate::schedule::Work::ReportRollbacks), edits its
/// buffer, clears the env's recurrent state and notes in [`Rollback::credit`] what it did.
#[derive(Component, Clone, Debug, Default, PartialEq)]
pub struct RollbackVerdict(pub Option<Rollback>);

/// What happened to a rolled-back env.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollback {
    /// What the governor saw.
    pub alarm: Alarm,
    /// Negative; neither clamped nor scaled.
    pub raw_penalty: f64,
    /// Step whose state was restored; 0 is the fresh host.
    pub snapshot_step: u32,
    /// Steps between the restored state and the panic.
    pub steps_lost: u32,
    /// Slots, in policy order, whose live seeds were pruned.
    pub pruned: SmallVec<[usize; 4]>,
    /// Step of the last command that was carried out in this episode.
    pub last_action_step: Option<u32>,
    /// The rollback limit is reached: the env is idle until the round ends.
    pub ends_episode: bool,
    /// What a learner made of it.
    pub credit: Credit,
}

/// Who was blamed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Credit {
    /// Nobody: there is no learner, or no transition was stored since the episode or the last rollback began.
    #[default]
    Unattributed,
    /// The last stored transition. Seeds that the rollback pruned cost nothing extra then.
    Attributed {
        /// Charged to it, as the learner clamped it.
        penalty: f64,
        /// Steps of the segment whose rewards became 0.
        steps_forfeited: u32,
    },
}
