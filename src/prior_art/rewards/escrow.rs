//! A growing seed's contribution is put on its account, which grows and shrinks with it. A commit keeps the account; any other
//! end of the seed empties it. The account is a potential (`γE′ − E`), so that a seed which is never committed adds exactly
//! nothing to the discounted return.

use super::attribution::{SeedValue, value_seeds};
use super::memory::remembering;
use super::shaped::{ShapedReward, does_harm};
use crate::prelude::*;

/// Most that a credit changes in a step.
const DELTA_CLIP: f64 = 2.0;

section! {
    /// As shaped, but the contribution of a growing seed is a credit: it grows and falls with the contribution, and only a commit
    /// keeps it.
    pub struct EscrowReward {
        /// Settings of all other terms.
        shaped: ShapedReward;
    }
}

impl RewardMode for EscrowReward {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        remembering(step, state, |memory| {
            let stable = memory.stable_accuracy().unwrap_or(step.accuracy);
            let values = value_seeds(step, stable, self.shaped.contribution_weight);
            for (slot, _) in step.before().filter(|(_, seed)| seed.is_growing()) {
                let value = values.iter().find(|value| value.slot == slot);
                if let Some(account) = memory.of_mut(slot) {
                    let next = self.next_credit(account.credit, slot, value, step);
                    let is_kept = step.executed(LifecycleOp::Commit, slot);
                    let carried = if is_kept { next } else { step.gamma * next };
                    out.pay(Term::EscrowPayment, carried - account.credit);
                    account.credit = if is_kept { 0.0 } else { next };
                }
                let harm = value.map_or(0.0, |value| value.attribution.min(0.0));
                if !step.executed(LifecycleOp::Prune, slot) {
                    out.pay(Term::EscrowHarm, harm);
                }
            }
            self.shaped.pay_shared(&values, step, memory, out)
        })
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            measures_committed: false,
            ..self.shaped.profile()
        }
    }

    fn potential_weight(&self) -> Option<f64> {
        self.shaped.potential_weight()
    }
}

impl EscrowReward {
    /// The account of a growing seed after the step, at least 0; it never overshoots its target.
    fn next_credit(&self, credit: f64, slot: usize, value: Option<&SeedValue>, inputs: &RewardInputs) -> f64 {
        let commits = inputs.executed(LifecycleOp::Commit, slot);
        let is_harmful = value.is_some_and(|value| value.contribution < 0.0);
        let is_void = commits && does_harm(inputs);
        let is_gone = inputs.executed(LifecycleOp::Prune, slot) || inputs.lost(slot);
        if is_harmful || is_void || is_gone || inputs.is_final && !commits {
            return 0.0;
        }
        let Some(value) = value else { return credit };
        let penalty = self.shaped.ratio_penalty(value, inputs);
        let target = (value.attribution.max(0.0) + penalty).max(0.0);
        credit + (target - credit).clamp(-DELTA_CLIP, DELTA_CLIP)
    }
}

#[cfg(test)]
mod tests;
