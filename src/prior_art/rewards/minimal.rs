//! The engine's sparse reward, and a penalty for pruning early.

use crate::prelude::*;

/// Age below which a prune is fined; without effect where `lifecycle.min_prune_age` forbids such prunes.
const EARLY_PRUNE_AGE: u32 = 5;
/// Reward of pruning too early.
const EARLY_PRUNE_PENALTY: f64 = -0.1;

/// As sparse, and a penalty for pruning early.
#[derive(Clone, Copy, Debug)]
pub struct MinimalReward;

impl RewardMode for MinimalReward {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        SparseReward::default().pay(step, state, out)?;
        let pruned = step.acted().filter(|_| step.op == LifecycleOp::Prune);
        if pruned.is_some_and(|seed| seed.age < EARLY_PRUNE_AGE) {
            out.pay(Term::PruneShaping, EARLY_PRUNE_PENALTY);
        }
        Ok(())
    }

    fn profile(&self) -> RewardProfile {
        SparseReward::default().profile()
    }
}

#[cfg(test)]
mod tests;
