//! The mode that pays once, at the end.

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};
use super::mode::RewardMode;
use super::state::RewardState;
use crate::scenario::{MeasurementNeed, RewardProfile, SparseReward};

/// Cost of a full parameter budget, in units of the reward of a full accuracy.
const PARAM_PENALTY_WEIGHT: f64 = 0.1;

/// Committed parameters that make up the budget.
const PARAM_BUDGET: f64 = 500_000.0;

/// Nothing until the end; then committed accuracy less the committed parameters' share of the budget.
impl RewardMode for SparseReward {
    fn pay(&self, step: &RewardInputs, _: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        if !step.is_final {
            return Ok(());
        }
        let accuracy = step.committed_accuracy()?;
        let params: u64 = step.committed().map(|seed| seed.params).sum();
        let cost = PARAM_PENALTY_WEIGHT * params as f64 / PARAM_BUDGET;
        let outcome = (accuracy / 100.0 - cost).clamp(-1.0, 1.0);
        out.pay(Term::SparseOutcome, self.sparse_reward_scale * outcome);
        Ok(())
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile::needing(MeasurementNeed::AtTheEnd)
    }
}

#[cfg(test)]
mod tests;
