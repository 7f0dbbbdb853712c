use super::*;
use crate::scenario::fixtures::slow_lifecycle;
use crate::seed::fixtures::limits;

fn strict_limits() -> Limits {
    limits(&slow_lifecycle())
}

/// An old, resting, measured seed at the alpha of its stage.
fn at(stage: SeedStage) -> SlotView {
    let alpha = match stage {
        SeedStage::Blending | SeedStage::Holding | SeedStage::Committed => 1.0,
        _ => 0.0,
    };
    SlotView {
        stage,
        age: 20,
        alpha_mode: AlphaMode::Hold,
        alpha,
        alpha_target: alpha,
        contribution_known: true,
        cooldown_left: 0,
    }
}

/// The ops that a lone slot admits.
fn ops(slot: Option<SlotView>, limits: &Limits) -> Vec<LifecycleOp> {
    let admits = |op: &LifecycleOp| legal(*op, 0, &[slot], limits).is_ok();
    LifecycleOp::ALL.iter().copied().filter(admits).collect()
}

#[test]
fn each_stage_admits_exactly_its_ops() {
    use LifecycleOp::{Advance, Commit, Germinate, Prune, SetAlphaTarget, Wait};
    use SeedStage::*;
    let limits = strict_limits();
    assert_eq!(command_legal(&LifecycleCommand::Wait, &[], &limits), Ok(()));
    assert_eq!(ops(None, &limits), [Wait, Germinate]);
    let table: [(SeedStage, &[LifecycleOp]); 8] = [
        (Germinated, &[Wait, Prune, Advance]),
        (Training, &[Wait, Prune, Advance]),
        (Blending, &[Wait, SetAlphaTarget, Prune, Advance]),
        (Holding, &[Wait, SetAlphaTarget, Prune, Commit]),
        (Committed, &[Wait]),
        (Pruned, &[Wait]),
        (Embargoed, &[Wait]),
        (Resetting, &[Wait]),
    ];
    for (stage, expected) in table {
        assert_eq!(ops(Some(at(stage)), &limits), expected, "{stage}");
    }
}

#[test]
fn automatic_gates_take_their_advance_away() {
    use SeedStage::{Blending, Germinated, Training};
    let mut limits = strict_limits();
    for (auto_forward, expected) in [(false, Ok(())), (true, Err(FailureReason::AdvanceDisabled))] {
        limits.auto_forward = auto_forward;
        for stage in [Germinated, Training, Blending] {
            let outcome = legal(LifecycleOp::Advance, 0, &[Some(at(stage))], &limits);
            assert_eq!(outcome, expected, "{stage}");
        }
    }
}

#[test]
fn attempts_without_hope_are_hidden() {
    let mut unmeasured = at(SeedStage::Holding);
    unmeasured.contribution_known = false;
    let mut half = at(SeedStage::Blending);
    (half.alpha, half.alpha_target) = (0.5, 0.5);
    for (op, seed, gate) in [
        (LifecycleOp::Commit, unmeasured, GateLevel::G5),
        (LifecycleOp::Advance, half, GateLevel::G3),
    ] {
        let outcome = legal(op, 0, &[Some(seed)], &strict_limits());
        assert_eq!(outcome, Err(FailureReason::GateFailed { gate }));
    }
}

#[test]
fn a_moving_alpha_and_a_young_age_forbid_pruning() {
    let limits = strict_limits();
    let prune = |seed| legal(LifecycleOp::Prune, 0, &[Some(seed)], &limits);
    let mut moving = at(SeedStage::Blending);
    moving.alpha_mode = AlphaMode::Up;
    let busy = FailureReason::AlphaBusy { mode: AlphaMode::Up };
    assert_eq!(prune(moving), Err(busy));
    let mut young = at(SeedStage::Training);
    young.age = 4;
    assert_eq!(prune(young), Err(FailureReason::TooYoung { age: 4, min: 5 }));
    assert_eq!(prune(SlotView { age: 5, ..young }), Ok(()));
}

#[test]
fn germination_waits_for_developing_neighbours_but_not_for_blended_ones() {
    use SeedStage::*;
    let mut limits = strict_limits();
    let next_to = |stage, limits: &Limits| legal(LifecycleOp::Germinate, 1, &[Some(at(stage)), None], limits);
    for stage in [Germinated, Training, Pruned, Embargoed, Resetting] {
        assert_eq!(next_to(stage, &limits), Err(FailureReason::DevelopingSeed), "{stage}");
    }
    for stage in [Blending, Holding, Committed] {
        assert_eq!(next_to(stage, &limits), Ok(()), "{stage}");
    }
    limits.sequential_germination = false;
    assert_eq!(next_to(Training, &limits), Ok(()));
}

#[test]
fn a_germination_is_refused_by_name() {
    let mut limits = strict_limits();
    let held = Some(at(SeedStage::Holding));
    let mut cooling = at(SeedStage::Embargoed);
    cooling.cooldown_left = 3;
    let (cooling, stage, left) = (Some(cooling), SeedStage::Embargoed, 3);
    for (max_seeds, slot, first, refusal) in [
        (0, 0, held, FailureReason::SlotOccupied),
        (0, 0, cooling, FailureReason::Cooldown { stage, left }),
        (1, 1, held, FailureReason::SeedLimit),
        (1, 1, cooling, FailureReason::DevelopingSeed),
        (1, 2, None, FailureReason::SlotDisabled),
    ] {
        limits.max_seeds = max_seeds;
        let outcome = legal(LifecycleOp::Germinate, slot, &[first, None], &limits);
        assert_eq!(outcome, Err(refusal));
    }
}
