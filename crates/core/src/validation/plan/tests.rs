use super::*;

const STEP: PlanMoment = PlanMoment {
    step: 7,
    is_final: false,
    permutation_seed: 1,
};
const LAST: PlanMoment = PlanMoment { is_final: true, ..STEP };

fn blending(count: usize) -> Players {
    find_players(vec![Some((SeedStage::Blending, 0.5)); count], false)
}

fn plan(count: usize, moment: PlanMoment) -> AttributionPlan {
    plan_coalitions(&blending(count), &AttributionConfig::default(), moment)
}

fn with(strategy: AttributionStrategy) -> AttributionConfig {
    AttributionConfig {
        strategy,
        ..AttributionConfig::default()
    }
}

#[test]
fn auto_evaluates_all_configurations_up_to_four_players_and_pairs_beyond() {
    let sizes = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|count| plan(count, STEP).coalitions.masks.len());
    assert_eq!(sizes, [1, 2, 4, 8, 16, 22, 29, 37, 46]);
}

#[test]
fn the_final_plan_is_exact_up_to_six_players_and_sampled_from_seven() {
    let six = plan(6, LAST);
    assert_eq!(six.coalitions.masks.len(), 64);
    assert!(six.permutations.is_empty());

    let seven = plan(7, LAST);
    assert!(seven.coalitions.masks.len() < 128);
    assert_eq!(seven.permutations.len(), 20);
}

/// `attribution` checks it against plans.
#[test]
fn the_room_for_configurations_is_that_of_all_subsets_or_of_what_many_players_are_measured_by() {
    let room = |slots| max_configurations(&AttributionConfig::default(), slots);
    assert_eq!([3, 7, 8, 15].map(room), [8, 128, 195, 433]);
    let ablation = with(AttributionStrategy::AblationOnly);
    assert_eq!(max_configurations(&ablation, 15), 433);
}

#[test]
fn sampled_orders_come_in_antithetic_pairs_and_follow_the_seed() {
    let first = plan(7, LAST);
    assert_eq!(first, plan(7, LAST));
    let other = PlanMoment {
        permutation_seed: 2,
        ..LAST
    };
    assert_ne!(first.permutations, plan(7, other).permutations);
    for pair in first.permutations.chunks(2) {
        assert!(pair[0].iter().eq(pair[1].iter().rev()));
        for coalition in prefixes(&pair[0]).chain(prefixes(&pair[1])) {
            assert!(first.coalitions.masks.contains(&coalition));
        }
    }
}

#[test]
fn steps_between_measurements_evaluate_only_the_whole_network() {
    let masks = |cadence, moment| {
        let config = AttributionConfig {
            cadence,
            ..AttributionConfig::default()
        };
        plan_coalitions(&blending(2), &config, moment).coalitions.masks.len()
    };
    let at = |step| PlanMoment { step, ..STEP };
    assert_eq!([STEP, LAST].map(|moment| masks(Cadence::Terminal, moment)), [1, 4]);
    let every_third = [at(6), at(7), LAST].map(|moment| masks(Cadence::EveryK(3), moment));
    assert_eq!(every_third, [4, 1, 4]);
}

#[test]
fn only_seeds_on_the_output_path_play() {
    let slots = [
        Some((SeedStage::Training, 0.0)),
        Some((SeedStage::Blending, 0.0)),
        None,
        Some((SeedStage::Blending, 0.2)),
        Some((SeedStage::Holding, 1.0)),
        Some((SeedStage::Committed, 1.0)),
        Some((SeedStage::Embargoed, 0.0)),
    ];
    let played = |include| -> Vec<usize> { find_players(slots, include).iter().map(|player| player.slot).collect() };
    assert_eq!(played(false), [3, 4]);
    assert_eq!(played(true), [3, 4, 5]);
}

#[test]
fn ablation_only_evaluates_all_each_off_none_and_what_a_last_step_commit_would_be_worth() {
    let stages = [SeedStage::Committed, SeedStage::Holding, SeedStage::Blending];
    let players = find_players(stages.map(|stage| Some((stage, 0.5))), true);
    let config = with(AttributionStrategy::AblationOnly);
    let masks = plan_coalitions(&blending(3), &config, STEP).coalitions.masks;
    assert_eq!(masks, [0b111, 0b110, 0b101, 0b011, 0b000]);
    let plan = plan_coalitions(&players, &config, LAST);
    assert_eq!(plan.committed, 0b001);
    assert_eq!(plan.coalitions.masks, [0b111, 0b110, 0b101, 0b011, 0b000, 0b001]);
}

/// Shapley values at every measurement: exact for few players, from pairs of orders for many.
#[test]
fn permutations_samples_orders_at_every_step_and_only_where_all_configurations_are_too_many() {
    let config = with(AttributionStrategy::Permutations);
    for count in [1, 4, 6] {
        let plan = plan_coalitions(&blending(count), &config, STEP);
        assert_eq!(plan.coalitions.masks.len(), 1 << count, "{count} players");
        assert!(plan.permutations.is_empty() && plan.tells_shares);
    }
    let plan = plan_coalitions(&blending(10), &config, STEP);
    assert_eq!(plan.permutations.len(), 20);
    assert!(plan.tells_shares);
    let masks = &plan.coalitions.masks;
    assert!(masks.len() <= max_configurations(&config, 10));
    // All on, each off, none; then the coalitions that the orders pass through, and no others.
    assert_eq!(masks[0], 0b11_1111_1111);
    assert_eq!(masks[11], 0);
    let passed: HashSet<u64> = plan.permutations.iter().flat_map(|order| prefixes(order)).collect();
    assert!(masks[12..].iter().all(|mask| passed.contains(mask)));
    assert!(passed.iter().all(|mask| masks.contains(mask)));
}

#[test]
fn other_strategies_tell_shares_at_the_last_step_alone() {
    assert!(!plan(3, STEP).tells_shares);
    assert!(plan(3, LAST).tells_shares);
}
