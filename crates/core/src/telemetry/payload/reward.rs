//! Rewards of decisions: parts of `decision`, `episode_finished` and `round_finished`. Raw rewards throughout; all of
//! them are absent where nothing pays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::{Num, is_default};

/// The reward of one env and step. Costs and penalties are negative; the terms add up to the reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionReward {
    /// Sum of the terms.
    pub reward: Num,
    /// Every term that is not zero.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terms: BTreeMap<String, Num>,
    /// Contribution of the acted slot's seed, points; not a part of the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<Num>,
}

/// One term over an episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TermSummary {
    /// Steps in which it was not zero.
    pub n: u32,
    /// Sum over the episode.
    pub sum: Num,
    /// Sum of the magnitudes.
    pub abs: Num,
    /// Smallest value of a step.
    pub min: Num,
    /// Largest value of a step.
    pub max: Num,
}

/// The rewards of an episode, penalties included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeRewards {
    /// Sum over the episode.
    pub reward: Num,
    /// Discounted sum from the first step on.
    pub return_discounted: Num,
    /// Mean of a step, in points, by one measure for all rewards.
    pub rent: Num,
    /// Summaries by term.
    pub reward_terms: BTreeMap<String, TermSummary>,
}

/// Episode rewards over the envs of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRewards {
    /// Mean over the envs.
    pub reward_mean: Num,
    /// Population standard deviation.
    pub reward_std: Num,
    /// Mean sum per episode; a term that an env never had counts as 0 there.
    pub reward_terms_mean: BTreeMap<String, Num>,
}

#[cfg(test)]
mod tests;
