//! The results of controllers that played the same episodes: each alone, and a policy against each baseline, pair by pair.

use serde::Serialize;

use super::statistics::{
    Criteria, DecisionTest, Estimate, Statistic, Verdict, holm, mean_of, policy_estimate, sign_flip, verdict,
};
use super::{DecisionSummary, EpisodeOutcome};

/// The criteria of a difference: as between methods, but with the episode as the unit.
const CRITERIA: Criteria = Criteria {
    test: DecisionTest::PairedSignFlip,
    alpha: 0.05,
    min_effect: 0.5,
};

/// All episodes of one controller, in the order in which every other one of the comparison played them.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Name of the controller.
    pub name: String,
    /// `true` if it is compared with the others, which are its baselines.
    pub is_policy: bool,
    /// One list per seed.
    pub episodes: Vec<Vec<EpisodeOutcome>>,
}

/// Summary of one number per episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Mean over episodes.
    pub mean: Estimate,
    /// Interquartile mean over episodes.
    pub iqm: Estimate,
}

impl Summary {
    /// Sums up `strata`, the values of each seed.
    fn of(strata: &[Vec<f64>], seed: u64) -> Self {
        Self {
            mean: policy_estimate(strata, Statistic::Mean, seed),
            iqm: policy_estimate(strata, Statistic::Iqm, seed),
        }
    }
}

/// Results of one controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControllerSummary {
    /// Name of the controller.
    pub name: String,
    /// Final validation accuracy, percent.
    pub accuracy: Summary,
    /// The same less the mean rent of a step.
    pub accuracy_minus_rent: Summary,
    /// J: final accuracy less what the scenario charges for the size; `None` where that isn't a multiple of the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_minus_price: Option<Summary>,
    /// Mean final accuracy on the test part, percent; `None` where it was not evaluated.
    pub test_accuracy: Option<f64>,
    /// Sum of the episode's rewards.
    pub reward: Summary,
    /// Final size over the host's.
    pub param_ratio: Summary,
    /// Mean multiply-accumulates of an episode in training and validation, in billions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gmacs: Option<f64>,
    /// Commands on its seeds, and their steps; `None` if its episodes do not have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionSummary>,
    /// Outcomes by round and env.
    pub episodes: Vec<EpisodeOutcome>,
}

/// Differences of pairs, and the number of pairs in which each was ahead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Policy minus baseline, episode by episode.
    pub difference: Summary,
    /// Episodes in which the policy was better.
    pub wins: usize,
    /// Episodes that ended in a tie.
    pub ties: usize,
    /// Episodes in which the baseline was better.
    pub losses: usize,
}

impl Paired {
    fn of(strata: &[Vec<f64>], seed: u64) -> Self {
        let count = |is: fn(&f64) -> bool| strata.iter().flatten().filter(|difference| is(difference)).count();
        Self {
            difference: Summary::of(strata, seed),
            wins: count(|&difference| difference > 0.0),
            ties: count(|&difference| difference == 0.0),
            losses: count(|&difference| difference < 0.0),
        }
    }

    fn verdict(&self, adjusted_p: f64) -> Verdict {
        let episodes = self.wins + self.ties + self.losses;
        verdict([episodes; 2], adjusted_p, self.difference.mean, &CRITERIA)
    }
}

/// A policy less a baseline, episode by episode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Name of the policy.
    pub policy: String,
    /// Name of the baseline.
    pub baseline: String,
    /// Final accuracy, percentage points.
    pub accuracy: Paired,
    /// p of the sign-flip test over the episodes' accuracies, corrected for all baselines of the policy (Holm).
    pub adjusted_p: f64,
    /// Verdict on this one training by accuracy; the first is the policy.
    pub verdict: Verdict,
    /// Final accuracy less the rent of the parameters, percentage points.
    pub accuracy_minus_rent: Paired,
    /// J, percentage points; `None` as above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_minus_price: Option<Paired>,
}

/// The whole comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// All players, the policy first.
    pub players: Vec<ControllerSummary>,
    /// The policy against each baseline.
    pub differences: Vec<Difference>,
    /// Episodes that are left out for all players, because the governor rolled a player's network back before it was measured.
    pub unmeasured: usize,
}

impl Comparison {
    /// Sums up the played episodes. Intervals are drawn from `seed`. `price` is the scenario's charge for as many parameters as
    /// the host has, percentage points.
    pub fn new(mut played: Vec<Played>, seed: u64, price: Option<f64>) -> Self {
        let unmeasured = keep_measured(&mut played);
        let (policies, baselines): (Vec<_>, Vec<_>) = played.iter().partition(|player| player.is_policy);
        Self {
            differences: policies
                .iter()
                .flat_map(|policy| against_all(policy, &baselines, seed, price))
                .collect(),
            players: played.iter().map(|player| summarize(player, seed, price)).collect(),
            unmeasured,
        }
    }
}

