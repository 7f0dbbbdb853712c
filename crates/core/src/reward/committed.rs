//! The mode that pays the goal itself: accuracy with the committed seeds alone, less rent on parameters.
//!
//! With v the measured accuracy and F the committed seeds, a step pays `w · (v_t(F_t) − v_{t−1}(F_{t−1}))`. Over an episode
//! that is `w` times the committed accuracy gained, no matter what was held, blended or pruned before: a seed that is not
//! committed earns nothing, a harmful commit charges itself, and what co-adapts after a commit is paid when it appears.
//!
//! Growing seeds are guided by a loan: the potential `Φ = w · max(0, v(F ∪ growing) − v(F))` of what they would add
//! if they were committed now. `γΦ_{t+1} − Φ_t` telescopes, and Φ is 0 before the first seed and after the last step, so
//! the discounted sum of an episode that terminates is 0: lent, never given (Ng, Harada, Russell 1999).

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{EpisodeStatus, PARTS, RewardError, RewardInputs};
use super::mode::RewardMode;
use super::state::RewardState;
use crate::scenario::{CommittedReward, MeasurementNeed, RewardProfile};

/// Accuracies and size that a step is paid for.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// Accuracy with committed seeds alone, percent.
    committed: f64,
    /// Accuracy with growing seeds too, percent.
    whole: f64,
    /// Parameters on the output path over the host's.
    growth: f64,
}

/// Change of the committed accuracy, loan and rent, in the order in which rewards are added up; `before` and `lent` move on.
fn amounts(
    reward: &CommittedReward,
    reached: Reached,
    (max_steps, gamma, is_over): (u32, f64, bool),
    before: &mut Option<f64>,
    lent: &mut f64,
) -> [(Term, f64); 3] {
    let Reached {
        committed,
        whole,
        growth,
    } = reached;
    let change = before.replace(committed).map_or(0.0, |before| committed - before);
    let rent = reward.rent * growth / f64::from(max_steps.max(1));
    let now = match is_over {
        true => 0.0,
        false => reward.weight * (whole - committed).max(0.0),
    };
    let loan = gamma * now - std::mem::replace(lent, now);
    [
        (Term::CommittedChange, reward.weight * change),
        (Term::Loan, loan),
        (Term::LinearRent, -reward.weight * rent),
    ]
}

/// The reward of each step of an unbroken stretch of an episode, from its [`PARTS`] row by row. `is_terminal`: its last step
/// is the end of the episode, and nothing follows. `None` where the parts were not measured.
pub fn committed_of_parts(
    reward: &CommittedReward,
    parts: &[[f64; PARTS.len()]],
    (max_steps, gamma): (u32, f64),
    is_terminal: bool,
) -> Option<Vec<f64>> {
    let (mut before, mut lent) = (None, 0.0);
    let steps = parts
        .iter()
        .enumerate()
        .map(|(step, &[_, committed, kept, _, growth])| {
            let reached = Reached {
                committed,
                whole: if kept.is_nan() { committed } else { kept },
                growth,
            };
            let is_over = is_terminal && step + 1 == parts.len();
            let amounts = amounts(reward, reached, (max_steps, gamma, is_over), &mut before, &mut lent);
            amounts.iter().map(|(_, amount)| amount).sum::<f64>()
        });
    let rewards: Vec<f64> = steps.collect();
    rewards.iter().all(|reward| reward.is_finite()).then_some(rewards)
}

impl RewardMode for CommittedReward {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        let committed = step.committed_accuracy()?;
        let reached = Reached {
            committed,
            whole: step.kept_accuracy.unwrap_or(committed),
            growth: step.effective_params(0.0) / step.host_params.max(1) as f64,
        };
        let is_over = step.status == EpisodeStatus::Terminated;
        let RewardState {
            committed_accuracy,
            lent,
            ..
        } = state;
        let amounts = amounts(
            self,
            reached,
            (step.max_steps, step.gamma, is_over),
            committed_accuracy,
            lent,
        );
        amounts.into_iter().for_each(|(term, amount)| out.pay(term, amount));
        Ok(())
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            price: Some(self.rent),
            ..RewardProfile::needing(MeasurementNeed::EveryStep)
        }
    }
}

#[cfg(test)]
mod tests;
