//! The governor: a watchdog per env that restores the last known good state when growth has wrecked it (spec 02 §8).
//!
//! It looks at one number a step, the validation loss of the whole network, right after the step's sync and before
//! anything is observed. A healthy env may be captured; a suspect one may neither plant nor commit; a panicking one is
//! rolled back at once, alone, and takes no further part in the step. Everything it decides by is plain data
//! (`detector`, `snapshot_rule`, `preflight`); tensors are moved by `store` and `rollback`.

mod detector;
mod error;
mod preflight;
mod rollback;
mod snapshot_rule;
mod store;
#[cfg(test)]
mod store_tests;
mod systems;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub use detector::{Alarm, LossMonitor, Thresholds, Verdict, prune_reason};
pub use error::GovernorError;
pub use preflight::{Preflight, VetoFactor};
pub use snapshot_rule::{Mark, Moment, Orders, SnapshotRule};
pub use store::{Captured, LiveState, SnapshotStore, Snapshots};

use crate::env::EnvId;
use crate::growth::LifecycleCommand;
use crate::scenario::SnapshotPolicy;
use crate::schedule::{Act, AddWork, Assess, RoundStart, StepSync, Work};
use crate::telemetry::{AlarmKind, GovernorCounts, SnapshotTrigger};

/// Watches all envs. Without it nothing is captured, vetoed or rolled back.
pub struct GovernorPlugin;

impl Plugin for GovernorPlugin {
    fn build(&self, app: &mut App) {
        app.register_required_components::<EnvId, Governor>();
        app.register_required_components::<EnvId, Snapshots>();
        app.register_required_components::<EnvId, RollbackVerdict>();
        app.add_work(RoundStart, Work::SnapshotInitial, systems::snapshot_initial)
            .add_work(StepSync, Work::CarrySnapshotCounts, systems::carry_snapshot_counts)
            .add_work(Assess, Work::GovernorCheck, systems::governor_check)
            .add_work(Assess, Work::GovernorRollback, rollback::governor_rollback)
            .add_work(Assess, Work::GovernorSnapshot, systems::governor_snapshot)
            .add_work(Assess, Work::ReportRollbacks, rollback::report_rollbacks)
            .add_work(Act, Work::CommitSnapshot, systems::commit_snapshot);
    }
}

/// How often what happened in the episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tallies {
    pub anomalies: u32,
    pub panics: u32,
    pub vetoes: u32,
    pub snapshots: GovernorCounts,
}

/// The state of an env's watchdog, all of it plain data; new at every episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Governor {
    /// If not, it looks and reports only.
    is_enabled: bool,
    monitor: LossMonitor,
    snapshots: SnapshotRule,
    verdict: Verdict,
    last_panic: Option<Alarm>,
    /// The last step in which a command was carried out.
    last_action_step: Option<u32>,
    tallies: Tallies,
}

impl Governor {
    /// At the start of an episode.
    pub fn new(is_enabled: bool) -> Self {
        Self {
            is_enabled,
            ..Self::default()
        }
    }

    /// What this step's loss amounted to.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    pub fn last_panic(&self) -> Option<&Alarm> {
        self.last_panic.as_ref()
    }

    pub fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Captured states: which is known good, which on probation.
    pub fn snapshots(&self) -> &SnapshotRule {
        &self.snapshots
    }

    /// Healthy losses, oldest first.
    pub fn monitor(&self) -> &LossMonitor {
        &self.monitor
    }

    /// Whether this step's verdict is a panic that has to be acted on.
    pub fn demands_rollback(&self) -> bool {
        self.is_enabled && matches!(self.verdict, Verdict::Panic(_))
    }

    /// Whether states may be captured in this step.
    fn may_capture(&self) -> bool {
        self.is_enabled && self.verdict == Verdict::Healthy
    }

    /// Judges the step's validation loss.
    fn judge(&mut self, loss: f64, thresholds: &Thresholds) -> &Verdict {
        self.verdict = self.monitor.judge(loss, thresholds);
        match &self.verdict {
            Verdict::Healthy => {}
            Verdict::Suspect(_) => self.tallies.anomalies += 1,
            Verdict::Panic(alarm) => {
                self.tallies.anomalies += 1;
                self.tallies.panics += 1;
                self.last_panic = Some(*alarm);
            }
        }
        &self.verdict
    }

    /// Orders for the tensors after a healthy step.
    fn after_healthy_step(&mut self, policy: &SnapshotPolicy, now: &Moment) -> Orders {
        let orders = self.snapshots.healthy(policy, now);
        self.tallies.snapshots.snapshot_promotions += u32::from(orders.promote.is_some());
        self.tallies.snapshots.snapshot_captures += u32::from(orders.capture.is_some());
        orders
    }

    /// The capture of the step before held nothing but numbers.
    fn trust_finite_capture(&mut self, policy: &SnapshotPolicy) -> Option<SnapshotTrigger> {
        let promoted = self.snapshots.found_finite(policy)?;
        self.tallies.snapshots.snapshot_promotions += 1;
        Some(promoted)
    }

    fn discard_probation(&mut self) -> Option<SnapshotTrigger> {
        let discarded = self.snapshots.discard()?;
        self.tallies.snapshots.snapshot_discards += 1;
        Some(discarded)
    }

    fn commit(&mut self, now: &Moment) {
        self.snapshots.commit(now);
        self.tallies.snapshots.snapshot_captures += 1;
    }

    /// The env has been restored at the end of `step`. Returns what it was restored to.
    fn rolled_back(&mut self, step: u32) -> Moment {
        self.snapshots.rolled_back(step);
        let moment = self.snapshots.known_good().moment.clone();
        self.monitor.restore(moment.history.clone());
        self.tallies.snapshots.steps_lost += step.saturating_sub(moment.step);
        moment
    }

    /// Looks at a command before it changes anything; a veto is counted. `None`: go ahead.
    pub fn veto(&mut self, command: &LifecycleCommand, preflight: &Preflight) -> Option<VetoFactor> {
        if !self.is_enabled {
            return None;
        }
        let factor = preflight.veto(command, &self.verdict)?;
        self.tallies.vetoes += 1;
        Some(factor)
    }
}

/// The rollback of this step, for whoever gives credit for it; `None` in every other step (spec 02 §8.7).
///
/// Written by [`Work::GovernorRollback`]. A learner reads it between that and [`Work::ReportRollbacks`], edits its
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
    pub steps_lost: u32,
    /// Slots, in policy order, whose live seeds were pruned.
    pub pruned: SmallVec<[usize; 4]>,
    /// Step of the last command that was carried out in this episode.
    pub last_action_step: Option<u32>,
    /// The rollback limit is reached: the env is idle until the round ends.
    pub ends_episode: bool,
    pub credit: Credit,
}

impl Rollback {
    /// How far the loss was out: loss over what it was compared with, infinite where it is no number.
    pub fn severity(&self) -> f64 {
        match (self.alarm.kind, self.alarm.threshold) {
            (AlarmKind::NonFinite, _) | (_, None) => f64::INFINITY,
            (_, Some(threshold)) => self.alarm.loss / threshold,
        }
    }
}

/// Who was blamed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Credit {
    /// Nobody: there is no learner, or no transition was stored since the episode or the last rollback began.
    #[default]
    Unattributed,
    /// The last stored transition. Seeds that the rollback pruned cost nothing extra then.
    Attributed { penalty: f64, steps_forfeited: u32 },
}
