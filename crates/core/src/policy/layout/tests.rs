use super::*;

#[test]
fn logit_vectors_have_known_sizes() {
    let width = |conditioning, slots| LogitLayout::new(conditioning, slots, 13).width();
    let per_op = [1, 3, 5, 10].map(|slots| width(HeadConditioning::PerOp, slots));
    assert_eq!(per_op, [59, 69, 79, 104]);
    assert_eq!(width(HeadConditioning::Shared, 3), 41);
}

#[test]
fn an_op_has_its_own_row_of_every_head_that_several_ops_use() {
    let layout = LogitLayout::new(HeadConditioning::PerOp, 3, 13);
    for (head, op, expected) in [
        (Head::Op, LifecycleOp::Prune, 0..6),
        (Head::Slot, LifecycleOp::Germinate, 6..9),
        (Head::Slot, LifecycleOp::Advance, 18..21),
        (Head::Blueprint, LifecycleOp::Germinate, 21..34),
        (Head::Style, LifecycleOp::SetAlphaTarget, 38..42),
        (Head::AlphaCurve, LifecycleOp::Prune, 64..69),
    ] {
        assert_eq!(layout.columns(head, op, 0), expected, "{head} of {op}");
    }
    let shared = LogitLayout::new(HeadConditioning::Shared, 3, 13);
    assert_eq!(shared.columns(Head::Slot, LifecycleOp::Advance, 0), 6..9);
}

#[test]
fn a_slot_has_its_own_row_of_blueprints_if_asked_for() {
    let layout = LogitLayout::new(HeadConditioning::PerSlot, 3, 13);
    let of_slot = |slot| layout.columns(Head::Blueprint, LifecycleOp::Germinate, slot);
    assert_eq!([0, 1, 2].map(of_slot), [21..34, 34..47, 47..60]);
    assert_eq!(layout.columns(Head::Style, LifecycleOp::SetAlphaTarget, 2), 64..68);
    assert_eq!(layout.width(), 69 + 2 * 13);
}
