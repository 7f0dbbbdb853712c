use proptest::prelude::*;

use super::*;
use crate::fixtures::assert_close;

/// Accuracy by mask, bit 0 = player 0.
const THREE_SEEDS: [f64; 8] = [60.0, 62.0, 63.0, 67.0, 60.5, 62.0, 64.0, 68.0];

fn lookup(table: &[f64]) -> impl Fn(u64) -> Option<f64> + '_ {
    |mask| table.get(mask as usize).copied()
}

fn values(shapley: &[ShapleyValue]) -> Vec<f64> {
    shapley.iter().map(|share| share.mean.0).collect()
}

/// In the third game each of two players needs the other, and together they are worse than none.
#[test]
fn exact_values_of_two_and_three_players() {
    let three = [2.916_666_666_666_667, 4.416_666_666_666_667, 0.666_666_666_666_667];
    let games: [(&[f64], &[f64]); 4] = [
        (&THREE_SEEDS, &three),
        (&[50.0, 53.0, 52.0, 57.0], &[4.0, 3.0]),
        (&[70.0, 60.0, 60.0, 68.0], &[-1.0, -1.0]),
        (&[60.0], &[]),
    ];
    for (table, expected) in games {
        let shares = exact_shapley(expected.len(), lookup(table)).unwrap();
        assert_close(&values(&shares), expected, 1e-9);
        assert!(shares.iter().all(|share| (share.std, share.n) == (Some(Num(0.0)), 0)));
    }
}

#[test]
fn sampled_values_use_the_given_orders() {
    let orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]].map(Vec::from);
    let shares = sampled_shapley(3, &orders, lookup(&THREE_SEEDS)).unwrap();
    assert_close(&values(&shares), &[2.875, 4.375, 0.75], 1e-9);
    let errors: Vec<f64> = shares.iter().filter_map(|share| share.std).map(|std| std.0).collect();
    assert_close(&errors, &[0.125, 0.125, 0.0], 1e-9);
    assert_eq!(values(&shares).iter().sum::<f64>(), 8.0);
    assert_eq!(shares[0].n, 2);

    let of_one_pair = sampled_shapley(3, &orders[..2], lookup(&THREE_SEEDS)).unwrap();
    assert_eq!(of_one_pair[0].std, None);
}

#[test]
fn a_missing_coalition_gives_no_value() {
    let all_but_one = |mask| (mask != 5).then_some(1.0);
    assert_eq!(exact_shapley(3, all_but_one), None);
    assert_eq!(sampled_shapley(3, &[vec![0, 2, 1], vec![1, 2, 0]], all_but_one), None);
}

/// A random game of two to five players.
fn game() -> impl Strategy<Value = (usize, Vec<f64>)> {
    (2usize..=5).prop_flat_map(|n| (Just(n), prop::collection::vec(0.0..100.0f64, 1 << n)))
}

proptest! {
    #[test]
    fn a_player_that_adds_nothing_gets_nothing((players, table) in game()) {
        let without_dummy = |mask: u64| lookup(&table)(mask & !1);
        let shares = exact_shapley(players, without_dummy).unwrap();
        prop_assert!(shares[0].mean.0.abs() < 1e-9);
    }

    #[test]
    fn interchangeable_players_get_equal_shares((players, table) in game()) {
        let symmetric = |mask: u64| lookup(&table)(if mask & 3 == 2 { mask ^ 3 } else { mask });
        let shares = exact_shapley(players, symmetric).unwrap();
        prop_assert!((shares[0].mean.0 - shares[1].mean.0).abs() < 1e-9);
    }
}
