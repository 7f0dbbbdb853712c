use super::*;
use crate::growth::*;
use crate::growth::{Initiator, PruneReason};
use crate::scenario::LifecycleConfig;
use crate::seed::PruneOrder;
use crate::seed::fixtures::held;

/// What is wrong with a held seed after `change`.
fn error_after(change: impl FnOnce(&mut SeedRecord)) -> InvariantError {
    let mut seed = held(LifecycleConfig::default()).seed().clone();
    assert_eq!(validate_invariants(&seed), Ok(()));
    change(&mut seed);
    validate_invariants(&seed).expect_err("the record is impossible")
}

#[test]
fn impossible_records_are_told_apart() {
    let (from, to) = (SeedStage::Training, SeedStage::Holding);
    assert_eq!(
        error_after(|seed| seed.previous_stage = from),
        InvariantError::IllegalTransition { from, to }
    );
    assert_eq!(
        error_after(|seed| seed.stage = SeedStage::Dormant),
        InvariantError::NoSuchSeed(SeedStage::Dormant)
    );
    assert_eq!(
        error_after(|seed| seed.alpha.reset()),
        InvariantError::AlphaInStage {
            stage: to,
            alpha: 0.0,
            mode: AlphaMode::Hold
        }
    );
    assert_eq!(
        error_after(|seed| {
            seed.pending_prune = Some(PruneOrder {
                reason: PruneReason::Policy,
                initiator: Initiator::Policy,
            });
        }),
        InvariantError::StrayPendingPrune
    );
    assert_eq!(
        error_after(|seed| seed.cooldown_left = 2),
        InvariantError::CooldownInStage { stage: to, left: 2 }
    );
    assert_eq!(
        error_after(|seed| seed.gate_params = 81),
        InvariantError::StrayGate(AlphaAlgorithm::Add)
    );
    assert_eq!(
        error_after(|seed| seed.prune_reason = Some(PruneReason::Policy)),
        InvariantError::PruneReasonInStage(to)
    );
}
