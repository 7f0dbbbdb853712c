use super::*;
use crate::actions::fixtures::{AT, CNN_BLUEPRINTS, empty, limits, masks, report};
use crate::growth::{AlphaMode, SeedStage};
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

fn aged(slot: usize, stage: SeedStage, age_steps: u32) -> SeedReport {
    SeedReport {
        age_steps,
        ..report(slot, stage)
    }
}

#[test]
fn an_empty_host_may_germinate_anywhere() {
    let masks = masks(&empty(3), &limits());
    assert_eq!(ops(&masks), [Wait, Germinate]);
    assert_eq!(slots(&masks, Germinate), [0, 1, 2]);
    let blueprints: Vec<usize> = masks.blueprints_for(2).iter().collect();
    assert_eq!(blueprints, [1, 2, 3, 4, 5, 6, 7]);
    assert!(!masks.is_forced());
}

#[test]
fn a_training_seed_may_be_pruned_from_age_five() {
    let young = masks(&with(0, aged(0, SeedStage::Training, 4)), &limits());
    assert_eq!(ops(&young), [Wait, Advance]);
    assert_eq!(
        young.refusal(Prune, 0),
        Some(&FailureReason::TooYoung { age: 4, min: 5 })
    );
    assert_eq!(young.refusal(Germinate, 1), Some(&FailureReason::DevelopingSeed));
    let old = masks(&with(0, aged(0, SeedStage::Training, 5)), &limits());
    assert_eq!(ops(&old), [Wait, Prune, Advance]);
}

#[test]
fn a_blending_seed_leaves_the_other_slots_open() {
    let blending = SeedReport {
        alpha_mode: AlphaMode::Up,
        alpha: 0.3,
        ..aged(0, SeedStage::Blending, 12)
    };
    let default = masks(&with(0, blending.clone()), &limits());
    assert_eq!(ops(&default), [Wait, Germinate]);
    assert_eq!(slots(&default, Germinate), [1, 2]);

    let mut classic = limits();
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
    let known = masks(&reports, &limits());
    assert_eq!(ops(&known), [Wait, Germinate, SetAlphaTarget, Prune, Commit, Advance]);
    assert_eq!(slots(&known, Germinate), [2]);
    assert_eq!(slots(&known, SetAlphaTarget), [0, 1]);
    assert_eq!(slots(&known, Prune), [0, 1]);
    assert_eq!(slots(&known, Commit), [1]);
    assert_eq!(slots(&known, Advance), [0]);

    reports[1] = Some(aged(1, SeedStage::Holding, 20));
    assert!(!masks(&reports, &limits()).allows_op(Commit));
}

#[test]
fn with_no_choice_left_the_step_is_forced() {
    let mut one_seed = limits();
    one_seed.max_seeds = 1;
    let full = masks(&with(1, report(1, SeedStage::Committed)), &one_seed);
    assert_eq!(ops(&full), [Wait]);
    assert!(full.is_forced());

    let cooling = masks(&with(0, report(0, SeedStage::Pruned)), &limits());
    assert_eq!(ops(&cooling), [Wait]);
    assert!(cooling.is_forced());
}

#[test]
fn one_op_is_forced_only_when_each_of_its_heads_is() {
    let mut masks = masks(&empty(3), &limits());
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
    let mut automatic = limits();
    automatic.auto_forward.g1 = true;
    let germinated = masks(&with(0, report(0, SeedStage::Germinated)), &automatic);
    assert!(!germinated.allows_op(Advance));
    assert_eq!(germinated.refusal(Advance, 0), Some(&FailureReason::AdvanceDisabled));
    let training = masks(&with(0, report(0, SeedStage::Training)), &automatic);
    assert!(training.allows_op(Advance));
}

#[test]
fn irrelevant_heads_hold_their_placeholder() {
    let masks = masks(&empty(3), &limits());
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
    let mut masks = masks(&with(0, aged(0, SeedStage::Training, 9)), &limits());
    let before = masks.clone();
    assert_eq!(
        masks.keep_ops(&[Commit]),
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
    let mut masks = masks(&reports, &limits());
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
