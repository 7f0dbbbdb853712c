use super::*;
use crate::growth::PruneReason;
use crate::scenario::fixtures::slow_lifecycle;
use crate::seed::fixtures::{GOVERNOR, held};

/// A held seed breaks `law` after `change`.
#[track_caller]
fn assert_breaks(law: &str, change: impl FnOnce(&mut SeedRecord)) {
    let mut seed = held(slow_lifecycle()).seed().clone();
    assert_eq!(broken_law(&seed), None);
    change(&mut seed);
    assert_eq!(broken_law(&seed), Some(law));
}

#[test]
fn impossible_records_are_distinguished() {
    let law = "the stage is occupied or cooling";
    assert_breaks(law, |seed| seed.stage = SeedStage::Dormant);
    let law = "alpha rests at the value of its stage";
    assert_breaks(law, |seed| seed.alpha.reset());
    let law = "a prune is pending exactly if alpha moves down to 0 in BLENDING";
    assert_breaks(law, |seed| seed.pending_prune = Some(GOVERNOR));
    let law = "embargo is left in EMBARGOED only";
    assert_breaks(law, |seed| seed.cooldown_left = 2);
    let law = "gate parameters come with the operator GATE only";
    assert_breaks(law, |seed| seed.gate_params = 81);
    let law = "a prune reason is set exactly in cooling stages";
    assert_breaks(law, |seed| seed.prune_reason = Some(PruneReason::Policy));
}
