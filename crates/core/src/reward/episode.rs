//! The rewards of an episode so far, their sums, and the form in which telemetry reports them.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{PARTS, RewardInputs};
use crate::telemetry::{DecisionReward, EpisodeRewards, Num, RoundRewards, TermSummary, statistics};

/// Points per step for each e-fold by which the network grows, and the most of them.
const RENT: f64 = 0.5;
const MOST_RENT: f64 = 1.5;
/// Growth is relative to the parameters of the host, or to these if it has fewer.
const LEAST_HOST_PARAMS: u64 = 200;
/// Parameters counted for an occupied slot, as a share of the host's.
const SLOT_SHARE: f64 = 0.0039;
/// Points per step of each seed beyond the first, and of each committed one.
const SEED: f64 = 0.01;
const COMMITTED_SEED: f64 = 0.002;

/// The rent of parameters and seeds in a step, at least 0, in points.
fn standard_rent(inputs: &RewardInputs) -> f64 {
    let effective = inputs.effective_params(SLOT_SHARE);
    let growth = effective / inputs.host_params.max(LEAST_HOST_PARAMS) as f64;
    let committed = inputs.committed().count();
    let seeds = committed + inputs.after().filter(|seed| seed.is_growing()).count();
    let occupancy = SEED * seeds.saturating_sub(1) as f64;
    (RENT * growth.ln_1p()).min(MOST_RENT) + occupancy + COMMITTED_SEED * committed as f64
}

/// A rewarded step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardedStep {
    /// 1-based.
    pub step: u32,
    /// The rent of parameters and slots by the yardstick of all rewards, points.
    pub rent: f64,
    /// The terms of the reward.
    pub breakdown: RewardBreakdown,
    /// The measurements that any reward is made of: [`PARTS`].
    pub parts: [f64; PARTS.len()],
}

impl RewardedStep {
    /// The step of `inputs`, with its reward.
    pub(super) fn of(inputs: &RewardInputs, breakdown: RewardBreakdown) -> Self {
        Self {
            step: inputs.step,
            rent: standard_rent(inputs),
            breakdown,
            parts: inputs.parts(),
        }
    }
}

/// An env's raw rewards since the start of its episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpisodeReward {
    /// The steps in order.
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

    /// Mean of a step's rent, at least 0, in points.
    pub fn mean_rent(&self) -> f64 {
        let steps = self.steps.len().max(1) as f64;
        // Nothing is 0, not -0.
        self.steps.iter().map(|step| step.rent).sum::<f64>() / steps + 0.0
    }

    /// Sums of the terms that occurred, in the order of the sum.
    pub fn terms(&self) -> BTreeMap<Term, TermSummary> {
        let mut totals = BTreeMap::new();
        for (term, amount) in self.steps.iter().flat_map(|step| step.breakdown.iter()) {
            let total = totals.entry(term).or_insert(TermSummary {
                n: 0,
                sum: Num(0.0),
                abs: Num(0.0),
                min: Num(amount),
                max: Num(amount),
            });
            total.n += 1;
            total.sum.0 += amount;
            total.abs.0 += amount.abs();
            total.min.0 = total.min.0.min(amount);
            total.max.0 = total.max.0.max(amount);
        }
        totals
    }

    /// Edits the record after a rollback as the rollout buffer is edited: the last step gets `penalty`
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

impl From<&RewardBreakdown> for DecisionReward {
    fn from(breakdown: &RewardBreakdown) -> Self {
        Self {
            reward: Num::short(breakdown.total()),
            terms: breakdown
                .iter()
                .map(|(term, amount)| (term.name().into(), Num::short(amount)))
                .collect(),
            contribution: breakdown.contribution.map(Num::short),
        }
    }
}

/// The rewards of an episode, with the learner's discount.
pub fn episode_rewards(episode: &EpisodeReward, gamma: f64) -> EpisodeRewards {
    EpisodeRewards {
        reward: Num(episode.total()),
        return_discounted: Num(episode.discounted(gamma)),
        rent: Num(episode.mean_rent()),
        reward_terms: episode
            .terms()
            .into_iter()
            .map(|(term, total)| (term.name().into(), total))
            .collect(),
    }
}

/// Means over the episodes of a round, in the order given; `None` without any.
pub fn round_rewards(episodes: &[&EpisodeReward]) -> Option<RoundRewards> {
    let totals: Vec<f64> = episodes.iter().map(|episode| episode.total()).collect();
    let (mean, std) = statistics::mean_and_std(&totals)?;
    let mut terms: BTreeMap<String, Num> = BTreeMap::new();
    for (term, total) in episodes.iter().flat_map(|episode| episode.terms()) {
        terms.entry(term.name().into()).or_default().0 += total.sum.0 / episodes.len() as f64;
    }
    Some(RoundRewards {
        reward_mean: Num(mean),
        reward_std: Num(std),
        reward_terms_mean: terms,
    })
}

#[cfg(test)]
mod tests;
