//! What may be chosen in a step: one set of valid members per head, derived from the lifecycle's own legality rule
//! (spec 03 §3).
//!
//! In: slot reports, blueprints per slot, limits. Out: a [`MaskSet`] per env and step. Modifiers - a controller's
//! `restrict`, a plugin, a governor - only clear bits; [`MaskSet::check`] then proves that something is left.

use smallvec::SmallVec;

use super::action::{HEADS, Head, HeadIndices, OPS, indices_of, relevant};
use super::choices::Choices;
use super::error::{DecisionPoint, PolicyError};
use crate::growth::{FailureReason, LifecycleCommand, LifecycleOp};
use crate::seed::{Limits, SeedReport, SlotView, legal};

/// A row of a [`MaskSet`] that a modifier may narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskRow {
    /// The slots that are valid for an op.
    Slots(LifecycleOp),
    /// The blueprints that are valid in a slot.
    Blueprints {
        slot: usize,
    },
    Style,
    Tempo,
    AlphaTarget,
    AlphaSpeed,
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
    enabled: Choices,
    slot_by_op: [Choices; OPS],
    blueprint_by_slot: SmallVec<[Choices; 4]>,
    /// In the order of [`Head::PARAMETERS`].
    parameters: [Choices; Head::PARAMETERS.len()],
    /// By slot, then op: why the lifecycle refuses; `None` = legal.
    refusals: SmallVec<[[Option<FailureReason>; OPS]; 4]>,
}

impl MaskSet {
    /// Masks of the step just measured. `reports` and `blueprints` are in slot order, one entry a slot.
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
            enabled: (0..views.len()).filter(|&slot| limits.enabled.contains(slot)).collect(),
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

    /// Number of slots, enabled or not.
    pub fn slots(&self) -> usize {
        self.blueprint_by_slot.len()
    }

    /// What a slot head holds where the slot does not matter.
    pub fn lowest_slot(&self) -> usize {
        self.enabled.lowest().unwrap_or(0)
    }

    /// The ops that are valid for at least one slot.
    pub fn ops(&self) -> Choices {
        (0..OPS).filter(|&op| !self.slot_by_op[op].is_empty()).collect()
    }

    pub fn allows_op(&self, op: LifecycleOp) -> bool {
        !self.slots_for(op).is_empty()
    }

    /// The slots that are valid for an op.
    pub fn slots_for(&self, op: LifecycleOp) -> Choices {
        self.slot_by_op[op.code()]
    }

    /// The blueprints that are valid in a slot; none for a slot that does not exist.
    pub fn blueprints_for(&self, slot: usize) -> Choices {
        self.blueprint_by_slot.get(slot).copied().unwrap_or(Choices::NONE)
    }

    /// Why the lifecycle refuses an op in a slot. `None` if it does not; a modifier may have hidden it nevertheless.
    pub fn refusal(&self, op: LifecycleOp, slot: usize) -> Option<&FailureReason> {
        self.refusals
            .get(slot)
            .map_or(Some(&FailureReason::SlotDisabled), |by_op| by_op[op.code()].as_ref())
    }

    /// All of a command's relevant choices are valid.
    pub fn allows(&self, command: &LifecycleCommand) -> bool {
        let op = command.op();
        let slot = command.slot().unwrap_or(self.lowest_slot());
        let indices = indices_of(command, self.lowest_slot());
        Head::ALL
            .into_iter()
            .all(|head| self.effective(head, op, slot).contains(indices[head as usize].into()))
    }

    /// What a command may not do, in words; `None` if it is allowed.
    pub fn objection(&self, command: &LifecycleCommand) -> Option<String> {
        if self.allows(command) {
            return None;
        }
        let refusal = command.slot().and_then(|slot| self.refusal(command.op(), slot));
        Some(refusal.map_or_else(|| "a choice is masked".into(), |reason| reason.to_string()))
    }

