//! Shapley values of seeds: what each adds on average over all orders in which they could have joined (spec 05 §10.6).
//!
//! Pure functions on coalition values. Exact if all 2^n coalitions were measured; otherwise estimated from exactly the
//! orders that generated the plan, so that no coalition is missing and the estimate stays unbiased.

use serde::Serialize;

/// Half width of a 95 % confidence interval in standard errors.
const CONFIDENCE_95: f64 = 1.96;

/// One player's share of `v(all) − v(none)`, in the unit of `v`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShapleyValue {
    pub value: f64,
    /// Of the sampling alone: 0 if exact, `None` with fewer than two pairs of orders.
    pub standard_error: Option<f64>,
    /// Sampled pairs of orders; 0 if exact.
    pub pairs: usize,
    pub exact: bool,
}

impl ShapleyValue {
    /// 95 % confidence interval of the sampling error.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let half = CONFIDENCE_95 * self.standard_error?;
        Some((self.value - half, self.value + half))
    }
}

/// Exact values of `players` players; `None` if any of the 2^n coalitions is missing.
pub fn exact_shapley(players: usize, value: impl Fn(u64) -> Option<f64>) -> Option<Vec<ShapleyValue>> {
    let table = full_table(players, value)?;
    // |S|! (n−|S|−1)! / n!, by |S|.
    let mut weights = vec![1.0 / players.max(1) as f64; players];
    for size in 1..players {
        weights[size] = weights[size - 1] * size as f64 / (players - size) as f64;
    }
    let share = |player: usize| -> f64 { marginals(&table, player).map(|(size, gain)| weights[size] * gain).sum() };
    Some(
        (0..players)
            .map(|player| ShapleyValue {
                value: share(player),
                standard_error: Some(0.0),
                pairs: 0,
                exact: true,
            })
            .collect(),
    )
}

/// Estimate from antithetic pairs of orders (an order, then its reverse); `None` without a pair, or if a coalition on
/// the way is missing.
pub fn sampled_shapley(
    players: usize,
    permutations: &[Vec<usize>],
    value: impl Fn(u64) -> Option<f64>,
) -> Option<Vec<ShapleyValue>> {
    let (pairs, []) = permutations.as_chunks::<2>() else {
        return None;
    };
    if pairs.is_empty() {
        return None;
    }
    let mut pair_means = vec![Vec::with_capacity(pairs.len()); players];
    for pair in pairs {
        let mut sums = vec![0.0; players];
        for order in pair {
            let mut coalition = 0u64;
            let mut before = value(coalition)?;
            for &player in order {
                coalition |= 1 << player;
                let after = value(coalition)?;
                sums[player] += after - before;
                before = after;
            }
        }
        for (means, sum) in pair_means.iter_mut().zip(sums) {
            means.push(sum / 2.0);
        }
    }
    Some(pair_means.iter().map(|means| estimate(means)).collect())
}

/// Mean and standard error over independent pairs.
fn estimate(pair_means: &[f64]) -> ShapleyValue {
    let count = pair_means.len() as f64;
    let mean = pair_means.iter().sum::<f64>() / count;
    let standard_error = (pair_means.len() >= 2).then(|| {
        let squares: f64 = pair_means.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (count - 1.0) / count).sqrt()
    });
    ShapleyValue {
        value: mean,
        standard_error,
        pairs: pair_means.len(),
        exact: false,
    }
}

/// Banzhaf values: each player's mean gain over all coalitions of the others; `None` unless all 2^n were measured.
pub fn banzhaf(players: usize, value: impl Fn(u64) -> Option<f64>) -> Option<Vec<f64>> {
    let table = full_table(players, value)?;
    let coalitions = (table.len() / 2).max(1) as f64;
    let mean = |player| marginals(&table, player).map(|(_, gain)| gain).sum::<f64>() / coalitions;
    Some((0..players).map(mean).collect())
}

/// Values of all coalitions, indexed by mask.
fn full_table(players: usize, value: impl Fn(u64) -> Option<f64>) -> Option<Vec<f64>> {
    (0..1u64.checked_shl(players as u32)?).map(value).collect()
}

