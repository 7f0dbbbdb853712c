use super::*;
use crate::actions::fixtures::{AT, CNN_BLUEPRINTS, empty, limits, masks, report};
use crate::growth::SeedStage;
use LifecycleOp::*;

fn ops(masks: &MaskSet) -> Vec<LifecycleOp> {
    masks.ops().iter().filter_map(LifecycleOp::from_code).collect()
}

fn slots(masks: &MaskSet, op: LifecycleOp) -> Vec<usize> {
    masks.slots_for(op).iter().collect()
}

/// A host with seeds of these ages.
fn with(seeds: &[(usize, SeedStage, u32)]) -> Vec<Option<SeedReport>> {
    let mut reports = empty(3);
    for &(slot, stage, age_steps) in seeds {
        let seed = reports[slot].insert(report(slot, stage));
        seed.age_steps = age_steps;
    }
    reports
}

#[test]
fn an_empty_host_may_germinate_anywhere() {
    let masks = masks(&empty(3), &limits());
    assert_eq!(ops(&masks), [Wait, Germinate]);
    assert_eq!(slots(&masks, Germinate), [0, 1, 2]);
    assert_eq!(masks.blueprints_for(2), Choices::first_n(8).without(0));
    assert!(!masks.is_forced());
}

#[test]
fn all_six_ops_at_once_each_in_its_slots() {
    let mut reports = with(&[(0, SeedStage::Blending, 12), (1, SeedStage::Holding, 20)]);
    assert!(!masks(&reports, &limits()).allows_op(Commit));
    reports[1].as_mut().unwrap().contribution = Some(1.5);
    let known = masks(&reports, &limits());
    let by_op = LifecycleOp::ALL.map(|op| slots(&known, op));
    assert_eq!(by_op, [&[0, 1, 2][..], &[2], &[0, 1], &[0, 1], &[1], &[0]]);

    let young = masks(&with(&[(1, SeedStage::Training, 4)]), &limits());
    assert!(!young.allows_op(Commit));
    let too_young = FailureReason::TooYoung { age: 4, min: 5 };
    assert_eq!(young.refusal(Prune, 1), Some(&too_young));
}

#[test]
fn with_no_choice_left_the_step_is_forced() {
    let mut one_seed = limits();
    one_seed.max_seeds = 1;
    let full = masks(&with(&[(1, SeedStage::Committed, 1)]), &one_seed);
    assert_eq!(ops(&full), [Wait]);
    assert!(full.is_forced());

    let cooling = masks(&with(&[(0, SeedStage::Pruned, 1)]), &limits());
    assert_eq!(ops(&cooling), [Wait]);
    assert!(cooling.is_forced());
}

#[test]
fn one_op_is_forced_only_when_each_of_its_heads_is() {
    let mut masks = masks(&empty(3), &limits());
    masks.keep_ops(&[Germinate]).unwrap();
    for (row, member) in [
        (MaskRow::Slots(Germinate), 2),
        (MaskRow::Blueprints { slot: 2 }, 3),
        (MaskRow::Style, 2),
        (MaskRow::Tempo, 1),
        (MaskRow::AlphaTarget, 2),
    ] {
        assert!(!masks.is_forced());
        masks.keep(row, Choices::only(member)).unwrap();
    }
    assert!(masks.is_forced());
    let forced = masks.forced_heads(&[2, 3, 2, 1, 2, 0, 0, 1]);
    assert_eq!(forced, [true, true, true, true, true, false, false, true]);
}

#[test]
fn irrelevant_heads_hold_their_placeholder() {
    let masks = masks(&empty(3), &limits());
    let effective = Head::ALL.map(|head| masks.effective(head, Wait, 1).single());
    assert_eq!(effective[..7], [0, 0, 2, 1, 2, 0, 0].map(Some));
    assert_eq!(masks.effective(Head::Op, Wait, 1).len(), 2);
    assert_eq!(masks.effective(Head::Blueprint, Germinate, 1).len(), 7);
}

#[test]
fn keeping_only_what_is_illegal_is_an_error_and_changes_nothing() {
    let mut masks = masks(&with(&[(0, SeedStage::Training, 9)]), &limits());
    let before = masks.clone();
    let refused = |head| Err(PolicyError::NothingLeft { head });
    assert_eq!(masks.keep_ops(&[Commit]), refused(Head::Op));
    let slots = MaskRow::Slots(Prune);
    assert_eq!(masks.keep(slots, Choices::only(1)), refused(Head::Slot));
    assert_eq!(masks, before);
}

#[test]
fn clearing_a_wait_row_is_allowed_until_nothing_is_left() {
    let reports = empty(3);
    let mut masks = masks(&reports, &limits());
    masks.clear(MaskRow::Slots(Wait), Choices::first_n(3));
    assert_eq!(ops(&masks), [Germinate]);
    assert_eq!(masks.check(AT, &reports), Ok(()));
    masks.clear(MaskRow::Blueprints { slot: 1 }, Choices::first_n(13));
    let error = masks.check(AT, &reports).unwrap_err();
    let why = "no valid blueprint for GERMINATE is left; slots: 0 empty, 1 empty, 2 empty";
    assert_eq!(error.to_string(), format!("env 3, episode 11, step 7: {why}"));
}

#[test]
fn a_host_without_a_slot_is_refused() {
    let built = MaskSet::build(AT, &[], &[], &limits());
    assert!(matches!(built, Err(PolicyError::EmptyMask { head: Head::Op, .. })));
    let short = MaskSet::build(AT, &empty(2), &CNN_BLUEPRINTS[..3], &limits());
    assert!(matches!(short, Err(PolicyError::WrongSlotCount { .. })));
}

#[test]
fn a_slot_that_the_host_does_not_have_admits_nothing() {
    let masks = masks(&empty(3), &limits());
    assert_eq!(slots(&masks, Wait), [0, 1, 2]);
    assert_eq!(masks.refusal(Germinate, 3), Some(&FailureReason::SlotDisabled));
    assert_eq!(masks.refusal(Wait, 9), Some(&FailureReason::SlotDisabled));
    let command = LifecycleCommand::Commit { slot: 300 };
    assert_eq!(masks.objection(&command).as_deref(), Some("the slot is disabled"));
}
