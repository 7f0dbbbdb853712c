//! What an env's watchdog knows, and the rollback of a step.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::detector::{Alarm, LossMonitor, Verdict};
use super::preflight;
use super::snapshot_rule::{Moment, SnapshotRule};
use crate::env::ValMetrics;
use crate::growth::LifecycleCommand;
use crate::seed::{SeedRecord, SlotView};
use crate::telemetry::GovernorCounts;

/// The state of an env's watchdog, all of it plain data; new at every episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The last step whose network some seed took part in; `None` if none did since the episode or the last rollback
    /// began.
    pub(super) seed_in_network: Option<u32>,
    /// Step of the state that the last rollback of the episode restored.
    pub(super) last_restored: Option<u32>,
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

    /// Judges the step's validation loss; guessing costs `random` nats.
    pub(super) fn judge(&mut self, loss: f64, random: f64) {
        self.verdict = self.monitor.judge(loss, random);
        self.counts.anomalies += u32::from(self.verdict != Verdict::Healthy);
        self.counts.panics += u32::from(matches!(self.verdict, Verdict::Panic(_)));
    }

    /// Takes note of the seeds in the network of `step`, before the step's commands.
    pub(super) fn note_seeds<'a>(&mut self, step: u32, mut seeds: impl Iterator<Item = &'a SeedRecord>) {
        if seeds.any(SeedRecord::bears_on_network) {
            self.seed_in_network = Some(step);
        }
    }

    /// Whether growth can have led from the known good state to this one. A seed that was pruned in the very step of the
    /// capture counts: its removal is a change that the capture does not hold.
    pub(super) fn blames(&self) -> bool {
        let restored = self.snapshots.known_good().moment.step;
        self.seed_in_network.is_some_and(|step| step >= restored)
    }

    /// Whether a rollback now would restore the same state as the last one, with no seed to blame for the outcome: the host
    /// alone leads here, and would again.
    pub(super) fn would_repeat_itself(&self) -> bool {
        let restored = self.snapshots.known_good().moment.step;
        self.last_restored == Some(restored) && self.seed_in_network.is_none()
    }

    /// Whether this step's panic is to be lived with instead of being rolled back.
    pub(super) fn accepts(&self) -> bool {
        let is_finite = self.verdict.alarm().is_some_and(|alarm| alarm.loss.is_finite());
        self.demands_rollback() && is_finite && self.would_repeat_itself()
    }

    /// Takes `loss` for how the host is: what follows is compared with it alone.
    pub(super) fn accept(&mut self, loss: f64) {
        self.monitor.restore([loss].into());
        self.verdict = Verdict::Healthy;
    }

    /// The env has been restored at the end of `step`. Returns what it was restored to.
    pub(super) fn rolled_back(&mut self, step: u32) -> Moment {
        self.snapshots.rolled_back(step);
        let moment = self.snapshots.known_good().moment.clone();
        self.last_restored = Some(moment.step);
        self.seed_in_network = None;
        self.monitor.restore(moment.history.clone());
        self.counts.steps_lost += step.saturating_sub(moment.step);
        moment
    }

    /// Looks at a command before it changes anything. The name of what speaks against it; `None`: go ahead.
    ///
    /// `val` is the step's; `slots` are in policy order, `None` is an empty one; `max_seeds` limits live and committed
    /// seeds, 0 = unlimited.
    pub fn veto(
        &mut self,
        command: &LifecycleCommand,
        val: &ValMetrics,
        slots: &[Option<SlotView>],
        max_seeds: u32,
    ) -> Option<&'static str> {
        let factor = preflight::veto(command, &self.verdict, val, slots, max_seeds).filter(|_| self.is_enabled);
        self.counts.vetoes += u32::from(factor.is_some());
        factor
    }
}

/// The rollback of this step, for the learner that gives credit for it; `None` in every other step.
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
    /// Whether the controller is charged for it: growth can have led here.
    pub blamed: bool,
    /// Negative, neither clamped nor scaled; 0 where the controller is not blamed.
    pub raw_penalty: f64,
    /// Step whose state was restored; 0 is the fresh host.
    pub snapshot_step: u32,
    /// Steps between the restored state and the panic.
    pub steps_lost: u32,
    /// Slots, in policy order, whose live seeds were pruned: those that took part in the network.
    pub pruned: SmallVec<[usize; 4]>,
    /// Step of the last command that was carried out in this episode.
    pub last_action_step: Option<u32>,
    /// What a learner did with it.
    pub credit: Credit,
}

/// Who was blamed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Credit {
    /// No one: growth cannot have led here, there is no learner, or no transition was stored since the episode or the last
    /// rollback that was charged began.
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
