//! Verdicts on two arms, also where several are compared. No winner is ever read off point estimates.

use serde::Serialize;

use super::bootstrap::Estimate;
use super::sample::Interval;

/// The test that decides, declared before any result is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DecisionTest {
    /// Do trainings of one arm tend to higher values than those of the other?
    MannWhitney,
    /// Do paired trainings differ? It needs trainings of equal seeds.
    #[value(name = "sign-flip")]
    PairedSignFlip,
}

impl DecisionTest {
    /// Trainings of each arm, or pairs, without which nothing is said. The smallest two-sided p is 0.029 for 4 against 4
    /// and 0.008 for 5 against 5, so that some room for a correction is left; it is 0.0625 for 5 pairs and 0.031 for 6.
    pub const fn fewest_trainings(self) -> usize {
        match self {
            Self::MannWhitney => 5,
            Self::PairedSignFlip => 6,
        }
    }
}

/// Decision rule declared before the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Criteria {
    /// The test that decides.
    pub test: DecisionTest,
    /// Probability of any false claim in the family of comparisons, in (0, 1).
    pub alpha: f64,
    /// Smallest difference of interquartile means that matters, in the metric's unit; not negative.
    pub min_effect: f64,
}

impl Criteria {
    /// The usual probability of a false claim.
    pub const ALPHA: f64 = 0.05;
}

/// One of two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The arm from which the other was subtracted.
    First,
    /// The arm that was subtracted.
    Second,
}

/// Conclusion on two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Too few trainings for any verdict.
    InsufficientData,
    /// This arm: the adjusted p is below α, the interval excludes 0, and the difference is one that matters.
    Better(Arm),
    /// The interval has only differences that do not matter.
    Equivalent,
    /// Neither: more trainings might decide.
    Inconclusive,
}

/// Verdict on an experiment that is over: looking until something is significant inflates false positives. `trainings` of each
/// arm ended with a score; pairs count in both. `adjusted_p` is the deciding test's, corrected for all comparisons of the
/// family: see [`holm`]. `difference` is the interquartile mean of the first arm less that of the second.
pub fn verdict(trainings: [usize; 2], adjusted_p: f64, difference: Estimate, criteria: &Criteria) -> Verdict {
    let fewest = criteria.test.fewest_trainings();
    let Estimate { value, interval } = difference;
    let Some(Interval { low, high }) = interval.filter(|_| trainings.iter().all(|&count| count >= fewest)) else {
        return Verdict::InsufficientData;
    };
    let is_significant = adjusted_p < criteria.alpha;
    if is_significant && low > 0.0 && value >= criteria.min_effect {
        Verdict::Better(Arm::First)
    } else if is_significant && high < 0.0 && -value >= criteria.min_effect {
        Verdict::Better(Arm::Second)
    } else if -criteria.min_effect <= low && high <= criteria.min_effect {
        Verdict::Equivalent
    } else {
        Verdict::Inconclusive
    }
}

/// Holm's step-down correction (1979): the `k`-th smallest of `m` p-values becomes `max over j ≤ k of
/// min(1, (m − j + 1)·p_j)`. In the order of the input. Tests whose adjusted value is below α are claimed together with
/// a probability of at most α that any of them claims what is not so.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let mut highest = 0.0_f64;
    for (rank, &test) in order.iter().enumerate() {
        highest = highest.max(((p_values.len() - rank) as f64 * p_values[test]).min(1.0));
        adjusted[test] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests;
