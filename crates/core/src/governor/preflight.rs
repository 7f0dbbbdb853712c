//! The check of a command before it changes an env: pure, on what the host knows already.
//!
//! Masks exclude most of this. The veto is the authority, because a controller may bypass masks.

use super::detector::LossVerdict;
use crate::env::ValMetrics;
use crate::growth::{LifecycleCommand, LifecycleOp};
use crate::seed::SlotView;

/// The name of the first objection to `command`. Pruning, advancing and retargeting stay possible under
/// suspicion, because a controller can help itself with them.
///
/// `val` is the step's. `slots` are in policy order, and `None` is an empty one. `max_seeds` limits live and committed
/// seeds, 0 = unlimited.
pub(super) fn veto(
    command: &LifecycleCommand,
    verdict: &LossVerdict,
    val: &ValMetrics,
    slots: &[Option<SlotView>],
    max_seeds: u32,
) -> Option<&'static str> {
    let op = command.op();
    if op == LifecycleOp::Wait {
        return None;
    }
    let is_suspect = matches!(verdict, LossVerdict::Suspect(_));
    let germinates = op == LifecycleOp::Germinate;
    let commits = op == LifecycleOp::Commit;
    let seeds = slots.iter().flatten().filter(|slot| slot.stage.is_occupied());
    let is_full = max_seeds > 0 && seeds.count() >= max_seeds as usize;
    let is_empty = |slot: usize| matches!(slots.get(slot), Some(None));
    let factors = [
        ("val_loss_finite", !val.loss.is_finite()),
        ("val_accuracy_finite", !val.accuracy_percent.is_finite()),
        ("pending_anomaly", is_suspect && (germinates || commits)),
        ("active_seed_capacity", germinates && is_full),
        ("slot_empty", germinates && !command.slot().is_some_and(is_empty)),
    ];
    let mut against = factors.into_iter().filter(|(_, speaks)| *speaks);
    against.next().map(|(name, _)| name)
}

#[cfg(test)]
mod tests;