    /// The members of a head that are valid once op and slot are chosen; the placeholder alone where the head does
    /// not matter.
    pub fn effective(&self, head: Head, op: LifecycleOp, slot: usize) -> Choices {
        if !relevant(op, head) {
            return Choices::only(head.placeholder(self.lowest_slot()));
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

    /// Exactly one action is possible: nothing to decide, nothing to learn.
    pub fn is_forced(&self) -> bool {
        let Some(op) = self.ops().single().and_then(LifecycleOp::from_code) else {
            return false;
        };
        let slot = self.slots_for(op).lowest().unwrap_or(self.lowest_slot());
        Head::ALL
            .into_iter()
            .filter(|&head| relevant(op, head))
            .all(|head| self.effective(head, op, slot).len() == 1)
    }

    /// By head: it matters to the action, and only one member was valid.
    pub fn forced_heads(&self, indices: &HeadIndices) -> [bool; HEADS] {
        let slot = indices[Head::Slot as usize].into();
        let op = LifecycleOp::from_code(indices[Head::Op as usize].into());
        Head::ALL.map(|head| op.is_some_and(|op| relevant(op, head) && self.effective(head, op, slot).len() == 1))
    }

    /// Clears members of a row; the row may become empty, and with it an op invalid.
    pub fn clear(&mut self, row: MaskRow, members: Choices) {
        if let Some(row) = self.row_mut(row) {
            *row = *row & !members;
        }
    }

    /// Clears all members of a row but the given ones.
    ///
    /// # Errors
    /// None of them is valid; the masks are then unchanged.
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
    /// None of them is valid; the masks are then unchanged.
    pub fn keep_ops(&mut self, ops: &[LifecycleOp]) -> Result<(), PolicyError> {
        if !ops.iter().any(|&op| self.allows_op(op)) {
            return Err(PolicyError::NothingLeft { head: Head::Op });
        }
        for &op in LifecycleOp::ALL.iter().filter(|op| !ops.contains(op)) {
            self.clear(MaskRow::Slots(op), self.enabled);
        }
        Ok(())
    }

    /// Some op is valid, and every head that a valid op needs has a valid member in each slot it may be given.
    ///
    /// # Errors
    /// `EmptyMask` with the state of all slots: an empty mask must never reach a sampler, where it would turn into a
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

    /// Bools that [`write_row`](Self::write_row) writes for a host with `slots` slots and `blueprints` blueprints.
    pub const fn row_width(slots: usize, blueprints: usize) -> usize {
        let mut width = OPS * slots + slots * blueprints;
        let mut head = 0;
        while head < Head::PARAMETERS.len() {
            width += Head::PARAMETERS[head].size(slots, blueprints);
            head += 1;
        }
        width
    }

    /// The whole set as bools (spec 04 §3.1): slots by op, blueprints by slot, then the parameter heads. `row` has
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
                seed.slot, seed.stage, seed.age_epochs, seed.alpha_mode
            ),
        })
        .collect();
    slots.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::fixtures::{AT, CNN_BLUEPRINTS, empty, limits, masks, report};
    use crate::growth::{AlphaMode, SeedStage};
    use crate::seed::SlotSet;
    use LifecycleOp::*;

    type Reports = Vec<Option<SeedReport>>;

    fn ops(masks: &MaskSet) -> Vec<LifecycleOp> {
        masks.ops().iter().filter_map(LifecycleOp::from_code).collect()
    }

    fn slots(masks: &MaskSet, op: LifecycleOp) -> Vec<usize> {
        masks.slots_for(op).iter().collect()
    }

    fn with(slot: usize, seed: SeedReport) -> Reports {
        let mut reports = empty(3);
        reports[slot] = Some(seed);
        reports
    }

    fn aged(slot: usize, stage: SeedStage, age_epochs: u32) -> SeedReport {
        SeedReport {
            age_epochs,
            ..report(slot, stage)
        }
    }

    #[test]
    fn an_empty_host_may_germinate_anywhere() {
        let masks = masks(&empty(3), &limits(3));
        assert_eq!(ops(&masks), [Wait, Germinate]);
        assert_eq!(slots(&masks, Germinate), [0, 1, 2]);
        let blueprints: Vec<usize> = masks.blueprints_for(2).iter().collect();
        assert_eq!(blueprints, [1, 2, 3, 4, 5, 6, 7]);
        assert!(!masks.is_forced());
    }

    #[test]
    fn a_training_seed_may_be_pruned_from_age_five() {
        let young = masks(&with(0, aged(0, SeedStage::Training, 4)), &limits(3));
        assert_eq!(ops(&young), [Wait, Advance]);
        assert_eq!(
            young.refusal(Prune, 0),
            Some(&FailureReason::TooYoung { age: 4, min: 5 })
        );
        assert_eq!(young.refusal(Germinate, 1), Some(&FailureReason::DevelopingSeed));
        let old = masks(&with(0, aged(0, SeedStage::Training, 5)), &limits(3));
        assert_eq!(ops(&old), [Wait, Prune, Advance]);
    }

    #[test]
    fn a_blending_seed_leaves_the_other_slots_open() {
        let blending = SeedReport {
            alpha_mode: AlphaMode::Up,
            alpha: 0.3,
            ..aged(0, SeedStage::Blending, 12)
        };
        let default = masks(&with(0, blending.clone()), &limits(3));
        assert_eq!(ops(&default), [Wait, Germinate]);
        assert_eq!(slots(&default, Germinate), [1, 2]);

        let mut classic = limits(3);
        classic.mask_structural_gates = false;
        assert_eq!(ops(&masks(&with(0, blending), &classic)), [Wait, Germinate, Advance]);
    }

    #[test]
    fn all_six_ops_at_once() {
        let mut reports = with(0, aged(0, SeedStage::Blending, 12));
        reports[1] = Some(SeedReport {
            contribution: Some(1.5),
            ..aged(1, SeedStage::Holding, 20)
        });
        let known = masks(&reports, &limits(3));
        assert_eq!(
            ops(&known),
            [Wait, Germinate, SetAlphaTarget, Prune, Fossilize, Advance]
        );
        assert_eq!(slots(&known, Germinate), [2]);
        assert_eq!(slots(&known, SetAlphaTarget), [0, 1]);
        assert_eq!(slots(&known, Prune), [0, 1]);
        assert_eq!(slots(&known, Fossilize), [1]);
        assert_eq!(slots(&known, Advance), [0]);

        reports[1] = Some(aged(1, SeedStage::Holding, 20));
        assert!(!masks(&reports, &limits(3)).allows_op(Fossilize));
    }

    #[test]
    fn with_no_choice_left_the_step_is_forced() {
        let mut one_seed = limits(3);
        one_seed.max_seeds = 1;
        let full = masks(&with(1, report(1, SeedStage::Fossilized)), &one_seed);
        assert_eq!(ops(&full), [Wait]);
        assert!(full.is_forced());

        let cooling = masks(&with(0, report(0, SeedStage::Pruned)), &limits(3));
        assert_eq!(ops(&cooling), [Wait]);
        assert!(cooling.is_forced());
    }

    #[test]
    fn one_op_is_forced_only_when_each_of_its_heads_is() {
        let mut masks = masks(&empty(3), &limits(3));
        masks.keep_ops(&[Germinate]).unwrap();
        assert!(!masks.is_forced());

        let only = Choices::only;
        masks.keep(MaskRow::Slots(Germinate), only(2)).unwrap();
        masks.keep(MaskRow::Blueprints { slot: 2 }, only(3)).unwrap();
        masks.keep(MaskRow::Style, only(2)).unwrap();
        masks.keep(MaskRow::Tempo, only(1)).unwrap();
        assert!(!masks.is_forced());
        masks.keep(MaskRow::AlphaTarget, only(2)).unwrap();
        assert!(masks.is_forced());
        assert_eq!(
            masks.forced_heads(&[2, 3, 2, 1, 2, 0, 0, 1]),
            [true, true, true, true, true, false, false, true]
        );
    }

    #[test]
    fn automatic_gates_take_their_own_advance_away() {
        let mut automatic = limits(3);
        automatic.auto_forward.g1 = true;
        let germinated = masks(&with(0, report(0, SeedStage::Germinated)), &automatic);
        assert!(!germinated.allows_op(Advance));
        assert_eq!(germinated.refusal(Advance, 0), Some(&FailureReason::AdvanceDisabled));
        let training = masks(&with(0, report(0, SeedStage::Training)), &automatic);
        assert!(training.allows_op(Advance));
    }

    #[test]
    fn irrelevant_heads_hold_their_placeholder() {
        let masks = masks(&empty(3), &limits(3));
        let effective: Vec<Option<usize>> = Head::ALL
            .into_iter()
            .map(|head| masks.effective(head, Wait, 1).single())
            .collect();
        let placeholders = [0, 0, 2, 1, 2, 0, 0];
        assert_eq!(effective[..7], placeholders.map(Some));
        assert_eq!(masks.effective(Head::Op, Wait, 1).len(), 2);
        assert_eq!(masks.effective(Head::Blueprint, Germinate, 1).len(), 7);
    }

    #[test]
    fn keeping_only_what_is_illegal_is_an_error_and_changes_nothing() {
        let mut masks = masks(&with(0, aged(0, SeedStage::Training, 9)), &limits(3));
        let before = masks.clone();
        assert_eq!(
            masks.keep_ops(&[Fossilize]),
            Err(PolicyError::NothingLeft { head: Head::Op })
        );
        assert_eq!(
            masks.keep(MaskRow::Slots(Prune), Choices::only(1)),
            Err(PolicyError::NothingLeft { head: Head::Slot })
        );
        assert_eq!(masks, before);
    }

    #[test]
    fn clearing_a_wait_row_is_allowed_until_nothing_is_left() {
        let reports = empty(3);
        let mut masks = masks(&reports, &limits(3));
        masks.clear(MaskRow::Slots(Wait), Choices::first_n(3));
        assert_eq!(ops(&masks), [Germinate]);
        assert_eq!(masks.check(AT, &reports), Ok(()));
        masks.clear(MaskRow::Blueprints { slot: 1 }, Choices::first_n(13));
        let error = masks.check(AT, &reports).unwrap_err();
        assert_eq!(
            error.to_string(),
            "env 3, episode 11, step 7: no valid blueprint for GERMINATE is left; \
             slots: 0 empty, 1 empty, 2 empty"
        );
    }

    #[test]
    fn a_host_without_an_enabled_slot_is_refused() {
        let mut none = limits(3);
        none.enabled = SlotSet::default();
        let built = MaskSet::build(AT, &empty(3), &CNN_BLUEPRINTS[..3], &none);
        assert!(matches!(built, Err(PolicyError::EmptyMask { head: Head::Op, .. })));
        let short = MaskSet::build(AT, &empty(2), &CNN_BLUEPRINTS[..3], &limits(3));
        assert!(matches!(short, Err(PolicyError::WrongSlotCount { .. })));
    }

    #[test]
    fn a_disabled_slot_admits_nothing() {
        let mut two = limits(3);
        two.enabled = [1, 2].into_iter().collect();
        let masks = masks(&empty(3), &two);
        assert_eq!(slots(&masks, Wait), [1, 2]);
        assert_eq!(masks.lowest_slot(), 1);
        assert_eq!(masks.refusal(Germinate, 0), Some(&FailureReason::SlotDisabled));
        assert_eq!(masks.refusal(Wait, 9), Some(&FailureReason::SlotDisabled));
        let command = LifecycleCommand::Fossilize { slot: 300 };
        assert_eq!(masks.objection(&command).as_deref(), Some("the slot is disabled"));
    }
}
