//! Values that follow from measured configurations.

use std::collections::HashSet;

use proptest::prelude::*;

use super::super::max_configurations;
use super::super::plan::{PlanMoment, Players, find_players, plan_coalitions};
use super::*;
use crate::growth::SeedStage;
use crate::scenario::{AttributionConfig, AttributionStrategy};
use crate::telemetry::examples;

const SAMPLES: usize = 10_000;

/// Sums of a configuration with this many samples right.
fn sums(correct: u64) -> ConfigNumbers {
    ConfigNumbers {
        correct,
        loss_sum: 0.0,
        only_main_correct: 0,
        only_this_correct: 0,
    }
}

fn matrix_of(players: usize, rows: Vec<CoalitionRow>) -> CounterfactualMatrix {
    CounterfactualMatrix {
        seed_ids: (0..players).map(|i| format!("e10.r0c{i}.0")).collect(),
        rows,
        ..examples::matrix()
    }
}

/// A matrix with the given accuracies by mask.
fn matrix(players: usize, accuracy: &[f64]) -> CounterfactualMatrix {
    let masks: Vec<u64> = (0..1 << players).rev().collect();
    let correct = |&mask: &u64| (accuracy[mask as usize] * SAMPLES as f64 / 100.0).round() as u64;
    let measured: Vec<_> = masks.iter().map(correct).map(sums).collect();
    matrix_of(players, coalition_rows(&masks, SAMPLES, &measured))
}

fn three_seeds() -> CounterfactualMatrix {
    matrix(3, &[60.0, 62.0, 63.0, 67.0, 60.5, 62.0, 64.0, 68.0])
}

fn assert_close(actual: Option<f64>, expected: f64) {
    let actual = actual.expect("the masks were measured");
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

#[test]
fn contributions_compare_with_each_player_off() {
    let attribution = Attribution::of(&three_seeds(), 0);
    for (player, expected) in attribution.players.iter().zip([4.0, 6.0, 1.0]) {
        assert_close(player.contribution, expected);
    }
    assert_close(attribution.delta_cf, 8.0);
    assert_close(Attribution::of(&three_seeds(), 0b010).delta_cf, 5.0);
}

#[test]
fn interactions_are_those_of_a_pair_alone() {
    let attribution = Attribution::of(&three_seeds(), 0);
    let expected = [((0, 1), 2.0), ((0, 2), -0.5), ((1, 2), 0.5)];
    assert_eq!(attribution.synergies.len(), expected.len());
    for (found, (players, points)) in attribution.synergies.iter().zip(expected) {
        assert_eq!(found.players, players);
        assert_close(Some(found.points), points);
    }

    for (player, sum) in [(0, 1.5), (2, 0.0)] {
        assert_close(attribution.players[player].interaction_sum, sum);
    }
}

/// Each of two seeds is needed by the other, and together they are worse than the host alone.
#[test]
fn a_coalition_ransom_shows_in_delta_and_interaction() {
    let matrix = matrix(2, &[70.0, 60.0, 60.0, 68.0]);
    let attribution = Attribution::of(&matrix, 0);
    for player in &attribution.players {
        assert_close(player.contribution, 8.0);
    }
    assert_close(attribution.delta_cf, -2.0);
    assert_close(synergy(&matrix, 0, 1), 18.0);
}

#[test]
fn what_was_not_measured_is_absent() {
    let mut measured = sums(50);
    measured.loss_sum = 100.0;
    let matrix = matrix_of(2, coalition_rows(&[0b11], 100, &[measured]));
    let row = matrix.row(0b11).unwrap();
    assert_eq!((row.accuracy, row.loss), (Num(50.0), Num(1.0)));
    assert_eq!(matrix.row(0b01), None);
    assert_eq!(shapley(&matrix, &[]), None);
    let attribution = Attribution::of(&matrix, 0);
    assert_eq!(attribution.delta_cf, None);
    assert_eq!(attribution.players[0].contribution, None);
    assert_eq!(attribution.players[0].interaction_sum, None);
    assert_eq!(attribution.synergies, []);
}

#[test]
fn the_paired_error_of_a_contribution() {
    let off = ConfigNumbers {
        only_main_correct: 320,
        only_this_correct: 200,
        ..sums(6880)
    };
    let matrix = CounterfactualMatrix {
        samples: SAMPLES as u64,
        ..matrix_of(1, coalition_rows(&[1, 0], SAMPLES, &[sums(7000), off]))
    };
    assert_close(matrix.contribution(0), 1.2);
    assert_close(matrix.contribution_error(0), 0.227_719_125_239_844_53);
}

/// Seeds on the output path, committed ones among them.
fn any_players(most: usize) -> impl Strategy<Value = Players> {
    let stage = prop::sample::select(&[SeedStage::Blending, SeedStage::Holding, SeedStage::Committed]);
    let slot = stage.prop_map(|stage| Some((stage, 1.0)));
    prop::collection::vec(slot, 0..=most).prop_map(|slots| find_players(slots, true))
}

prop_compose! {
    fn any_config()(
        strategy in prop::sample::select(&[
            AttributionStrategy::Auto,
            AttributionStrategy::Permutations,
            AttributionStrategy::AblationOnly,
        ]),
    ) -> AttributionConfig {
        AttributionConfig { strategy, ..Default::default() }
    }
}

proptest! {
    /// Properties of any plan that rewards and reports rely on.
    #[test]
    fn every_plan_measures_all_on_each_off_none_and_the_committed_once_and_there_is_room(
        players in any_players(15),
        config in any_config(),
        is_final in any::<bool>(),
        permutation_seed in any::<u64>(),
    ) {
        let plan = plan_coalitions(&players, &config, PlanMoment { step: 5, is_final, permutation_seed });
        let masks = &plan.coalitions.masks;
        let all = (1 << players.len()) - 1;
        prop_assert_eq!(masks[0], all);
        prop_assert_eq!(masks.iter().collect::<HashSet<_>>().len(), masks.len());
        prop_assert!(masks.len() <= max_configurations(&config, players.len()));
        for (player, seed) in players.iter().enumerate() {
            prop_assert!(masks.contains(&(all & !(1 << player))));
            if is_final && seed.stage == SeedStage::Holding {
                prop_assert!(masks.contains(&(plan.committed | 1 << player)));
            }
        }
        prop_assert!(masks.contains(&0) && masks.contains(&plan.committed));
    }

    /// Efficiency, with exact and with sampled shares.
    #[test]
    fn final_shares_add_up_to_what_all_seeds_add(
        players in any_players(8),
        permutation_seed in any::<u64>(),
        correct in prop::collection::vec(0..=SAMPLES as u64, 256),
    ) {
        let config = AttributionConfig::default();
        let moment = PlanMoment { step: 5, is_final: true, permutation_seed };
        let plan = plan_coalitions(&players, &config, moment);
        let masks = &plan.coalitions.masks;
        let measured: Vec<_> = masks.iter().map(|&mask| sums(correct[mask as usize])).collect();
        let matrix = matrix_of(players.len(), coalition_rows(masks, SAMPLES, &measured));

        let shares = shapley(&matrix, &plan.permutations).expect("the final plan measures all that it needs").values;

        let total: f64 = shares.iter().map(|share| share.mean.0).sum();
        let gain = matrix.accuracy(masks[0]).unwrap() - matrix.accuracy(0).unwrap();
        prop_assert!((total - gain).abs() < 1e-9);
        prop_assert_eq!(shares.len(), players.len());
    }
}
