//! What decisions were paid: parts of `decision`, `episode_finished` and `round_finished` (spec 07 §5.2, 05 §6). Raw
//! rewards throughout; all of it is absent where nothing pays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

/// The reward of one env and step. Costs and penalties are negative; the terms add up to the reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionReward {
    pub reward: Num,
    /// Every term that is not zero.
    pub terms: BTreeMap<String, Num>,
    /// Numbers that explain the terms and are not part of the sum.
    pub context: BTreeMap<String, Num>,
}

/// One term over an episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TermSummary {
    /// Steps in which it was not zero.
    pub n: u32,
    pub sum: Num,
    /// Sum of the magnitudes.
    pub abs: Num,
    pub min: Num,
    pub max: Num,
}

/// The rewards of an episode, penalties included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeRewards {
    pub reward: Num,
    pub return_discounted: Num,
    /// Of the accuracy, near 0 to 1.
    pub stability: Num,
    pub reward_terms: BTreeMap<String, TermSummary>,
}

/// Episode rewards over the envs of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRewards {
    pub reward_mean: Num,
    pub reward_std: Num,
    /// Mean sum per episode; a term that an env never had counts as 0 there.
    pub reward_terms_mean: BTreeMap<String, Num>,
}

#[cfg(test)]
mod tests {
    use crate::telemetry::examples;
    use crate::telemetry::payload::Decision;

    /// Spec 07 C10.
    #[test]
    fn the_terms_of_a_decision_add_up_to_its_reward() {
        let reward = examples::decision_reward();
        let sum: f64 = reward.terms.values().map(|term| term.0).sum();
        assert!((sum - reward.reward.0).abs() <= 1e-9 * (1.0 + reward.reward.0.abs()));
    }

    #[test]
    fn a_decision_that_nobody_pays_says_nothing_of_rewards() {
        let unpaid = Decision {
            paid: None,
            ..examples::decision()
        };

        let text = serde_json::to_string(&unpaid).unwrap();

        assert!(
            !text.contains("reward") && !text.contains("terms") && !text.contains("context"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), unpaid);
    }
}
