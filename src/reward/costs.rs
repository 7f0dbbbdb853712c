//! What seeds cost: rent on their parameters, occupied slots, moving alpha, and acting at all.

use std::ops::Add;

use super::inputs::{RewardInputs, SeedView};
use crate::growth::{LifecycleOp, SeedStage};
use crate::scenario::ShapedReward;

/// Parameters that rent is charged for: alpha-weighted seeds on the output path, plus a share of the host per slot.
/// Germinated and training seeds are in grace.
pub fn effective_params<'a>(seeds: impl Iterator<Item = &'a SeedView>, host_params: u64, slot_ratio: f64) -> f64 {
    seeds
        .filter(|seed| {
            matches!(
                seed.stage,
                SeedStage::Blending | SeedStage::Holding | SeedStage::Fossilized
            )
        })
        .map(|seed| slot_ratio * host_params as f64 + seed.alpha * seed.params as f64)
        .fold(0.0, Add::add)
}

/// Host parameters as rent and shock reckon by them: tiny hosts are not crushed.
fn reckoned_host(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    inputs.host_params.max(config.rent_host_params_floor) as f64
}

/// Grows with the logarithm of the network's growth; at most 0.
pub fn compute_rent(config: &ShapedReward, inputs: &RewardInputs, effective: f64) -> f64 {
    let growth = effective / reckoned_host(config, inputs);
    -(config.rent_weight * growth.ln_1p()).min(config.max_rent)
}

/// Proportional to the share of a parameter budget; at most 0.
pub fn linear_rent(weight: f64, effective: f64, budget: u64) -> f64 {
    -weight * effective / budget as f64
}

/// For each seed beyond the free ones, growing or committed.
pub fn occupancy_rent(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    let growing = inputs.after().filter(|seed| seed.is_growing()).count();
    let occupied = (growing + inputs.fossils().count()) as f64;
    -config.seed_occupancy_cost * (occupied - f64::from(config.free_slots)).max(0.0)
}

/// For each committed seed.
pub fn fossil_rent(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    -config.fossilized_maintenance_cost * inputs.fossils().count() as f64
}

/// What parameters and slots cost in a step by the default coefficients of the shaped reward, at least 0, in points: one
/// yardstick for networks that were paid for by different rewards.
pub fn standard_rent(inputs: &RewardInputs) -> f64 {
    let config = ShapedReward::default();
    let effective = effective_params(inputs.after(), inputs.host_params, config.base_slot_rent_ratio);
    -(compute_rent(&config, inputs, effective) + occupancy_rent(&config, inputs) + fossil_rent(&config, inputs))
}

/// For moving alpha, by the square: a seed that vanishes counts once, one that is planted does not.
pub fn alpha_shock(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    if config.disable_anti_gaming {
        return 0.0;
    }
    let moved: f64 = inputs
        .slots
        .iter()
        .filter_map(|slot| {
            let before = slot.before.as_ref()?;
            let after = slot.after.as_ref().map_or(0.0, |seed| seed.alpha);
            Some((after - before.alpha).powi(2) * before.params as f64)
        })
        .sum();
    -(config.alpha_shock_coef * moved / reckoned_host(config, inputs)).min(config.alpha_shock_cap)
}

/// For acting at all.
pub fn intervention(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    match inputs.op {
        LifecycleOp::Wait => 0.0,
        LifecycleOp::Germinate => config.germinate_intervention,
        LifecycleOp::SetAlphaTarget => config.set_alpha_target_intervention,
        LifecycleOp::Prune => config.prune_intervention,
        LifecycleOp::Fossilize => config.fossilize_intervention,
        LifecycleOp::Advance => match inputs.acted() {
            Some(seed) if seed.stage == SeedStage::Training => config.advance_from_training_penalty,
            _ => 0.0,
        },
    }
}

/// For a command that did not take effect, where such are fined.
pub fn rejected(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    match inputs.rejected.filter(|_| config.penalize_rejected) {
        Some(LifecycleOp::Fossilize) => config.rejected_fossilize_penalty,
        Some(LifecycleOp::Prune) => config.rejected_prune_penalty,
        Some(LifecycleOp::Germinate) => config.rejected_germinate_penalty,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests;
