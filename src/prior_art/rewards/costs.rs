//! Costs of seeds: rent on their parameters, occupied slots, moving alpha, and acting at all.

use crate::prelude::*;

/// Rent of an occupied slot as a share of the host's parameters.
pub const SLOT_RENT_RATIO: f64 = 0.0039;

/// The smallest host size in parameters for rent and shock, which would otherwise crush tiny hosts.
const LEAST_HOST_PARAMS: u64 = 200;

/// Host parameters for rent and shock.
fn rented_host(inputs: &RewardInputs) -> f64 {
    inputs.host_params.max(LEAST_HOST_PARAMS) as f64
}

/// Weight of the logarithmic rent on seed parameters, and the most of it per step.
const RENT_WEIGHT: f64 = 0.5;
const MAX_RENT: f64 = 1.5;

/// Rent that grows with the logarithm of the network's growth. At most 0.
pub fn compute_rent(inputs: &RewardInputs, effective: f64) -> f64 {
    let growth = effective / rented_host(inputs);
    -(RENT_WEIGHT * growth.ln_1p()).min(MAX_RENT)
}

/// Cost of a full parameter budget in linear rent, and the parameters that make it up.
const LINEAR_RENT_WEIGHT: f64 = 0.1;
const PARAM_BUDGET: f64 = 500_000.0;

/// Rent in proportion to the share of a parameter budget. At most 0.
pub fn linear_rent(effective: f64) -> f64 {
    -LINEAR_RENT_WEIGHT * effective / PARAM_BUDGET
}

/// Cost per step of each seed beyond the free ones, and how many are free.
const OCCUPANCY_COST: f64 = 0.01;
const FREE_SLOTS: f64 = 1.0;

/// Rent for each seed beyond the free ones, growing or committed.
pub fn occupancy_rent(inputs: &RewardInputs) -> f64 {
    let growing = inputs.after().filter(|seed| seed.is_growing()).count();
    let occupied = (growing + inputs.committed().count()) as f64;
    -OCCUPANCY_COST * (occupied - FREE_SLOTS).max(0.0)
}

/// Cost per step of each committed seed.
const COMMITTED_COST: f64 = 0.002;

/// Rent for each committed seed.
pub fn committed_rent(inputs: &RewardInputs) -> f64 {
    -COMMITTED_COST * inputs.committed().count() as f64
}

/// Cost of moving alpha, per squared change and relative size of the seed, and the most of it per step.
const ALPHA_SHOCK: f64 = 0.1958;
const ALPHA_SHOCK_LIMIT: f64 = 1.0;

/// Cost of moving alpha, by the square. A seed that vanishes counts once, one that is planted does not.
pub fn alpha_shock(inputs: &RewardInputs) -> f64 {
    let moved: f64 = inputs
        .slots
        .iter()
        .filter_map(|slot| {
            let before = slot.before.as_ref()?;
            let after = slot.after.as_ref().map_or(0.0, |seed| seed.alpha);
            Some((after - before.alpha).powi(2) * before.params as f64)
        })
        .sum();
    -(ALPHA_SHOCK * moved / rented_host(inputs)).min(ALPHA_SHOCK_LIMIT)
}

/// Reward of an operation that took effect.
const GERMINATE: f64 = -0.15;
const SET_ALPHA_TARGET: f64 = -0.005;
const PRUNE: f64 = -0.005;
const COMMIT: f64 = -0.01;
const ADVANCE_FROM_TRAINING: f64 = -0.1;

/// Cost of acting at all.
pub fn intervention(inputs: &RewardInputs) -> f64 {
    match inputs.op {
        LifecycleOp::Wait => 0.0,
        LifecycleOp::Germinate => GERMINATE,
        LifecycleOp::SetAlphaTarget => SET_ALPHA_TARGET,
        LifecycleOp::Prune => PRUNE,
        LifecycleOp::Commit => COMMIT,
        LifecycleOp::Advance => match inputs.acted() {
            Some(seed) if seed.stage == SeedStage::Training => ADVANCE_FROM_TRAINING,
            _ => 0.0,
        },
    }
}

/// Reward per seed that the engine had to remove.
const AUTO_PRUNE: f64 = -0.2;

/// Cost of seeds that the engine removed since the last reward.
pub fn auto_prune(inputs: &RewardInputs) -> f64 {
    AUTO_PRUNE * f64::from(inputs.auto_pruned)
}

#[cfg(test)]
mod tests;
