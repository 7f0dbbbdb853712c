//! Two independent arms: the rank test of Mann and Whitney, and the distance between the arms.

use std::cmp::Ordering;
use std::f64::consts::SQRT_2;

use statrs::function::erf::erfc;

/// Most values an arm for which the exact distribution is counted.
const LARGEST_EXACT: usize = 20;

/// The two-sided p, in [0, 1], of the test of Mann and Whitney (1947): does either arm tend to higher values? It is exact without
/// ties and with at most 20 values an arm; else the normal approximation, corrected for ties and for continuity. `None` where an
/// arm is empty or a value is not finite.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<f64> {
    let is_sound = |arm: &[f64]| !arm.is_empty() && arm.iter().all(|value| value.is_finite());
    if !is_sound(first) || !is_sound(second) {
        return None;
    }
    let (n, m) = (first.len(), second.len());
    let u = wins(first, second);
    let larger = u.max((n * m) as f64 - u);
    let ties = tie_term(first, second);
    Some(if ties == 0.0 && n.max(m) <= LARGEST_EXACT {
        exact_p(larger as usize, n, m)
    } else {
        normal_p(larger, n, m, ties)
    })
}

/// Mann and Whitney's U of the first arm: pairs in which it is higher, of all `n·m`; ties count half.
pub(super) fn wins(first: &[f64], second: &[f64]) -> f64 {
    let against = |&ours: &f64| -> f64 {
        let points = second.iter().map(|theirs| match ours.partial_cmp(theirs) {
            Some(Ordering::Greater) => 1.0,
            Some(Ordering::Equal) => 0.5,
            _ => 0.0,
        });
        points.sum()
    };
    first.iter().map(against).sum()
}

/// Σ (t³ − t) over groups of `t` equal values.
fn tie_term(first: &[f64], second: &[f64]) -> f64 {
    let mut all = [first, second].concat();
    all.sort_unstable_by(f64::total_cmp);
    let groups = all.chunk_by(|a, b| a == b).map(|group| group.len() as f64);
    groups.map(|size| size.powi(3) - size).sum()
}

/// Probability that the larger U is at least `larger`, if all orders of `n + m` values are equally likely.
fn exact_p(larger: usize, n: usize, m: usize) -> f64 {
    let orders = orders_by_u(n, m);
    let total: u64 = orders.iter().sum();
    let tail: u64 = orders[larger..].iter().sum();
    (2.0 * tail as f64 / total as f64).min(1.0)
}

/// The number of orders of `n` and `m` values for each U. With the highest value taken away, either the first arm loses the
/// `m` pairs that it won, or the second arm loses none (Mann and Whitney 1947): `N(u; n, m) = N(u − m; n − 1, m) +
/// N(u; n, m − 1)`. At most C(40, 20) orders: no count overflows.
fn orders_by_u(n: usize, m: usize) -> Vec<u64> {
    let most = n * m;
    let mut one = vec![0; most + 1];
    one[0] = 1;
    // The index is the size of the first arm. The entries count the values of the second one that were added so far.
    let mut orders = vec![one; n + 1];
    for added in 1..=m {
        for size in 1..=n {
            let (smaller, rest) = orders.split_at_mut(size);
            for u in added..=most {
                rest[0][u] += smaller[size - 1][u - added];
            }
        }
    }
    orders.swap_remove(n)
}

/// The normal approximation with its variance corrected for ties, and continuity for the half step between values of U.
fn normal_p(larger: f64, n: usize, m: usize, ties: f64) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        // All values are equal.
        return 1.0;
    }
    let z = (larger - n * m / 2.0 - 0.5) / variance.sqrt();
    erfc(z / SQRT_2).min(1.0)
}

#[cfg(test)]
mod tests;
