//! The rewards of an episode so far, and what they amount to (spec 05 §6, 07 §5.2).

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use super::breakdown::{RewardBreakdown, Term};

/// Changes of accuracy that stability looks back over.
const STABILITY_WINDOW: usize = 20;

/// The terms that charge for what stands on the host (spec 05 §3.6).
const RENT: [Term; 4] = [
    Term::ComputeRent,
    Term::LinearRent,
    Term::OccupancyRent,
    Term::FossilRent,
];

/// A rewarded step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardedStep {
    /// 1-based.
    pub step: u32,
    /// Percent.
    pub accuracy: f64,
    pub breakdown: RewardBreakdown,
}

/// What one term came to over an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TermTotal {
    /// Steps in which it was not zero.
    pub steps: u32,
    pub sum: f64,
    /// Sum of the magnitudes.
    pub magnitude: f64,
    pub min: f64,
    pub max: f64,
}

/// An env's raw rewards since the start of its episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeReward {
    pub steps: Vec<RewardedStep>,
}

impl EpisodeReward {
    /// Sum of the raw rewards.
    pub fn total(&self) -> f64 {
        self.steps.iter().map(|step| step.breakdown.total()).sum()
    }

    /// The same with step t weighed by `gamma^t`, t from 0.
    pub fn discounted(&self, gamma: f64) -> f64 {
        let backwards = self.steps.iter().rev();
        backwards.fold(0.0, |later, step| step.breakdown.total() + gamma * later)
    }

    /// Mean of a step's rent, at least 0: what parameters and slots cost, as the reward charges them.
    pub fn mean_rent(&self) -> f64 {
        let steps = self.steps.len().max(1) as f64;
        let paid = self
            .steps
            .iter()
            .flat_map(|step| RENT.map(|term| step.breakdown.get(term)));
        // Nothing paid is 0, not -0.
        0.0 - paid.sum::<f64>() / steps
    }

    /// The terms that occurred, in the order of the sum.
    pub fn terms(&self) -> BTreeMap<Term, TermTotal> {
        let mut totals = BTreeMap::new();
        for (term, amount) in self.steps.iter().flat_map(|step| step.breakdown.iter()) {
            let total = totals.entry(term).or_insert(TermTotal {
                steps: 0,
                sum: 0.0,
                magnitude: 0.0,
                min: amount,
                max: amount,
            });
            total.steps += 1;
            total.sum += amount;
            total.magnitude += amount.abs();
            total.min = total.min.min(amount);
            total.max = total.max.max(amount);
        }
        totals
    }

    /// How steady the accuracy was lately, from near 0 to 1.
    pub fn stability(&self) -> f64 {
        let accuracies: Vec<f64> = self.steps.iter().map(|step| step.accuracy).collect();
        stability(&accuracies)
    }

    /// Edits the record after a rollback as the rollout buffer is edited (spec 02 §8.7): the last step gets `penalty`
    /// alone, the `forfeited` steps before it pay nothing.
    pub fn charge_rollback(&mut self, forfeited: usize, penalty: f64) {
        let Some((last, earlier)) = self.steps.split_last_mut() else {
            return;
        };
        for step in earlier.iter_mut().rev().take(forfeited) {
            step.breakdown = RewardBreakdown::default();
        }
        last.breakdown = RewardBreakdown::default();
        last.breakdown.pay(Term::Governor, penalty);
    }
}

/// `1 / (1 + sd)` of the last 20 changes from step to step; 1 with fewer than two of them.
pub fn stability(accuracies: &[f64]) -> f64 {
    let changes: Vec<f64> = accuracies.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let recent = &changes[changes.len().saturating_sub(STABILITY_WINDOW)..];
    if recent.len() < 2 {
        return 1.0;
    }
    let count = recent.len() as f64;
    let mean = recent.iter().sum::<f64>() / count;
    let variance = recent.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / count;
    1.0 / (1.0 + variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(rewards: &[f64]) -> EpisodeReward {
        let steps = rewards.iter().zip(1..).map(|(&reward, step)| {
            let mut breakdown = RewardBreakdown::default();
            breakdown.pay(Term::Attribution, reward);
            RewardedStep {
                step,
                accuracy: 50.0,
                breakdown,
            }
        });
        EpisodeReward { steps: steps.collect() }
    }

    /// Spec 05 C18.
    #[test]
    fn stability_falls_with_the_spread_of_the_changes() {
        assert!((stability(&[50.0, 52.0, 51.0, 54.0]) - 0.3704152083).abs() < 1e-9);
        assert_eq!(stability(&[50.0]), 1.0);
        assert_eq!(stability(&[]), 1.0);
    }

    #[test]
    fn an_episode_sums_its_steps_and_terms() {
        let episode = episode(&[1.0, -2.0, 0.0, 4.0]);

        assert_eq!(episode.total(), 3.0);
        assert_eq!(episode.discounted(0.5), 1.0 - 1.0 + 0.5);
        assert_eq!(
            episode.terms()[&Term::Attribution],
            TermTotal {
                steps: 3,
                sum: 3.0,
                magnitude: 7.0,
                min: -2.0,
                max: 4.0
            }
        );
    }

    #[test]
    fn rent_is_what_stands_on_the_host_costs_per_step() {
        let mut episode = episode(&[5.0, 5.0]);
        episode.steps[0].breakdown.pay(Term::ComputeRent, -0.5);
        episode.steps[1].breakdown.pay(Term::FossilRent, -0.25);
        episode.steps[1].breakdown.pay(Term::Intervention, -9.0);

        assert_eq!(episode.mean_rent(), 0.375);
        assert_eq!(EpisodeReward::default().mean_rent(), 0.0);
    }

    #[test]
    fn a_rollback_is_charged_to_the_last_step_of_its_segment() {
        let mut episode = episode(&[1.0, 2.0, 3.0]);
        EpisodeReward::default().charge_rollback(1, -10.0);
        episode.charge_rollback(1, -10.0);

        let rewards: Vec<f64> = episode.steps.iter().map(|step| step.breakdown.total()).collect();
        assert_eq!(rewards, [1.0, 0.0, -10.0]);
        assert_eq!(episode.steps[2].breakdown.get(Term::Governor), -10.0);
    }
}
