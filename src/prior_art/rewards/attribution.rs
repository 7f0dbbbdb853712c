//! Credit of a seed: its contribution, bounded by the env's progress, discounted where the coalition does harm, and fined if
//! it looks like a hostage-taker.

use crate::prelude::*;

/// Contribution from which a commit counts as contributing, percentage points.
pub const CONTRIBUTING: f64 = 1.0;
/// Weight of the potential-based shaping.
pub const POTENTIAL_WEIGHT: f64 = 0.3;

/// Credit for a contribution `c` while the env progressed by `p`, both in percentage points: their harmonic mean where the
/// contribution is the larger one.
pub fn combine(p: f64, c: f64) -> f64 {
    if p <= 0.0 {
        0.0
    } else if c < p {
        c
    } else {
        2.0 * p * c / (p + c).max(1e-8)
    }
}

/// The steepness with which credit fades when the seeds together do harm, per percentage point.
const REGRESSION_STEEPNESS: f64 = 3.0;
/// Keeps `exp` finite.
const MAX_EXPONENT: f64 = 700.0;

/// Factor on positive attribution, by the joint improvement of all growing seeds: 1 where they help, towards 0 where
/// they harm, continuous at 0.
pub fn regression_discount(delta_cf: Option<f64>) -> f64 {
    match delta_cf {
        Some(delta) if delta < 0.0 => 2.0 / (1.0 + (-REGRESSION_STEEPNESS * delta).min(MAX_EXPONENT).exp()),
        _ => 1.0,
    }
}

/// Contribution below which no ratio is looked at, percentage points.
const RATIO_FROM_CONTRIBUTION: f64 = 1.0;
/// Ratio penalty per multiple of the threshold by which the ratio exceeds it.
const RATIO_PENALTY_RATE: f64 = 0.1;
/// Contribution at which a seed without joint improvement is fined in full, percentage points.
const FULL_FINE_CONTRIBUTION: f64 = 10.0;
/// Joint improvement below which large contributions are fined at once, percentage points.
const SAFE_IMPROVEMENT: f64 = 0.1;
/// Contribution per joint improvement above which a seed is fined.
const FINED_RATIO: f64 = 5.0;
/// Most that a seed is fined for its ratio.
const RATIO_PENALTY_LIMIT: f64 = 0.3;

/// Fine for a seed whose contribution `c` far exceeds what all seeds add together; at most 0.
pub fn ratio_penalty(c: f64, delta_cf: Option<f64>) -> f64 {
    match delta_cf {
        Some(delta) if delta >= 0.0 && c > RATIO_FROM_CONTRIBUTION => {
            if delta <= SAFE_IMPROVEMENT {
                -RATIO_PENALTY_LIMIT * (c / FULL_FINE_CONTRIBUTION).min(1.0)
            } else {
                let excess = (c / delta - FINED_RATIO).max(0.0);
                -RATIO_PENALTY_LIMIT.min(RATIO_PENALTY_RATE * excess / FINED_RATIO)
            }
        }
        _ => 0.0,
    }
}

/// Accuracy gained since a seed's germination, percentage points.
pub fn progress(inputs: &RewardInputs, seed: &SeedView) -> f64 {
    inputs.accuracy - seed.accuracy_at_germination
}

/// Credit of a seed that is committed now: its contribution as far as the env has gained since it germinated. Percentage
/// points; `None` if the contribution is unknown.
pub fn commit_credit(inputs: &RewardInputs, seed: &SeedView) -> Option<f64> {
    let points = seed.contribution?;
    Some(combine(progress(inputs, seed), points).min(points))
}

/// A growing seed whose contribution is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeedValue {
    pub slot: usize,
    /// Percentage points.
    pub contribution: f64,
    /// Accuracy since its germination, percentage points.
    pub progress: f64,
    /// Attribution `A` before the rules of the acted slot.
    pub attribution: f64,
}

/// Bound of a seed's attribution per step.
const ATTRIBUTION_CLIP: f64 = 10.0;

/// Clips a weighted contribution to the range of one step.
pub fn weigh(weight: f64, points: f64) -> f64 {
    (weight * points).clamp(-ATTRIBUTION_CLIP, ATTRIBUTION_CLIP)
}

/// The growing seeds whose contribution is known, in slot order, by the progress up to `accuracy` and the reward of a percentage
/// point. A harmful one is charged in full: no discount softens it.
pub fn value_seeds(inputs: &RewardInputs, accuracy: f64, weight: f64) -> Vec<SeedValue> {
    let regression = regression_discount(inputs.delta_cf);
    let value = |(slot, seed): (usize, &SeedView)| {
        let contribution = seed.contribution?;
        let progress = accuracy - seed.accuracy_at_germination;
        let points = if contribution < 0.0 {
            contribution
        } else {
            combine(progress, contribution) * regression
        };
        Some(SeedValue {
            slot,
            contribution,
            progress,
            attribution: weigh(weight, points),
        })
    };
    inputs
        .before()
        .filter(|(_, seed)| seed.is_growing())
        .filter_map(value)
        .collect()
}

#[cfg(test)]
mod tests;
