//! What came of the controls: a row each, compared with the policy.

use serde::Serialize;

use super::Control;
use super::search::Spent;
use super::study::PlayedRow;
use crate::compare::statistics::{Criteria, DecisionTest, Evidence, Verdict, holm, sign_flip, verdict};
use crate::compare::{Comparison, ControllerSummary, Estimate, Paired, Played, Summary};

/// By what a difference counts: as `compare` has it, but with the episode as the unit.
const CRITERIA: Criteria = Criteria {
    test: DecisionTest::PairedSignFlip,
    alpha: 0.05,
    min_effect: 0.5,
};

/// One contestant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControlRow {
    /// As tables call it.
    pub name: String,
    /// `None` for the policy itself.
    pub control: Option<Control>,
    /// Of an episode; it may end sooner.
    pub steps: u32,
    /// Schedules that were tried.
    pub schedules: Option<u32>,
    /// Final validation accuracy, percent.
    pub accuracy: Summary,
    /// J: mean accuracy less what the scenario charges for the size; `None` where that is no multiple of the size.
    pub accuracy_minus_price: Option<f64>,
    /// Mean accuracy on the test part of the network with its committed seeds alone, percent.
    pub test_accuracy: Option<f64>,
    /// Mean final size over the scenario's host.
    pub param_ratio: f64,
    /// Mean multiply-accumulates of an episode, in billions.
    pub gmacs: Option<f64>,
    /// Mean wall time of an episode; those of a seed were played side by side.
    pub seconds: f64,
    /// What it took to come by the policy or the schedule.
    pub found_by: Option<Spent>,
    /// The policy less this one; `None` for the policy.
    pub against: Option<Against>,
}

/// The policy less a control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Final accuracy, percentage points, episode by episode.
    pub accuracy: Paired,
    /// Of the sign-flip test over episodes, corrected for all rows of the report (Holm).
    pub adjusted_p: f64,
    /// What may be said of this training; the first is the policy.
    pub verdict: Option<Verdict>,
}

/// The policy and its controls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControlReport {
    /// The policy first.
    pub rows: Vec<ControlRow>,
    /// Episodes that are left out for everybody, because somebody's network was rolled back before it was measured.
    pub unmeasured: usize,
}

impl ControlReport {
    /// Compares what was played. `seed` is what intervals and signs are drawn from, `price` what the scenario charges for as many
    /// parameters as the host has, percentage points.
    pub fn new(rows: Vec<PlayedRow>, seed: u64, price: Option<f64>) -> Self {
        let played = rows.iter().map(|row| Played {
            name: row.name.clone(),
            is_policy: row.is_reference,
            episodes: row.played.iter().map(|played| played.outcomes.clone()).collect(),
        });
        let comparison = Comparison::new(played.collect(), seed, None);
        let reference = rows.iter().position(|row| row.is_reference);
        let reference = reference.map(|index| &comparison.players[index]);
        let p_values: Vec<f64> = rows
            .iter()
            .zip(&comparison.players)
            .filter(|(row, _)| !row.is_reference)
            .map(|(_, player)| reference.map_or(1.0, |reference| p_value(reference, player, seed)))
            .collect();
        // In the order of the rows: the policy is compared with each of the others.
        let mut against = comparison
            .differences
            .iter()
            .zip(holm(&p_values))
            .map(|(difference, adjusted_p)| Against::new(difference.accuracy, adjusted_p));
        let rows = rows.into_iter().zip(&comparison.players).map(|(row, player)| {
            let against = if row.is_reference { None } else { against.next() };
            ControlRow::new(row, player, against, price)
        });
        Self {
            rows: rows.collect(),
            unmeasured: comparison.unmeasured,
        }
    }
}

impl ControlRow {
    fn new(row: PlayedRow, player: &ControllerSummary, against: Option<Against>, price: Option<f64>) -> Self {
        let episodes: usize = row.played.iter().map(|played| played.outcomes.len()).sum();
        let seconds: f64 = row.played.iter().map(|played| played.seconds).sum();
        let param_ratio = player.param_ratio.mean.value * row.host_ratio;
        Self {
            name: row.name,
            control: row.control,
            steps: row.steps,
            schedules: row.schedules,
            accuracy: player.accuracy,
            test_accuracy: player.test_accuracy,
            accuracy_minus_price: price.map(|price| player.accuracy.mean.value - price * (param_ratio - 1.0)),
            param_ratio,
            gmacs: player.gmacs,
            seconds: seconds / episodes.max(1) as f64,
            found_by: row.found_by,
            against,
        }
    }
}

impl Against {
    fn new(accuracy: Paired, adjusted_p: f64) -> Self {
        let episodes = accuracy.wins + accuracy.ties + accuracy.losses;
        let Estimate { value, interval } = accuracy.difference.mean;
        let evidence = Evidence {
            trainings: [episodes; 2],
            interim: false,
            adjusted_p,
            difference: value,
            interval,
        };
        Self {
            accuracy,
            adjusted_p,
            verdict: verdict(&evidence, &CRITERIA),
        }
    }
}

/// Of the differences between pairs of episodes; 1 without any.
fn p_value(reference: &ControllerSummary, other: &ControllerSummary, seed: u64) -> f64 {
    let pairs = reference.episodes.iter().zip(&other.episodes);
    let differences: Option<Vec<f64>> = pairs
        .map(|(our, their)| Some(our.accuracy? - their.accuracy?))
        .collect();
    let test = differences.and_then(|differences| sign_flip(&differences, seed));
    test.map_or(1.0, |test| test.p)
}

#[cfg(test)]
mod tests;
