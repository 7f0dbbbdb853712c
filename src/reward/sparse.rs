//! The modes that pay once, at the end.

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};
use super::mode::RewardMode;
use super::state::RewardState;
use crate::growth::LifecycleOp;
use crate::scenario::{MeasurementNeed, MinimalReward, RewardProfile, SparseReward};

/// Cost of a full parameter budget, in units of the reward of a full accuracy.
const PARAM_PENALTY_WEIGHT: f64 = 0.1;
/// Age below which a prune is fined; without effect where `lifecycle.min_prune_age` forbids such prunes.
const EARLY_PRUNE_AGE: u32 = 5;
/// Reward of pruning too early.
const EARLY_PRUNE_PENALTY: f64 = -0.1;

/// Nothing until the end; then committed accuracy less the committed parameters' share of the budget.
impl RewardMode for SparseReward {
    fn pay(
        &self,
        inputs: &RewardInputs,
        _gamma: f64,
        _state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        if !inputs.is_final {
            return Ok(());
        }
        let accuracy = inputs.committed_accuracy()?;
        let params: u64 = inputs.fossils().map(|seed| seed.params).sum();
        let cost = PARAM_PENALTY_WEIGHT * params as f64 / self.param_budget as f64;
        let outcome = (accuracy / 100.0 - cost).clamp(-1.0, 1.0);
        out.pay(Term::SparseOutcome, self.sparse_reward_scale * outcome);
        Ok(())
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            measurement: MeasurementNeed::AtTheEnd,
            ..RewardProfile::default()
        }
    }
}

/// And a penalty for pruning early.
impl RewardMode for MinimalReward {
    fn pay(
        &self,
        inputs: &RewardInputs,
        gamma: f64,
        state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        self.sparse.pay(inputs, gamma, state, out)?;
        let pruned = inputs.acted().filter(|_| inputs.op == LifecycleOp::Prune);
        if pruned.is_some_and(|seed| seed.age < EARLY_PRUNE_AGE) {
            out.pay(Term::PruneShaping, EARLY_PRUNE_PENALTY);
        }
        Ok(())
    }

    fn profile(&self) -> RewardProfile {
        self.sparse.profile()
    }
}

#[cfg(test)]
mod tests;
