//! Rewards as telemetry tells them.

use std::collections::BTreeMap;

use super::{EpisodeReward, RewardBreakdown};
use crate::telemetry::{DecisionReward, EpisodeRewards, Num, RoundRewards, TermSummary, statistics};

impl From<&RewardBreakdown> for DecisionReward {
    fn from(breakdown: &RewardBreakdown) -> Self {
        Self {
            reward: Num(breakdown.total()),
            terms: breakdown
                .iter()
                .map(|(term, amount)| (term.name().into(), Num(amount)))
                .collect(),
            context: breakdown
                .context
                .iter()
                .map(|(name, value)| (name.into(), Num(value)))
                .collect(),
        }
    }
}

/// What an episode was paid, with the learner's discount.
pub fn episode_rewards(episode: &EpisodeReward, gamma: f64) -> EpisodeRewards {
    let summary = |total: super::TermTotal| TermSummary {
        n: total.steps,
        sum: Num(total.sum),
        abs: Num(total.magnitude),
        min: Num(total.min),
        max: Num(total.max),
    };
    EpisodeRewards {
        reward: Num(episode.total()),
        return_discounted: Num(episode.discounted(gamma)),
        stability: Num(episode.stability()),
        reward_terms: episode
            .terms()
            .into_iter()
            .map(|(term, total)| (term.name().into(), summary(total)))
            .collect(),
    }
}

/// Means over the episodes of a round, in the order given; `None` without any.
pub fn round_rewards(episodes: &[&EpisodeReward]) -> Option<RoundRewards> {
    let totals: Vec<f64> = episodes.iter().map(|episode| episode.total()).collect();
    let (mean, std) = statistics::mean_and_std(&totals)?;
    let mut terms: BTreeMap<String, Num> = BTreeMap::new();
    for (term, total) in episodes.iter().flat_map(|episode| episode.terms()) {
        terms.entry(term.name().into()).or_default().0 += total.sum / episodes.len() as f64;
    }
    Some(RoundRewards {
        reward_mean: Num(mean),
        reward_std: Num(std),
        reward_terms_mean: terms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reward::{RewardedStep, Term};

    fn episode(amounts: &[(Term, f64)]) -> EpisodeReward {
        let mut breakdown = RewardBreakdown::default();
        for &(term, amount) in amounts {
            breakdown.pay(term, amount);
        }
        EpisodeReward {
            steps: vec![RewardedStep {
                step: 1,
                accuracy: 50.0,
                breakdown,
            }],
        }
    }

    #[test]
    fn a_round_tells_the_mean_sum_of_each_term() {
        let one = episode(&[(Term::Attribution, 3.0), (Term::ComputeRent, -1.0)]);
        let two = episode(&[(Term::Attribution, 1.0)]);

        let round = round_rewards(&[&one, &two]).unwrap();

        assert_eq!((round.reward_mean, round.reward_std), (Num(1.5), Num(0.5)));
        assert_eq!(
            round.reward_terms_mean,
            BTreeMap::from([("attribution".into(), Num(2.0)), ("compute_rent".into(), Num(-0.5))])
        );
        assert_eq!(round_rewards(&[]), None);
    }
}
