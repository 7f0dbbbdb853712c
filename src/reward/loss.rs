//! The loss family: the change of the validation loss (negative = better), less rent; how far it got at the end.
//!
//! The loss is that of the network with committed seeds alone, where it was measured; in the last step it must be. What is
//! paid follows it by at most `max_loss_delta` typical changes a step and catches up later, and the last step settles the
//! rest. So with `regression_penalty_scale: 1` an episode is paid for the loss from its first step to its end, and for
//! nothing in between: a rise that falls again pays nothing.

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs, finite};
use super::mode::RewardMode;
use super::potential::Potential;
use super::state::RewardState;
use crate::scenario::LossReward;

impl RewardMode for LossReward {
    fn pay(
        &self,
        inputs: &RewardInputs,
        _gamma: f64,
        state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        let scale = self.scale();
        let loss = finite("the validation loss", inputs.committed_loss.unwrap_or(inputs.loss))?;
        let paid = *state.paid_loss.get_or_insert(loss);
        let change = ((loss - paid) / scale.typical_delta).clamp(-self.max_loss_delta, self.max_loss_delta);
        out.pay(Term::LossDelta, self.price(change));
        let paid = paid + change * scale.typical_delta;
        state.paid_loss = Some(paid);

        let growth = self.charged_params(inputs) / inputs.host_params.max(1) as f64;
        let rent = (scale.rent_weight * growth.ln_1p()).min(self.max_rent_penalty);
        out.context.effective_params = Some(self.charged_params(inputs));
        out.pay(Term::ComputeRent, -rent);
        out.pay(Term::AutoPrune, self.auto_prune_penalty * f64::from(inputs.auto_pruned));
        if inputs.is_final {
            let committed = finite("the committed loss", inputs.committed_loss()?)?;
            out.pay(
                Term::LossSettlement,
                self.price((committed - paid) / scale.typical_delta),
            );
            let reached = (scale.baseline - committed) / (scale.baseline - scale.target);
            out.pay(Term::TerminalLoss, self.terminal_loss_weight * reached.clamp(0.0, 1.0));
        }
        Ok(())
    }

    fn potential(&self) -> Option<Potential> {
        Some(Potential {
            weight: self.stage_potential_weight,
            ..Potential::default()
        })
    }
}

impl LossReward {
    /// Of a change of the loss, in typical changes.
    fn price(&self, change: f64) -> f64 {
        let weighed = match change > 0.0 {
            true => self.regression_penalty_scale * change,
            false => change,
        };
        -self.loss_delta_weight * weighed
    }

    /// Parameters of seeds past their grace.
    fn charged_params(&self, inputs: &RewardInputs) -> f64 {
        let occupied = inputs.after().filter(|seed| seed.stage.is_occupied());
        let params: u64 = occupied
            .filter(|seed| seed.age >= self.grace_epochs)
            .map(|seed| seed.params)
            .sum();
        params as f64
    }
}

#[cfg(test)]
mod tests;
