//! Shapley values of seeds: the average gain of each over all orders in which they could have joined.
//!
//! Pure functions on coalition values. Exact if all 2^n coalitions were measured; otherwise estimated from exactly the
//! orders that generated the plan, so that no coalition is missing and the estimate stays unbiased.

use crate::telemetry::{Num, ShapleyValue};

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
                mean: Num(share(player)),
                std: Some(Num(0.0)),
                n: 0,
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

/// Mean and standard error over independent pairs; a single pair has none.
fn estimate(pair_means: &[f64]) -> ShapleyValue {
    let count = pair_means.len() as f64;
    let mean = pair_means.iter().sum::<f64>() / count;
    let standard_error = (pair_means.len() > 1).then(|| {
        let squares: f64 = pair_means.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (count - 1.0) / count).sqrt()
    });
    ShapleyValue {
        mean: Num(mean),
        std: standard_error.map(Num),
        n: pair_means.len() as u32,
    }
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
mod tests;
