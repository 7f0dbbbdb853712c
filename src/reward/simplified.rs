//! The mode for diagnosis: potentials, a flat cost of acting; accuracy and contributing commits at the end.

use super::attribution::commit_credit;
use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};
use super::mode::RewardMode;
use super::potential::Potential;
use super::state::RewardState;
use crate::growth::LifecycleOp;
use crate::scenario::{AttributionFormula, SimplifiedReward};

impl RewardMode for SimplifiedReward {
    fn pay(
        &self,
        inputs: &RewardInputs,
        _gamma: f64,
        state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        if inputs.op != LifecycleOp::Wait {
            out.pay(Term::Intervention, -self.simplified_action_cost);
        }
        if inputs.op == LifecycleOp::Fossilize
            && let Some(seed) = inputs.acted()
        {
            let credit = commit_credit(AttributionFormula::Harmonic, inputs, seed, self.max_staleness);
            state.contributing += u32::from(credit.is_some_and(|points| points >= self.min_fossilize_contribution));
        }
        if inputs.is_final && !self.disable_terminal_reward {
            let accuracy = inputs.committed_accuracy()?;
            out.pay(
                Term::TerminalAccuracy,
                self.simplified_accuracy_weight * accuracy / 100.0,
            );
            // Seeds that are worth something only because others do harm have made nothing better.
            if state.first_accuracy().is_some_and(|first| accuracy >= first) {
                let commits = f64::from(state.contributing);
                out.pay(Term::TerminalFossil, self.simplified_fossil_bonus * commits);
            }
        }
        Ok(())
    }

    fn potential(&self) -> Option<Potential> {
        (!self.disable_pbrs).then_some(Potential {
            weight: self.pbrs_weight,
            progress_bonus: self.epoch_progress_bonus,
            gap_fraction: self.progress_gap_fraction,
        })
    }
}

#[cfg(test)]
mod tests;
