//! The check of a command before it changes an env: pure, on what the host knows already.
//!
//! Masks exclude most of this; the veto is the authority, because a controller may bypass masks.

use super::detector::Verdict;
use crate::env::ValMetrics;
use crate::growth::{LifecycleCommand, LifecycleOp};
use crate::seed::SlotView;

/// What a command is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Preflight<'a> {
    /// Of the step.
    pub val: &'a ValMetrics,
    /// In policy order; `None` is an empty slot.
    pub slots: &'a [Option<SlotView>],
    /// Most live and committed seeds; 0 = unlimited.
    pub max_seeds: u32,
}

impl Preflight<'_> {
    /// The name of the first factor that speaks against `command`. Pruning, advancing and retargeting stay possible
    /// under suspicion: they are how a controller can help itself.
    pub fn veto(&self, command: &LifecycleCommand, verdict: &Verdict) -> Option<&'static str> {
        let op = command.op();
        if op == LifecycleOp::Wait {
            return None;
        }
        let is_suspect = matches!(verdict, Verdict::Suspect(_));
        let germinates = op == LifecycleOp::Germinate;
        let commits = op == LifecycleOp::Fossilize;
        let factors = [
            ("val_loss_finite", !self.val.loss.is_finite()),
            ("val_accuracy_finite", !self.val.accuracy_percent.is_finite()),
            ("pending_anomaly", is_suspect && (germinates || commits)),
            ("active_seed_capacity", germinates && self.is_full()),
            ("slot_empty", germinates && !self.is_empty(command.slot())),
        ];
        let mut against = factors.into_iter().filter(|(_, speaks)| *speaks);
        against.next().map(|(name, _)| name)
    }

    fn is_full(&self) -> bool {
        let seeds = self.slots.iter().flatten().filter(|slot| slot.stage.is_occupied());
        self.max_seeds > 0 && seeds.count() >= self.max_seeds as usize
    }

    fn is_empty(&self, slot: Option<usize>) -> bool {
        let view = slot.and_then(|slot| self.slots.get(slot));
        matches!(view, Some(None))
    }
}

#[cfg(test)]
mod tests;
