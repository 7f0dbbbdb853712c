//! Rewards as telemetry reports them.

use std::collections::BTreeMap;

use super::{EpisodeReward, RewardBreakdown};
use crate::telemetry::{DecisionReward, EpisodeRewards, Num, RoundRewards, statistics};

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

/// What an episode was paid, with the learner's discount.
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
