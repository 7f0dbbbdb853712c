//! Valid choices of a step: one set of valid members per head, derived from the lifecycle's own legality rule.
//!
//! Slot reports, blueprints per slot and limits are turned into a [`MaskSet`] per env and step. Modifiers (a controller's
//! `restrict`, a plugin, a governor) only clear bits. [`MaskSet::check`] then checks that a choice is left.

use smallvec::SmallVec;

use super::choices::Choices;
use super::commands::indices_of;
use super::error::{DecisionPoint, PolicyError};
use super::heads::{HEADS, Head, HeadIndices, OPS, relevant};
use crate::growth::{FailureReason, LifecycleCommand, LifecycleOp};
use crate::seed::{Limits, SeedReport, SlotView, legal};

/// A row of a [`MaskSet`] that a modifier may narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskRow {
    /// The slots that are valid for an op.
    Slots(LifecycleOp),
    /// The blueprints that are valid in a slot.
    Blueprints {
        /// Index of the slot.
        slot: usize,
    },
    /// The valid styles, alike for all slots.
    Style,
    /// The valid lengths of a first blend, alike for all slots.
    Tempo,
    /// The valid amplitudes to blend to, alike for all slots.
    AlphaTarget,
    /// The valid lengths of a later ramp, alike for all slots.
    AlphaSpeed,
    /// The valid curves of a later ramp, alike for all slots.
    AlphaCurve,
}

impl MaskRow {
    /// The head that the row belongs to.
    pub const fn head(self) -> Head {
        match self {
            Self::Slots(_) => Head::Slot,
            Self::Blueprints { .. } => Head::Blueprint,
            Self::Style => Head::Style,
            Self::Tempo => Head::Tempo,
            Self::AlphaTarget => Head::AlphaTarget,
            Self::AlphaSpeed => Head::AlphaSpeed,
            Self::AlphaCurve => Head::AlphaCurve,
        }
    }
}

/// The valid choices of one env in one step.
///
/// The op mask is derived from the slot rows and cannot disagree with them.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskSet {
    slot_by_op: [Choices; OPS],
    blueprint_by_slot: SmallVec<[Choices; 4]>,
    /// In the order of [`Head::PARAMETERS`].
    parameters: [Choices; Head::PARAMETERS.len()],
    /// The reason why the lifecycle refuses, by slot, then op. `None` if the op is legal.
    refusals: SmallVec<[[Option<FailureReason>; OPS]; 4]>,
}

impl MaskSet {
    /// Masks of the step just measured. `reports` and `blueprints` are in slot order, one entry per slot.
    ///
    /// # Errors
    /// Another number of reports than slots, or an op without any valid choice (a bug).
    pub fn build(
        at: DecisionPoint,
        reports: &[Option<SeedReport>],
        blueprints: &[Choices],
        limits: &Limits,
    ) -> Result<Self, PolicyError> {
        if reports.len() != blueprints.len() {
            return Err(PolicyError::WrongSlotCount {
                at,
                reports: reports.len(),
                slots: blueprints.len(),
            });
        }
        let views: SmallVec<[Option<SlotView>; 4]> = reports
            .iter()
            .map(|report| report.as_ref().map(SlotView::from))
            .collect();
        let refusals: SmallVec<[[Option<FailureReason>; OPS]; 4]> = (0..views.len())
            .map(|slot| std::array::from_fn(|op| legal(LifecycleOp::ALL[op], slot, &views, limits).err()))
            .collect();
        let masks = Self {
            slot_by_op: std::array::from_fn(|op| {
                (0..refusals.len())
                    .filter(|&slot| refusals[slot][op].is_none())
                    .collect()
            }),
            blueprint_by_slot: blueprints.into(),
            parameters: Head::PARAMETERS.map(|head| Choices::first_n(head.size(0, 0))),
            refusals,
        };
        masks.check(at, reports)?;
        Ok(masks)
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.blueprint_by_slot.len()
    }

    /// The ops that are valid for at least one slot.
    pub fn ops(&self) -> Choices {
        (0..OPS).filter(|&op| !self.slot_by_op[op].is_empty()).collect()
    }

    /// Returns whether the op is valid for at least one slot.
    pub fn allows_op(&self, op: LifecycleOp) -> bool {
        !self.slots_for(op).is_empty()
    }

    /// The slots that are valid for an op.
    pub fn slots_for(&self, op: LifecycleOp) -> Choices {
        self.slot_by_op[op.code()]
    }

