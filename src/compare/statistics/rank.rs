//! Two independent arms: the rank test of Mann and Whitney, and how far the arms are apart.

use std::cmp::Ordering;
use std::f64::consts::SQRT_2;

use serde::Serialize;

use super::summary::median;

/// Most values an arm for which the exact distribution is counted.
const LARGEST_EXACT: usize = 20;

/// Where a p-value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NullDistribution {
    /// All orders of the values were counted.
    Exact,
    /// The normal approximation, corrected for ties and for continuity.
    Normal,
}

/// The two-sided test of Mann and Whitney (1947): does either arm tend to higher values?
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MannWhitney {
    /// Pairs in which the first arm is higher, of all `n·m`; ties count half.
    pub u: f64,
    /// Two-sided, in [0, 1].
    pub p: f64,
    /// What `p` was read from: exact without ties and with at most 20 values an arm.
    pub null: NullDistribution,
}

/// `None` where an arm is empty or a value is not finite.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    let is_sound = |arm: &[f64]| !arm.is_empty() && arm.iter().all(|value| value.is_finite());
    if !is_sound(first) || !is_sound(second) {
        return None;
    }
    let (n, m) = (first.len(), second.len());
    let u = wins(first, second);
    let larger = u.max((n * m) as f64 - u);
    let ties = tie_term(first, second);
    let (p, null) = if ties == 0.0 && n.max(m) <= LARGEST_EXACT {
        (exact_p(larger as usize, n, m), NullDistribution::Exact)
    } else {
        (normal_p(larger, n, m, ties), NullDistribution::Normal)
    };
    Some(MannWhitney { u, p, null })
}

/// Mann and Whitney's U of the first arm.
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

/// How many orders of `n` and `m` values have each U. With the highest value taken away, either the first arm loses the
/// `m` pairs that it won, or the second arm loses none (Mann and Whitney 1947): `N(u; n, m) = N(u − m; n − 1, m) +
/// N(u; n, m − 1)`. At most C(40, 20) orders: no count overflows.
fn orders_by_u(n: usize, m: usize) -> Vec<u64> {
    let most = n * m;
    let mut one = vec![0; most + 1];
    one[0] = 1;
    // By the size of the first arm, for as many values of the second one as were added so far.
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
    libm::erfc(z / SQRT_2).min(1.0)
}

/// Vargha and Delaney's A (2000): the probability that a value of the first arm is higher than one of the second, ties
/// counting half. In [0, 1]; 0.5 is no difference; NaN where an arm is empty.
fn a12(first: &[f64], second: &[f64]) -> f64 {
    mann_whitney(first, second).map_or(f64::NAN, |test| test.u / (first.len() * second.len()) as f64)
}

/// Cliff's δ = 2·A − 1: how much more often the first arm is ahead than behind. In [−1, 1]; NaN where an arm is empty.
pub fn cliffs_delta(first: &[f64], second: &[f64]) -> f64 {
    2.0 * a12(first, second) - 1.0
}

/// A word for the size of Cliff's δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Magnitude {
    /// Below 0.147 either way.
    Negligible,
    /// Below 0.33.
    Small,
    /// Below 0.474.
    Medium,
    /// Anything more.
    Large,
}

impl Magnitude {
    /// By the thresholds of Romano et al. (2006); `None` of NaN.
    pub fn of(cliffs_delta: f64) -> Option<Self> {
        match cliffs_delta.abs() {
            size if size < 0.147 => Some(Self::Negligible),
            size if size < 0.33 => Some(Self::Small),
            size if size < 0.474 => Some(Self::Medium),
            size if size.is_nan() => None,
            _ => Some(Self::Large),
        }
    }
}

/// The shift of Hodges and Lehmann (1963): the median of all differences between a value of the first arm and one of the
/// second. In the values' unit; NaN where an arm is empty.
pub fn hodges_lehmann(first: &[f64], second: &[f64]) -> f64 {
    let differences = first
        .iter()
        .flat_map(|ours| second.iter().map(move |theirs| ours - theirs));
    median(&differences.collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests;
