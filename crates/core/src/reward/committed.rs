//! The mode that pays what is wanted: accuracy with the committed seeds alone, less rent on parameters.
//!
//! With v the measured accuracy and F the committed seeds, a step pays `w · (v_t(F_t) − v_{t−1}(F_{t−1}))`. Over an episode
//! that is `w` times the committed accuracy gained, no matter what was held, blended or pruned before: a seed that is not
//! committed earns nothing, a harmful commit charges itself, and what co-adapts after a commit is paid when it appears.
//!
//! Growing seeds are guided by a loan: the potential `Φ = w · loan · max(0, v(F ∪ growing) − v(F))` of what they would add
//! if they were committed now. `γΦ_{t+1} − Φ_t` telescopes, and Φ is 0 before the first seed and after the last step, so
//! the discounted sum of an episode that terminates is 0: lent, never given (Ng, Harada, Russell 1999).

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{EpisodeStatus, RewardError, RewardInputs};
use super::mode::RewardMode;
use super::state::RewardState;
use crate::scenario::{CommittedReward, MeasurementNeed, RewardProfile};

impl RewardMode for CommittedReward {
    fn pay(
        &self,
        inputs: &RewardInputs,
        gamma: f64,
        state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        let committed = inputs.committed_accuracy()?;
        if let Some(before) = state.committed_accuracy.replace(committed) {
            out.pay(Term::CommittedChange, self.weight * (committed - before));
        }
        let effective = inputs.effective_params(0.0);
        out.pay(Term::LinearRent, -self.weight * rent_points(self, effective, inputs));
        let lent = match inputs.status {
            EpisodeStatus::Terminated => 0.0,
            EpisodeStatus::Running | EpisodeStatus::Truncated => {
                let whole = inputs.kept_accuracy.unwrap_or(committed);
                self.weight * self.loan * (whole - committed).max(0.0)
            }
        };
        out.pay(Term::Loan, gamma * lent - state.lent);
        state.lent = lent;
        Ok(())
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            price: Some(self.rent),
            ..RewardProfile::needing(MeasurementNeed::EveryStep)
        }
    }
}

/// What the parameters on the output path cost in this step, percentage points.
fn rent_points(reward: &CommittedReward, effective: f64, inputs: &RewardInputs) -> f64 {
    let growth = effective / inputs.host_params.max(1) as f64;
    reward.rent * growth / f64::from(inputs.max_steps.max(1))
}

#[cfg(test)]
mod tests;