/// `(|S|, v(S∪i) − v(S))` over the coalitions S without player i.
fn marginals(table: &[f64], player: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
    let bit = 1 << player;
    (0..table.len())
        .filter(move |mask| mask & bit == 0)
        .map(move |mask| (mask.count_ones() as usize, table[mask | bit] - table[mask]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Accuracy by mask, bit 0 = player 0 (spec 05 C14).
    const C14: [f64; 8] = [60.0, 62.0, 63.0, 67.0, 60.5, 62.0, 64.0, 68.0];

    fn lookup(table: &[f64]) -> impl Fn(u64) -> Option<f64> + '_ {
        |mask| table.get(mask as usize).copied()
    }

    fn assert_close(actual: &[f64], expected: &[f64]) {
        assert_eq!(actual.len(), expected.len());
        for (a, e) in actual.iter().zip(expected) {
            assert!((a - e).abs() < 1e-9, "{actual:?} is not {expected:?}");
        }
    }

    fn values(shapley: &[ShapleyValue]) -> Vec<f64> {
        shapley.iter().map(|share| share.value).collect()
    }

    #[test]
    fn exact_values_of_three_players() {
        let shares = exact_shapley(3, lookup(&C14)).unwrap();
        assert_close(
            &values(&shares),
            &[2.916_666_666_666_667, 4.416_666_666_666_667, 0.666_666_666_666_667],
        );
        assert!(shares.iter().all(|share| share.exact));
        assert_eq!(shares[0].standard_error, Some(0.0));
    }

    /// Check C13 of spec 07; tables by mask.
    #[test]
    fn exact_values_add_up_to_what_all_players_add_together() {
        let two = exact_shapley(2, lookup(&[50.0, 53.0, 52.0, 57.0])).unwrap();
        assert_close(&values(&two), &[4.0, 3.0]);

        let table = [50.0, 52.0, 51.0, 55.0, 50.0, 52.5, 51.0, 56.0];
        let three = exact_shapley(3, lookup(&table)).unwrap();
        assert_close(
            &values(&three),
            &[3.416_666_666_666_667, 2.166_666_666_666_667, 0.416_666_666_666_667],
        );
    }

    #[test]
    fn a_coalition_ransom_gives_both_players_a_negative_share() {
        let table = [70.0, 60.0, 60.0, 68.0];
        assert_close(&values(&exact_shapley(2, lookup(&table)).unwrap()), &[-1.0, -1.0]);
    }

    #[test]
    fn banzhaf_values_of_three_players() {
        assert_close(&banzhaf(3, lookup(&C14)).unwrap(), &[2.875, 4.375, 0.625]);
    }

    #[test]
    fn sampled_values_use_the_given_orders() {
        let orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]].map(Vec::from);
        let shares = sampled_shapley(3, &orders, lookup(&C14)).unwrap();
        assert_close(&values(&shares), &[2.875, 4.375, 0.75]);
        let errors: Vec<f64> = shares.iter().filter_map(|share| share.standard_error).collect();
        assert_close(&errors, &[0.125, 0.125, 0.0]);
        assert_eq!(values(&shares).iter().sum::<f64>(), 8.0);
        assert_eq!(shares[0].pairs, 2);
    }

    #[test]
    fn one_pair_of_orders_has_no_standard_error() {
        let shares = sampled_shapley(2, &[vec![0, 1], vec![1, 0]], lookup(&C14)).unwrap();
        assert_eq!(shares[0].standard_error, None);
        assert_eq!(shares[0].interval(), None);
    }

    #[test]
    fn a_missing_coalition_gives_no_value() {
        let all_but_one = |mask| (mask != 5).then_some(1.0);
        assert_eq!(exact_shapley(3, all_but_one), None);
        assert_eq!(banzhaf(3, all_but_one), None);
        assert_eq!(sampled_shapley(3, &[vec![0, 2, 1], vec![1, 2, 0]], all_but_one), None);
    }

    #[test]
    fn without_players_there_are_no_shares() {
        assert_eq!(exact_shapley(0, |_| Some(60.0)), Some(vec![]));
    }

    /// A random game of two to five players.
    fn game() -> impl Strategy<Value = (usize, Vec<f64>)> {
        (2usize..=5).prop_flat_map(|n| (Just(n), prop::collection::vec(0.0..100.0f64, 1 << n)))
    }

    proptest! {
        #[test]
        fn shares_add_up_to_the_gain_of_all((players, table) in game()) {
            let total: f64 = values(&exact_shapley(players, lookup(&table)).unwrap()).iter().sum();
            prop_assert!((total - (table[table.len() - 1] - table[0])).abs() < 1e-9);
        }

        #[test]
        fn sampled_shares_add_up_for_any_orders(
            (players, table) in game(),
            keys in prop::collection::vec(any::<u64>(), 5),
        ) {
            let mut order: Vec<usize> = (0..players).collect();
            order.sort_by_key(|&player| keys[player]);
            let reverse = order.iter().rev().copied().collect();
            let shares = sampled_shapley(players, &[order, reverse], lookup(&table)).unwrap();
            let total: f64 = values(&shares).iter().sum();
            prop_assert!((total - (table[table.len() - 1] - table[0])).abs() < 1e-9);
        }

        #[test]
        fn a_player_that_adds_nothing_gets_nothing((players, table) in game()) {
            let without_dummy = |mask: u64| lookup(&table)(mask & !1);
            let shares = exact_shapley(players, without_dummy).unwrap();
            prop_assert!(shares[0].value.abs() < 1e-9);
        }

        #[test]
        fn interchangeable_players_get_equal_shares((players, table) in game()) {
            let symmetric = |mask: u64| lookup(&table)(if mask & 3 == 2 { mask ^ 3 } else { mask });
            let shares = exact_shapley(players, symmetric).unwrap();
            prop_assert!((shares[0].value - shares[1].value).abs() < 1e-9);
        }
    }
}
