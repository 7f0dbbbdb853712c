//! One measure of a network's cost, for accuracy minus rent: the same for networks of runs with different rewards and rents.

use super::inputs::RewardInputs;

/// Points per step for each e-fold by which the network grows, and the most of them.
const RENT: f64 = 0.5;
const MOST_RENT: f64 = 1.5;
/// Growth is relative to the parameters of the host, or to these if it has fewer.
const LEAST_HOST_PARAMS: u64 = 200;
/// What an occupied slot adds to the parameters, as a share of the host's.
const SLOT_SHARE: f64 = 0.0039;
/// Points per step of each seed beyond the first, and of each committed one.
const SEED: f64 = 0.01;
const COMMITTED_SEED: f64 = 0.002;

/// What parameters and seeds cost in a step, at least 0, in points.
pub fn standard_rent(inputs: &RewardInputs) -> f64 {
    let effective = inputs.effective_params(SLOT_SHARE);
    let growth = effective / inputs.host_params.max(LEAST_HOST_PARAMS) as f64;
    let committed = inputs.committed().count();
    let seeds = committed + inputs.after().filter(|seed| seed.is_growing()).count();
    let occupancy = SEED * seeds.saturating_sub(1) as f64;
    (RENT * growth.ln_1p()).min(MOST_RENT) + occupancy + COMMITTED_SEED * committed as f64
}

#[cfg(test)]
mod tests;
