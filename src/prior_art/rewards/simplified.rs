//! The mode for diagnosis: potentials, a flat cost of acting; accuracy and contributing commits at the end.

use super::attribution::{CONTRIBUTING, POTENTIAL_WEIGHT, commit_credit};
use super::memory::remembering;
use crate::prelude::*;

/// Cost of every operation but WAIT.
const ACTION_COST: f64 = 0.01;
/// Reward of 100 % final accuracy.
const ACCURACY_WEIGHT: f64 = 3.0;
/// Reward at the end per contributing commit.
const COMMIT_BONUS: f64 = 2.0;

/// Potentials, a flat cost of acting and the final accuracy with committed seeds alone: for diagnosis, it charges no rent.
#[derive(Clone, Copy, Debug)]
pub struct SimplifiedReward;

impl RewardMode for SimplifiedReward {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        remembering(step, state, |memory| {
            if step.op != LifecycleOp::Wait {
                out.pay(Term::Intervention, -ACTION_COST);
            }
            if step.op == LifecycleOp::Commit
                && let Some(seed) = step.acted()
            {
                let credit = commit_credit(step, seed);
                memory.contributing += u32::from(credit.is_some_and(|points| points >= CONTRIBUTING));
            }
            if step.is_final {
                let accuracy = step.committed_accuracy()?;
                out.pay(Term::TerminalAccuracy, ACCURACY_WEIGHT * accuracy / 100.0);
                // Seeds that are worth something only because others do harm have made nothing better.
                if memory.first_accuracy.is_some_and(|first| accuracy >= first) {
                    let commits = f64::from(memory.contributing);
                    out.pay(Term::TerminalCommit, COMMIT_BONUS * commits);
                }
            }
            Ok(())
        })
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile::needing(MeasurementNeed::AtCommit)
    }

    fn potential_weight(&self) -> Option<f64> {
        Some(POTENTIAL_WEIGHT)
    }
}

#[cfg(test)]
mod tests;
