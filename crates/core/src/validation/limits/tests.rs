use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::growth::SeedStage::{self, Blending, Committed, Holding};
use crate::scenario::{AttributionConfig, AttributionStrategy, FULL_FACTORIAL_LIMIT};
use crate::validation::plan::{PlanMoment, find_players, plan_coalitions};

const EVERYTHING: RequiredMasks = RequiredMasks {
    each_off: true,
    committed: true,
};
const NOTHING: RequiredMasks = RequiredMasks {
    each_off: false,
    committed: false,
};

fn plan_of(stages: &[SeedStage], config: &AttributionConfig, is_final: bool) -> AttributionPlan {
    let players = find_players(stages.iter().map(|&stage| Some((stage, 0.5))), true);
    let moment = PlanMoment {
        step: 9,
        is_final,
        permutation_seed: 3,
    };
    plan_coalitions(&players, config, moment)
}

fn with(strategy: AttributionStrategy) -> AttributionConfig {
    AttributionConfig {
        strategy,
        ..AttributionConfig::default()
    }
}

fn five_blending() -> AttributionPlan {
    plan_of(&[Blending; 5], &AttributionConfig::default(), false)
}

#[test]
fn each_off_comes_before_none_before_solo_before_pairs() {
    let kept = |most| {
        let mut plan = five_blending();
        plan.limit(most, NOTHING);
        (plan.coalitions.masks, plan.dropped.len())
    };
    let each_off = [0b11110, 0b11101, 0b11011, 0b10111, 0b01111];
    let (masks, dropped) = kept(7);
    assert_eq!(masks, [&[0b11111][..], &each_off, &[0]].concat());
    assert_eq!(dropped, 15);
    let (masks, dropped) = kept(13);
    assert_eq!(masks[7..], [1, 2, 4, 8, 16, 0b11]);
    assert_eq!(dropped, 9);
    assert_eq!(kept(100), (five_blending().coalitions.masks, 0));
}

#[test]
fn what_a_commit_would_leave_comes_before_solo() {
    let stages = [Committed, Holding, Blending, Blending];
    let mut plan = plan_of(&stages, &AttributionConfig::default(), true);

    plan.limit(8, NOTHING);

    let mut masks = plan.coalitions.masks;
    masks.sort_unstable();
    // None, the committed one, with the held one; each off; all.
    assert_eq!(masks, [0, 0b0001, 0b0011, 0b0111, 0b1011, 0b1101, 0b1110, 0b1111]);
}

#[test]
fn what_the_reward_needs_is_kept_at_any_limit() {
    let stages = [Committed, Holding, Holding, Blending];
    let mut plan = plan_of(&stages, &AttributionConfig::default(), false);

    let kept = plan.limit(1, EVERYTHING);

    let mut masks = plan.coalitions.masks.clone();
    masks.sort_unstable();
    let needed = [0, 0b0001, 0b0011, 0b0101, 0b0111, 0b1011, 0b1101, 0b1110, 0b1111];
    assert_eq!((masks, kept.len()), (needed.to_vec(), 9));
    assert_eq!(plan.limit(1, NOTHING), [0], "without rewards only the network as it is");
}

#[test]
fn of_sampled_orders_only_whole_pairs_are_left() {
    let config = with(AttributionStrategy::Permutations);
    let whole = plan_of(&[Blending; 9], &config, false);
    assert_eq!(whole.permutations.len(), 20);

    let mut plan = whole.clone();
    plan.limit(60, EVERYTHING);

    assert_eq!(plan.coalitions.masks.len(), 60);
    assert!(!plan.permutations.is_empty() && plan.permutations.len() < 20);
    assert!(plan.permutations.len().is_multiple_of(2));
    for mask in plan.permutations.iter().flat_map(|order| prefixes(order)) {
        assert!(plan.coalitions.masks.contains(&mask));
    }
}

prop_compose! {
    fn any_plan()(
        stages in prop::collection::vec(prop::sample::select(&[Blending, Holding, Committed]), 0..=9),
        strategy in prop::sample::select(&[
            AttributionStrategy::Auto,
            AttributionStrategy::Permutations,
            AttributionStrategy::AblationOnly,
        ]),
        is_final in any::<bool>(),
    ) -> AttributionPlan {
        plan_of(&stages, &with(strategy), is_final)
    }
}

proptest! {
    /// The check of a scenario relies on it.
    #[test]
    fn no_more_is_required_than_the_check_of_a_scenario_counts(
        plan in any_plan(),
        each_off in any::<bool>(),
        committed in any::<bool>(),
    ) {
        let (required, players) = (RequiredMasks { each_off, committed }, plan.coalitions.players.len());
        prop_assume!(players <= FULL_FACTORIAL_LIMIT);
        let mut limited = plan.clone();
        limited.limit(1, required);
        prop_assert!(limited.coalitions.masks.len() <= required.most(players));
    }

    /// Nothing is silently missing.
    #[test]
    fn every_planned_mask_is_kept_or_told_as_dropped(plan in any_plan(), most in 1usize..80) {
        let mut limited = plan.clone();
        let kept = limited.limit(most, EVERYTHING);
        let masks = &limited.coalitions.masks;
        prop_assert_eq!(masks[0], plan.coalitions.masks[0]);
        let all: HashSet<u64> = masks.iter().chain(&limited.dropped).copied().collect();
        prop_assert_eq!(all, plan.coalitions.masks.iter().copied().collect::<HashSet<_>>());
        prop_assert_eq!(masks.len() + limited.dropped.len(), plan.coalitions.masks.len());
        for (&position, &mask) in kept.iter().zip(masks) {
            prop_assert_eq!(plan.coalitions.masks[position], mask);
        }
    }
}
