//! What a growing seed contributes is put on its account, which grows and shrinks with it. A commit keeps the account;
//! whatever else ends the seed empties it. The account is a potential (`γE′ − E`), so that a seed which is never
//! committed adds exactly nothing to the discounted return.

use super::attribution::{SeedValue, ratio_penalty, value_seeds};
use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};
use super::mode::RewardMode;
use super::potential::Potential;
use super::state::RewardState;
use crate::growth::LifecycleOp;
use crate::scenario::{EscrowReward, RewardProfile};

/// Steps whose least accuracy counts as progress: a spike earns nothing.
const STABLE_WINDOW: usize = 3;
/// Most that a credit changes in a step.
const DELTA_CLIP: f64 = 2.0;

impl RewardMode for EscrowReward {
    fn pay(
        &self,
        inputs: &RewardInputs,
        gamma: f64,
        state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        let delta_cf = state.delta_cf(inputs.step, self.shaped.max_staleness);
        let stable = state.stable_accuracy(STABLE_WINDOW).unwrap_or(inputs.accuracy);
        let values = value_seeds(&self.shaped, inputs, stable, delta_cf);
        for (slot, _) in inputs.before().filter(|(_, seed)| seed.is_growing()) {
            let value = values.iter().find(|value| value.slot == slot);
            if let Some(Some(memory)) = state.slots.get_mut(slot) {
                let next = self.next_credit(memory.credit, slot, value, delta_cf, inputs);
                let is_kept = inputs.executed(LifecycleOp::Fossilize, slot);
                let carried = if is_kept { next } else { gamma * next };
                out.pay(Term::EscrowPayment, carried - memory.credit);
                memory.credit = if is_kept { 0.0 } else { next };
            }
            let harm = value.map_or(0.0, |value| value.attribution.min(0.0));
            if !inputs.executed(LifecycleOp::Prune, slot) {
                out.pay(Term::EscrowHarm, harm);
            }
        }
        self.shaped.pay_shared(gamma, &values, delta_cf, inputs, state, out)
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            measures_fossils: false,
            ..self.shaped.profile()
        }
    }

    fn potential(&self) -> Option<Potential> {
        self.shaped.potential()
    }
}

impl EscrowReward {
    /// The account of a growing seed after the step, at least 0; it never overshoots its target.
    fn next_credit(
        &self,
        credit: f64,
        slot: usize,
        value: Option<&SeedValue>,
        delta_cf: Option<f64>,
        inputs: &RewardInputs,
    ) -> f64 {
        let commits = inputs.executed(LifecycleOp::Fossilize, slot);
        let does_harm = value.is_some_and(|value| value.contribution < 0.0);
        let is_void = commits && delta_cf.is_some_and(|delta| delta < 0.0);
        let is_gone = inputs.executed(LifecycleOp::Prune, slot) || inputs.lost(slot);
        if does_harm || is_void || is_gone || inputs.is_final && !commits {
            return 0.0;
        }
        let Some(value) = value else { return credit };
        let penalty = ratio_penalty(&self.shaped, value.contribution, delta_cf);
        let target = (value.attribution.max(0.0) + penalty).max(0.0);
        credit + (target - credit).clamp(-DELTA_CLIP, DELTA_CLIP)
    }
}

#[cfg(test)]
mod tests;
