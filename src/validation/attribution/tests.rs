//! What follows from measured configurations (spec 05 C13-C15).

use std::collections::HashSet;

use proptest::prelude::*;

use super::super::max_configurations;
use super::super::plan::{PlanMoment, Players, find_players, plan_coalitions};
use super::*;
use crate::growth::SeedStage;
use crate::scenario::{AttributionConfig, Cadence};

const SAMPLES: u64 = 10_000;

fn identity(players: usize) -> MatrixIdentity {
    MatrixIdentity {
        env: 2,
        episode: 10,
        step: 5,
        players: (0..players)
            .map(|i| MatrixPlayer {
                slot: SlotId::new(0, i as u16),
                seed_id: format!("e10.r0c{i}.0"),
                alpha: 1.0,
            })
            .collect(),
        strategy: AttributionStrategy::Auto,
    }
}

fn plan(players: usize, config: &AttributionConfig) -> AttributionPlan {
    let moment = PlanMoment {
        step: 5,
        is_final: false,
        permutation_seed: 0,
    };
    let slots = vec![Some((SeedStage::Holding, 1.0)); players];
    plan_coalitions(&find_players(slots, false), config, moment)
}

/// A matrix with the given accuracies by mask and loss = 3 − accuracy / 100.
fn matrix(players: usize, accuracy: &[f64]) -> CounterfactualMatrix {
    let plan = plan(players, &AttributionConfig::default());
    let tallies: Vec<MaskTally> = plan
        .coalitions
        .masks
        .iter()
        .map(|&mask| MaskTally {
            correct: (accuracy[mask as usize] * SAMPLES as f64 / 100.0).round() as u64,
            loss_sum: (3.0 - accuracy[mask as usize] / 100.0) * SAMPLES as f64,
            ..Default::default()
        })
        .collect();
    CounterfactualMatrix::new(identity(players), &plan, SAMPLES, &tallies).unwrap()
}

fn c14() -> CounterfactualMatrix {
    matrix(3, &[60.0, 62.0, 63.0, 67.0, 60.5, 62.0, 64.0, 68.0])
}