/// A policy less each of its baselines.
fn against_all(policy: &Played, baselines: &[&Played], seed: u64, price: Option<f64>) -> Vec<Difference> {
    let accuracies = baselines
        .iter()
        .map(|baseline| differences(policy, baseline, &|outcome| outcome.accuracy));
    let accuracies: Vec<Vec<Vec<f64>>> = accuracies.collect();
    let p_values: Vec<f64> = accuracies
        .iter()
        .map(|differences| sign_flip(&differences.concat(), seed).unwrap_or(1.0))
        .collect();
    let compared = baselines.iter().zip(&accuracies).zip(holm(&p_values));
    compared
        .map(|((baseline, accuracies), adjusted_p)| {
            let accuracy = Paired::of(accuracies, seed);
            let paired = |of: &Measure| Paired::of(&differences(policy, baseline, of), seed);
            Difference {
                policy: policy.name.clone(),
                baseline: baseline.name.clone(),
                accuracy,
                adjusted_p,
                verdict: accuracy.verdict(adjusted_p),
                accuracy_minus_rent: paired(&EpisodeOutcome::accuracy_minus_rent),
                accuracy_minus_price: price.map(|price| paired(&|outcome| outcome.accuracy_minus_price(price))),
            }
        })
        .collect()
}

/// Removes the episodes without an accuracy in any controller's record, and returns how many there were.
fn keep_measured(played: &mut [Played]) -> usize {
    let seeds = played.first().map_or(0, |player| player.episodes.len());
    let mut removed = 0;
    for seed in 0..seeds {
        let episodes = played[0].episodes[seed].len();
        let is_measured: Vec<bool> = (0..episodes)
            .map(|episode| {
                let mut outcomes = played.iter().map(|player| &player.episodes[seed][episode]);
                outcomes.all(|outcome| outcome.accuracy.is_some())
            })
            .collect();
        removed += is_measured.iter().filter(|is_measured| !**is_measured).count();
        for player in &mut *played {
            let mut is_measured = is_measured.iter();
            player.episodes[seed].retain(|_| is_measured.next().is_some_and(|&keep| keep));
        }
    }
    removed
}

fn summarize(player: &Played, seed: u64, price: Option<f64>) -> ControllerSummary {
    let summary = |of: &Measure| {
        let value = |outcome: &EpisodeOutcome| of(outcome).unwrap_or(f64::NAN);
        let of_seed = |episodes: &Vec<EpisodeOutcome>| episodes.iter().map(value).collect();
        let strata: Vec<Vec<f64>> = player.episodes.iter().map(of_seed).collect();
        Summary::of(&strata, seed)
    };
    let episodes = player.episodes.concat();
    // The mean of all episodes, or none.
    let mean_of_all = |of: &Measure| -> Option<f64> { mean_of(episodes.iter().map(of).collect::<Option<Vec<_>>>()?) };
    ControllerSummary {
        name: player.name.clone(),
        accuracy: summary(&|outcome| outcome.accuracy),
        accuracy_minus_rent: summary(&EpisodeOutcome::accuracy_minus_rent),
        accuracy_minus_price: price.map(|price| summary(&|outcome| outcome.accuracy_minus_price(price))),
        test_accuracy: mean_of_all(&|outcome| outcome.test_accuracy),
        reward: summary(&|outcome| Some(outcome.reward)),
        param_ratio: summary(&|outcome| Some(outcome.param_ratio)),
        gmacs: mean_of_all(&EpisodeOutcome::gmacs),
        decisions: DecisionSummary::of(&episodes),
        episodes,
    }
}

/// The measure of an episode that is summed up; NaN for an episode that is not measured.
type Measure<'m> = dyn Fn(&EpisodeOutcome) -> Option<f64> + 'm;

fn differences(policy: &Played, baseline: &Played, of: &Measure) -> Vec<Vec<f64>> {
    let difference =
        |(our, their): (&EpisodeOutcome, &EpisodeOutcome)| of(our).unwrap_or(f64::NAN) - of(their).unwrap_or(f64::NAN);
    let of_seed = |(ours, theirs): (&Vec<_>, &Vec<_>)| ours.iter().zip(theirs).map(difference).collect();
    policy.episodes.iter().zip(&baseline.episodes).map(of_seed).collect()
}

#[cfg(test)]
mod tests;
