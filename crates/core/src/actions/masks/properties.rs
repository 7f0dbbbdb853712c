//! Properties of masks in any state of any slot.

use proptest::prelude::*;

use super::*;
use crate::actions::fixtures::{AT, any_limits, any_reports, commands, masks};
use crate::growth::LifecycleOp;
use crate::seed::{SlotView, command_legal, legal};

proptest! {
    #[test]
    fn masks_are_read_as_they_were_written(reports in any_reports(3), limits in any_limits()) {
        let masks = masks(&reports, &limits);
        let mut row = vec![false; MaskSet::row_width(3, 8)];
        masks.write_row(8, &mut row);

        let read = MaskSet::of_row(3, 8, &row).unwrap();

        let mut again = vec![false; row.len()];
        read.write_row(8, &mut again);
        prop_assert_eq!(again, row);
        prop_assert_eq!((read.ops(), read.is_forced()), (masks.ops(), masks.is_forced()));
        prop_assert!(MaskSet::of_row(2, 8, &[true; 3]).is_none());
    }

    #[test]
    fn masks_say_what_the_lifecycle_says(reports in any_reports(3), limits in any_limits()) {
        let masks = masks(&reports, &limits);
        let views: Vec<_> = reports.iter().map(|r| r.as_ref().map(SlotView::from)).collect();
        for op in LifecycleOp::ALL.iter().copied() {
            for slot in 0..3 {
                let verdict = legal(op, slot, &views, &limits);
                prop_assert_eq!(masks.slots_for(op).contains(slot), verdict.is_ok());
                prop_assert_eq!(masks.refusal(op, slot).cloned(), verdict.err());
            }
        }
        for command in commands(3) {
            prop_assert_eq!(masks.allows(&command), command_legal(&command, &views, &limits).is_ok());
        }
    }

    #[test]
    fn no_mask_is_ever_empty(reports in any_reports(3), limits in any_limits()) {
        let masks = masks(&reports, &limits);
        prop_assert!(masks.allows_op(LifecycleOp::Wait));
        for op in masks.ops().iter().filter_map(LifecycleOp::from_code) {
            for slot in masks.slots_for(op).iter() {
                for head in Head::ALL {
                    prop_assert!(!masks.effective(head, op, slot).is_empty());
                }
            }
        }
    }

    #[test]
    fn modifiers_only_clear_bits_and_never_hide_an_empty_head(
        reports in any_reports(3),
        limits in any_limits(),
        slot_bits in prop::collection::vec(0usize..8, 6),
        blueprint_bits in prop::collection::vec(0usize..256, 3),
    ) {
        let before = masks(&reports, &limits);
        let mut after = before.clone();
        let set = |bits: usize| (0..8).filter(|bit| bits >> bit & 1 == 1).collect::<Choices>();
        for (op, &bits) in LifecycleOp::ALL.iter().zip(&slot_bits) {
            after.clear(MaskRow::Slots(*op), set(bits));
        }
        for (slot, &bits) in blueprint_bits.iter().enumerate() {
            after.clear(MaskRow::Blueprints { slot }, set(bits));
        }
        for op in LifecycleOp::ALL.iter().copied() {
            prop_assert_eq!(after.slots_for(op) & before.slots_for(op), after.slots_for(op));
        }
        let mut germinating = after.slots_for(LifecycleOp::Germinate).iter();
        let has_empty_blueprints = germinating.any(|slot| after.blueprints_for(slot).is_empty());
        let is_empty = after.ops().is_empty() || has_empty_blueprints;
        prop_assert_eq!(after.check(AT, &reports).is_err(), is_empty);
    }
}
