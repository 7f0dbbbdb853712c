//! The seeds that a rollback blames and prunes.

use simic_engine::prelude::*;

use super::diary::{SEED_IN_LAST_SLOT, THREE_ENVS, nan_at_step, play, scenario_text};
use crate::recorded::ONE_SEED;

#[test]
fn a_seed_that_only_learns_from_the_host_survives_a_rollback_and_is_not_to_blame_for_it() {
    // Given a seed that trains from step 2 to step 12, and a host that breaks in step 8.
    let played = play(&scenario_text(THREE_ENVS, &nan_at_step(8)));
    let (before, after) = (played.page(1, 7), played.page(1, 8));
    let rollback = after.rollback.as_ref().expect("rolled back");

    // Then it continues to train, with its momentum, and survives.
    assert!(!rollback.blamed && rollback.pruned.is_empty());
    assert_eq!(rollback.raw_penalty, 0.0);
    let stages = [before, after].map(|page| page.stages[0]);
    assert_eq!(stages, [Some(SeedStage::Training); 2]);
    assert!(!after.is_momentum_zero);
    let mut seed = after.seeds[0].iter().flatten();
    assert!(seed.all(|&bits| f32::from_bits(bits).is_finite()));
    assert_ne!(played.page(1, 9).seeds, after.seeds);
    assert!(played.page(1, 20).stages[0].is_some_and(SeedStage::is_occupied));
}

#[test]
fn a_seed_that_stood_in_the_network_since_the_restored_state_is_to_blame_even_if_it_is_gone() {
    // Given a seed that blends from step 12 on and is pruned by the controller in step 18, and a host that breaks in step
    // 19, before any later state has proven itself.
    let entries = SEED_IN_LAST_SLOT.trim_end_matches(']').to_string()
        + r#"    (step: 18, command: prune(slot: "r0c2", speed: "instant", curve: "linear")),
]"#;
    let text = scenario_text(THREE_ENVS, &nan_at_step(19)).replace(ONE_SEED, &entries);
    let played = play(&text);

    let rollback = played.page(1, 19).rollback.clone().expect("rolled back");
    assert!(!played.page(1, 18).stages[2].unwrap().is_occupied());
    assert!(rollback.snapshot_step <= 18 && rollback.pruned.is_empty());
    assert!(rollback.blamed && rollback.raw_penalty == -10.0);
    let decisions = &played.stats[1].decisions;
    assert_eq!((decisions.pruned, decisions.lost), (1, 0), "the rollback found it gone");
}