    /// The blueprints that are valid in a slot. Empty for a slot that doesn't exist.
    pub fn blueprints_for(&self, slot: usize) -> Choices {
        self.blueprint_by_slot.get(slot).copied().unwrap_or(Choices::NONE)
    }

    /// The reason why the lifecycle refuses an op in a slot. `None` if it doesn't, although a modifier may have hidden the op.
    pub fn refusal(&self, op: LifecycleOp, slot: usize) -> Option<&FailureReason> {
        self.refusals
            .get(slot)
            .map_or(Some(&FailureReason::SlotDisabled), |by_op| by_op[op.code()].as_ref())
    }

    /// Returns whether all of a command's relevant choices are valid.
    pub fn allows(&self, command: &LifecycleCommand) -> bool {
        let op = command.op();
        let slot = command.slot().unwrap_or(0);
        let indices = indices_of(command);
        Head::ALL
            .into_iter()
            .all(|head| self.effective(head, op, slot).contains(indices[head as usize].into()))
    }

    /// The reason why a command is illegal, in words. `None` if it is allowed.
    pub fn objection(&self, command: &LifecycleCommand) -> Option<String> {
        if self.allows(command) {
            return None;
        }
        let refusal = command.slot().and_then(|slot| self.refusal(command.op(), slot));
        Some(refusal.map_or_else(|| "a choice is masked".into(), |reason| reason.to_string()))
    }

    /// The members of a head that are valid once op and slot are chosen. Only the placeholder if the head doesn't matter.
    pub fn effective(&self, head: Head, op: LifecycleOp, slot: usize) -> Choices {
        if !relevant(op, head) {
            return Choices::only(head.placeholder());
        }
        self.row(match head {
            Head::Op => return self.ops(),
            Head::Slot => MaskRow::Slots(op),
            Head::Blueprint => MaskRow::Blueprints { slot },
            Head::Style => MaskRow::Style,
            Head::Tempo => MaskRow::Tempo,
            Head::AlphaTarget => MaskRow::AlphaTarget,
            Head::AlphaSpeed => MaskRow::AlphaSpeed,
            Head::AlphaCurve => MaskRow::AlphaCurve,
        })
    }

    /// Returns whether exactly one action is possible, so that there is nothing to decide and nothing to learn.
    pub fn is_forced(&self) -> bool {
        let Some(op) = self.ops().single().and_then(LifecycleOp::from_code) else {
            return false;
        };
        let slot = self.slots_for(op).lowest().unwrap_or(0);
        Head::ALL
            .into_iter()
            .filter(|&head| relevant(op, head))
            .all(|head| self.effective(head, op, slot).len() == 1)
    }

    /// By head: whether it matters to the action and only one member was valid.
    pub fn forced_heads(&self, indices: &HeadIndices) -> [bool; HEADS] {
        let slot = indices[Head::Slot as usize].into();
        let op = LifecycleOp::from_code(indices[Head::Op as usize].into());
        Head::ALL.map(|head| op.is_some_and(|op| relevant(op, head) && self.effective(head, op, slot).len() == 1))
    }

    /// Clears members of a row. If the row becomes empty, an op may become invalid.
    pub fn clear(&mut self, row: MaskRow, members: Choices) {
        if let Some(row) = self.row_mut(row) {
            *row = *row & !members;
        }
    }

    /// Clears all members of a row but the given ones.
    ///
    /// # Errors
    /// If none of them is valid. The masks are then unchanged.
    pub fn keep(&mut self, row: MaskRow, members: Choices) -> Result<(), PolicyError> {
        if (self.row(row) & members).is_empty() {
            return Err(PolicyError::NothingLeft { head: row.head() });
        }
        self.clear(row, !members);
        Ok(())
    }

    /// Makes all ops but the given ones invalid.
    ///
    /// # Errors
    /// If none of them is valid. The masks are then unchanged.
    pub fn keep_ops(&mut self, ops: &[LifecycleOp]) -> Result<(), PolicyError> {
        if !ops.iter().any(|&op| self.allows_op(op)) {
            return Err(PolicyError::NothingLeft { head: Head::Op });
        }
        for &op in LifecycleOp::ALL.iter().filter(|op| !ops.contains(op)) {
            self.clear(MaskRow::Slots(op), !Choices::NONE);
        }
        Ok(())
    }

