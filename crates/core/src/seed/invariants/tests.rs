use super::*;
use crate::growth::{Initiator, PruneReason};
use crate::seed::PruneOrder;
use crate::seed::fixtures::held;

/// The law that a held seed breaks after `change`.
fn broken_after(change: impl FnOnce(&mut SeedRecord)) -> &'static str {
    let mut seed = held(crate::scenario::fixtures::slow_lifecycle()).seed().clone();
    assert_eq!(broken_law(&seed), None);
    change(&mut seed);
    broken_law(&seed).expect("the record is impossible")
}

#[test]
fn impossible_records_are_told_apart() {
    assert_eq!(
        broken_after(|seed| seed.previous_stage = SeedStage::Training),
        "the previous stage may precede the stage"
    );
    assert_eq!(
        broken_after(|seed| seed.stage = SeedStage::Dormant),
        "the stage is occupied or cooling"
    );
    assert_eq!(
        broken_after(|seed| seed.alpha.reset()),
        "alpha rests at the value of its stage"
    );
    assert_eq!(
        broken_after(|seed| {
            seed.pending_prune = Some(PruneOrder {
                reason: PruneReason::Policy,
                initiator: Initiator::Policy,
            });
        }),
        "a prune is pending exactly if alpha moves down to 0 in BLENDING"
    );
    assert_eq!(
        broken_after(|seed| seed.cooldown_left = 2),
        "embargo is left in EMBARGOED only"
    );
    assert_eq!(
        broken_after(|seed| seed.gate_params = 81),
        "gate parameters come with the operator GATE only"
    );
    assert_eq!(
        broken_after(|seed| seed.prune_reason = Some(PruneReason::Policy)),
        "a prune reason is set exactly in cooling stages"
    );
}
