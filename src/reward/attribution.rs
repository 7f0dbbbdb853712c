//! What a seed is credited with: its contribution, bounded by the env's progress, discounted where the coalition does
//! harm or the seed came too early, and fined where it looks like a hostage-taker.

use super::inputs::{RewardInputs, SeedView};
use crate::scenario::{AttributionFormula, ShapedReward};

/// Contribution below which no ratio is looked at, percentage points.
const RATIO_FROM_CONTRIBUTION: f64 = 1.0;
/// Ratio penalty per multiple of the threshold by which the ratio exceeds it.
const RATIO_PENALTY_RATE: f64 = 0.1;
/// Contribution at which a seed without joint improvement is fined in full, percentage points.
const FULL_FINE_CONTRIBUTION: f64 = 10.0;
/// Keeps `exp` finite.
const MAX_EXPONENT: f64 = 700.0;

/// What is credited of a contribution `c` while the env progressed by `p`, both in percentage points.
pub fn combine(formula: AttributionFormula, p: f64, c: f64) -> f64 {
    if p <= 0.0 {
        0.0
    } else if c < p {
        c
    } else {
        match formula {
            AttributionFormula::Harmonic => 2.0 * p * c / (p + c).max(1e-8),
            AttributionFormula::Minimum => p.min(c),
        }
    }
}

/// Factor on positive attribution, by the joint improvement of all growing seeds: 1 where they help, towards 0 where
/// they harm, continuous at 0.
pub fn regression_discount(delta_cf: Option<f64>, steepness: f64) -> f64 {
    match delta_cf {
        Some(delta) if delta < 0.0 => 2.0 / (1.0 + (-steepness * delta).min(MAX_EXPONENT).exp()),
        _ => 1.0,
    }
}

/// Factor on positive attribution, by the step of germination: a host that has not learned yet flatters its seeds.
pub fn timing_discount(germination_step: u32, warmup: u32, floor: f64) -> f64 {
    if germination_step >= warmup {
        1.0
    } else {
        floor + (1.0 - floor) * f64::from(germination_step) / f64::from(warmup)
    }
}

/// Fine for a seed whose contribution `c` far exceeds what all seeds add together; at most 0.
pub fn ratio_penalty(config: &ShapedReward, c: f64, delta_cf: Option<f64>) -> f64 {
    let most = config.prune_good_seed_penalty.abs();
    match delta_cf {
        Some(delta) if delta >= 0.0 && c > RATIO_FROM_CONTRIBUTION && !config.disable_anti_gaming => {
            let threshold = config.hacking_ratio_threshold;
            if delta <= config.improvement_safe_threshold {
                -most * (c / FULL_FINE_CONTRIBUTION).min(1.0)
            } else {
                let excess = (c / delta - threshold).max(0.0);
                -most.min(RATIO_PENALTY_RATE * excess / threshold)
            }
        }
        _ => 0.0,
    }
}

/// Accuracy gained since a seed's germination, percentage points.
pub fn progress(inputs: &RewardInputs, seed: &SeedView) -> f64 {
    inputs.accuracy - seed.accuracy_at_germination
}

/// What a seed that is committed now counts for: its contribution as far as the env has gained since it germinated.
/// Percentage points; `None` if the contribution is unknown.
pub fn commit_credit(
    formula: AttributionFormula,
    inputs: &RewardInputs,
    seed: &SeedView,
    max_staleness: u32,
) -> Option<f64> {
    let points = seed.fresh_contribution(max_staleness)?;
    Some(combine(formula, progress(inputs, seed), points).min(points))
}

/// A growing seed whose contribution is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeedValue {
    pub slot: usize,
    /// Percentage points.
    pub contribution: f64,
    /// Accuracy since its germination, percentage points.
    pub progress: f64,
    pub timing: f64,
    /// Attribution `A` before the rules of the acted slot.
    pub attribution: f64,
}

/// Clips a weighted contribution to the range of one step.
pub fn weigh(config: &ShapedReward, points: f64) -> f64 {
    let weighted = config.contribution_weight * points;
    match config.attribution_clip {
        clip if clip > 0.0 => weighted.clamp(-clip, clip),
        _ => weighted,
    }
}

/// The growing seeds whose contribution is known, in slot order, by the progress up to `accuracy`. A harmful one is charged in
/// full: no discount softens it.
pub fn value_seeds(
    config: &ShapedReward,
    inputs: &RewardInputs,
    accuracy: f64,
    delta_cf: Option<f64>,
) -> Vec<SeedValue> {
    let regression = regression_discount(delta_cf, config.attribution_sigmoid_steepness);
    let value = |(slot, seed): (usize, &SeedView)| {
        let contribution = seed.fresh_contribution(config.max_staleness)?;
        let progress = accuracy - seed.accuracy_at_germination;
        let timing = match config.disable_timing_discount {
            true => 1.0,
            false => timing_discount(
                inputs.step.saturating_sub(seed.age),
                config.germination_warmup_epochs,
                config.germination_discount_floor,
            ),
        };
        let points = if contribution < 0.0 {
            contribution
        } else {
            combine(config.attribution_formula, progress, contribution) * regression * timing
        };
        Some(SeedValue {
            slot,
            contribution,
            progress,
            timing,
            attribution: weigh(config, points),
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