    /// Checks that some op is valid, and that every head that a valid op needs has a valid member in each slot of the op.
    ///
    /// # Errors
    /// `EmptyMask` with the state of all slots. An empty mask must never reach a sampler, which would turn it into a
    /// choice among illegal actions.
    pub fn check(&self, at: DecisionPoint, reports: &[Option<SeedReport>]) -> Result<(), PolicyError> {
        match self.empty_head() {
            None => Ok(()),
            Some((head, op)) => Err(PolicyError::EmptyMask {
                at,
                head,
                op,
                dump: describe_slots(reports),
            }),
        }
    }

    fn empty_head(&self) -> Option<(Head, Option<LifecycleOp>)> {
        if self.ops().is_empty() {
            return Some((Head::Op, None));
        }
        LifecycleOp::ALL.iter().find_map(|&op| {
            self.slots_for(op).iter().find_map(|slot| {
                Head::ALL
                    .into_iter()
                    .find(|&head| self.effective(head, op, slot).is_empty())
                    .map(|head| (head, Some(op)))
            })
        })
    }

    /// Number of bools that [`write_row`](Self::write_row) writes for a host with `slots` slots and `blueprints` blueprints.
    pub const fn row_width(slots: usize, blueprints: usize) -> usize {
        let mut width = OPS * slots + slots * blueprints;
        let mut head = 0;
        while head < Head::PARAMETERS.len() {
            width += Head::PARAMETERS[head].size(slots, blueprints);
            head += 1;
        }
        width
    }

    /// Writes the whole set as bools: slots by op, blueprints by slot, then the parameter heads. `row` has
    /// [`row_width`](Self::row_width) elements.
    pub fn write_row(&self, blueprints: usize, row: &mut [bool]) {
        let slots = self.slots();
        let by_op = self.slot_by_op.iter().map(|&valid| (valid, slots));
        let by_slot = self.blueprint_by_slot.iter().map(|&valid| (valid, blueprints));
        let parameters = Head::PARAMETERS.iter().map(|head| head.size(slots, blueprints));
        let parameters = self.parameters.iter().copied().zip(parameters);
        let members = by_op
            .chain(by_slot)
            .chain(parameters)
            .flat_map(|(valid, size)| (0..size).map(move |member| valid.contains(member)));
        for (cell, is_valid) in row.iter_mut().zip(members) {
            *cell = is_valid;
        }
    }

    /// The set that [`write_row`](Self::write_row) has written, without the reasons of refusals. `None` if the length is wrong.
    pub fn of_row(slots: usize, blueprints: usize, row: &[bool]) -> Option<Self> {
        if row.len() != Self::row_width(slots, blueprints) {
            return None;
        }
        let mut rest = row;
        let mut next = |size: usize| -> Choices {
            let (members, others) = rest.split_at(size);
            rest = others;
            (0..size).filter(|&member| members[member]).collect()
        };
        Some(Self {
            slot_by_op: std::array::from_fn(|_| next(slots)),
            blueprint_by_slot: (0..slots).map(|_| next(blueprints)).collect(),
            parameters: Head::PARAMETERS.map(|head| next(head.size(slots, blueprints))),
            refusals: SmallVec::new(),
        })
    }

    fn row(&self, row: MaskRow) -> Choices {
        match row {
            MaskRow::Slots(op) => self.slots_for(op),
            MaskRow::Blueprints { slot } => self.blueprints_for(slot),
            _ => self.parameters[row.head() as usize - Head::PARAMETERS[0] as usize],
        }
    }

    fn row_mut(&mut self, row: MaskRow) -> Option<&mut Choices> {
        match row {
            MaskRow::Slots(op) => Some(&mut self.slot_by_op[op.code()]),
            MaskRow::Blueprints { slot } => self.blueprint_by_slot.get_mut(slot),
            _ => Some(&mut self.parameters[row.head() as usize - Head::PARAMETERS[0] as usize]),
        }
    }
}

fn describe_slots(reports: &[Option<SeedReport>]) -> String {
    let slots: Vec<String> = reports
        .iter()
        .enumerate()
        .map(|(slot, report)| match report {
            None => format!("{slot} empty"),
            Some(seed) => format!(
                "{} {} age {} alpha {}",
                seed.slot, seed.stage, seed.age_steps, seed.alpha_mode
            ),
        })
        .collect();
    slots.join(", ")
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
