//! The loss family: the change of the validation loss (negative = better), less rent, and a payment for the progress at the end.
//!
//! The loss is that of the network with committed seeds alone, where it was measured; in the last step it must be. The payment
//! follows it by at most [`MAX_DELTA`] typical changes a step and catches up later, and the last step settles the
//! rest. So an episode is paid for the loss from its first step to its end, and for
//! nothing in between: a rise that falls again pays nothing.

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs, finite};
use super::mode::RewardMode;
use super::state::RewardState;
use crate::scenario::{LossReward, MeasurementNeed, RewardProfile};

/// Reward per typical change of the loss.
const DELTA_WEIGHT: f64 = 5.0;
/// Most typical changes that count in one step; the rest counts in the next ones.
const MAX_DELTA: f64 = 5.0;
/// Most rent per step.
const MAX_RENT: f64 = 5.0;
/// Age from which a seed pays rent.
const GRACE_STEPS: u32 = 3;
/// Reward per seed that the engine had to remove.
const AUTO_PRUNE: f64 = -0.2;
/// Weight of the potential-based shaping.
const POTENTIAL_WEIGHT: f64 = 0.1;
/// Reward at the end of reaching the target loss.
const TERMINAL_WEIGHT: f64 = 1.0;

impl RewardMode for LossReward {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        let scale = self.preset.scale();
        let loss = finite("the validation loss", step.committed_loss.unwrap_or(step.loss))?;
        let paid = *state.paid_loss.get_or_insert(loss);
        let change = ((loss - paid) / scale.typical_delta).clamp(-MAX_DELTA, MAX_DELTA);
        out.pay(Term::LossDelta, -DELTA_WEIGHT * change);
        let paid = paid + change * scale.typical_delta;
        state.paid_loss = Some(paid);

        let growth = charged_params(step) / step.host_params.max(1) as f64;
        let rent = (scale.rent_weight * growth.ln_1p()).min(MAX_RENT);
        out.pay(Term::ComputeRent, -rent);
        out.pay(Term::AutoPrune, AUTO_PRUNE * f64::from(step.auto_pruned));
        if step.is_final {
            let committed = finite("the committed loss", step.committed_loss()?)?;
            let rest = (committed - paid) / scale.typical_delta;
            out.pay(Term::LossSettlement, -DELTA_WEIGHT * rest);
            let reached = (scale.baseline - committed) / (scale.baseline - scale.target);
            out.pay(Term::TerminalLoss, TERMINAL_WEIGHT * reached.clamp(0.0, 1.0));
        }
        Ok(())
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile::needing(MeasurementNeed::AtTheEnd)
    }

    fn potential_weight(&self) -> Option<f64> {
        Some(POTENTIAL_WEIGHT)
    }
}

/// Parameters of seeds past their grace.
fn charged_params(inputs: &RewardInputs) -> f64 {
    let occupied = inputs.after().filter(|seed| seed.stage.is_occupied());
    let params: u64 = occupied
        .filter(|seed| seed.age >= GRACE_STEPS)
        .map(|seed| seed.params)
        .sum();
    params as f64
}

#[cfg(test)]
mod tests;