fn assert_close(actual: Option<f64>, expected: f64) {
    let actual = actual.expect("the masks were measured");
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

#[test]
fn contributions_compare_with_each_player_off() {
    let matrix = c14();
    for (player, expected) in [4.0, 6.0, 1.0].into_iter().enumerate() {
        assert_close(matrix.contribution(player), expected);
        assert_close(matrix.contribution_loss(player), expected / 100.0);
    }
    assert_close(matrix.delta_cf(), 8.0);
    assert_close(matrix.committed_accuracy(), 60.0);
    assert_close(matrix.solo_gain(1), 3.0);
}

#[test]
fn interactions_alone_and_in_context() {
    let matrix = c14();
    assert_close(matrix.interaction(0, 1), 2.0);
    assert_close(matrix.interaction(0, 2), -0.5);
    assert_close(matrix.interaction(1, 2), 0.5);
    assert_close(matrix.interaction_in_context(0, 1), 2.5);
    assert_close(matrix.interaction_in_context(0, 2), 0.0);
    assert_close(matrix.interaction_in_context(1, 2), 1.0);
}

#[test]
fn the_full_record_of_three_players() {
    let attribution = c14().attribute();
    let first = attribution.players[0];
    assert_close(first.banzhaf, 2.875);
    let interactions = first.interactions.unwrap();
    assert_close(Some(interactions.sum), 1.5);
    assert_close(Some(interactions.boost), 2.0);
    let last = attribution.players[2].interactions.unwrap();
    assert_close(Some(last.sum), 0.0);
    assert_close(Some(last.boost), 0.5);
    assert_eq!(attribution.interactions.len(), 3);
}

#[test]
fn a_coalition_ransom_shows_in_delta_and_interaction() {
    let matrix = matrix(2, &[70.0, 60.0, 60.0, 68.0]);
    assert_close(matrix.contribution(0), 8.0);
    assert_close(matrix.contribution(1), 8.0);
    assert_close(matrix.delta_cf(), -2.0);
    assert_close(matrix.interaction(0, 1), 18.0);
    let shares = matrix.shapley(&[]).unwrap();
    assert_close(Some(shares[0].value), -1.0);
    assert_close(Some(shares[1].value), -1.0);
}

#[test]
fn the_interaction_of_two_seeds_above_a_host() {
    assert_close(matrix(2, &[60.0, 65.0, 66.0, 72.0]).interaction(0, 1), 1.0);
}

#[test]
fn what_was_not_measured_is_absent() {
    let config = AttributionConfig {
        cadence: Cadence::Off,
        ..Default::default()
    };
    let tally = MaskTally {
        correct: 50,
        loss_sum: 100.0,
        ..Default::default()
    };
    let plan = plan(2, &config);
    let matrix = CounterfactualMatrix::new(identity(2), &plan, 100, &[tally]).unwrap();
    let measured = Measured {
        accuracy: 50.0,
        loss: 1.0,
    };
    assert_eq!(matrix.get(0b11), Some(measured));
    assert_eq!(matrix.get(0b01), None);
    assert_eq!(matrix.shapley(&[]), None);
    let attribution = matrix.attribute();
    assert_eq!(attribution.delta_cf, None);
    assert_eq!(attribution.players[0].contribution, None);
    assert_eq!(attribution.players[0].interactions, None);
}

#[test]
fn a_pass_without_samples_is_an_error_not_zero_percent() {
    let plan = plan(0, &AttributionConfig::default());
    let empty = CounterfactualMatrix::new(identity(0), &plan, 0, &[MaskTally::default()]);
    assert_eq!(empty, Err(AttributionError::NoSamples { env: 2, step: 5 }));
    let short = CounterfactualMatrix::new(identity(0), &plan, 10, &[]);
    assert!(matches!(short, Err(AttributionError::WrongCount { .. })));
}

#[test]
fn the_paired_error_of_a_contribution() {
    let error = paired_standard_error(320, 200, 10_000);
    assert!((error - 0.227_719_125_239_844_53).abs() < 1e-9);

    let plan = plan(1, &AttributionConfig::default());
    let tally = |correct, lost, gained| MaskTally {
        correct,
        loss_sum: 0.0,
        lost,
        gained,
    };
    let tallies = [tally(7000, 0, 0), tally(6880, 320, 200)];
    let matrix = CounterfactualMatrix::new(identity(1), &plan, SAMPLES, &tallies).unwrap();
    assert_close(matrix.contribution(0), 1.2);
    assert_close(matrix.contribution_error(0), 0.227_719_125_239_844_53);
}

/// Up to eight seeds on the output path, committed ones among them.
fn any_players() -> impl Strategy<Value = Players> {
    let stage = prop::sample::select(vec![SeedStage::Blending, SeedStage::Holding, SeedStage::Fossilized]);
    prop::collection::vec(stage, 0..=8)
        .prop_map(|stages| find_players(stages.into_iter().map(|stage| Some((stage, 1.0))), true))
}

fn any_config() -> impl Strategy<Value = AttributionConfig> {
    (0usize..=4, 0usize..=8, 1usize..=12, any::<bool>()).prop_map(
        |(full_factorial_max, pairs_max, pairs_of_orders, is_ablation)| AttributionConfig {
            strategy: if is_ablation {
                AttributionStrategy::AblationOnly
            } else {
                AttributionStrategy::Auto
            },
            full_factorial_max,
            pairs_max,
            shapley_permutations: 2 * pairs_of_orders,
            ..AttributionConfig::default()
        },
    )
}

proptest! {
    /// What the rewards and the reports rely on, whatever the plan.
    #[test]
    fn every_plan_measures_all_on_each_off_none_and_the_committed(
        players in any_players(),
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
                prop_assert!(masks.contains(&(plan.fossilized | 1 << player)));
            }
        }
        prop_assert!(masks.contains(&0) && masks.contains(&plan.fossilized));
    }

    /// Spec 05 C14: efficiency, with exact and with sampled shares.
    #[test]
    fn final_shares_add_up_to_what_all_seeds_add(
        players in any_players(),
        config in any_config(),
        permutation_seed in any::<u64>(),
        correct in prop::collection::vec(0..=SAMPLES, 256),
    ) {
        let config = AttributionConfig { strategy: AttributionStrategy::Auto, ..config };
        let moment = PlanMoment { step: 5, is_final: true, permutation_seed };
        let plan = plan_coalitions(&players, &config, moment);
        let tally = |&mask: &u64| MaskTally { correct: correct[mask as usize], ..MaskTally::default() };
        let tallies: Vec<MaskTally> = plan.coalitions.masks.iter().map(tally).collect();
        let matrix = CounterfactualMatrix::new(identity(players.len()), &plan, SAMPLES, &tallies).unwrap();

        let shares = matrix.shapley(&plan.permutations).expect("the final plan measures all that it needs");

        let total: f64 = shares.iter().map(|share| share.value).sum();
        let gain = matrix.get(plan.coalitions.masks[0]).unwrap().accuracy - matrix.get(0).unwrap().accuracy;
        prop_assert!((total - gain).abs() < 1e-9);
        prop_assert_eq!(shares.len(), players.len());
    }
}
