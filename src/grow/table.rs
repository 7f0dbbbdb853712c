//! Results of the rows of a `grow`: sizes, accuracies with intervals, paired differences on the test part, and the verdict.

use serde::Serialize;

use super::play::{Entry, Way};
use crate::compare::statistics::{Z, wilson};

/// The samples of the test part that a network classifies correctly.
pub struct Tested {
    /// One entry a sample, or for texts a token: `true` if it is right.
    pub new: Vec<bool>,
    /// The same of the old data.
    pub old: Option<Vec<bool>>,
}

/// The row to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Keep {
    /// The one that is better than the others, as far as the intervals can show.
    #[default]
    Best,
    /// The grown one, even if others are better.
    Grown,
}

/// A mean with the bounds of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounded {
    /// The estimate.
    pub mean: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Kind of row.
    pub way: Way,
    /// The name in tables.
    pub name: String,
    /// Trainable values.
    pub parameters: u64,
    /// Multiply-accumulates of a sample.
    pub macs: u64,
    /// Those of its training and validation, in billions.
    pub gmacs: f64,
    /// The same for all networks that were tried.
    pub gmacs_in_all: f64,
    /// The part of the others' compute that it could not use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Steps of its training.
    pub steps: u32,
    /// Wall time of everything that was tried for it.
    pub seconds: f64,
    /// Number of networks that were tried. This is the best of them by validation.
    pub tried: usize,
    /// The learning rate that was best on validation.
    pub rate: f64,
    /// Accuracy on the validation part, percent. It was chosen by this.
    pub validation: f64,
    /// Accuracy on the test part, percent, with Wilson's interval over its samples.
    pub test: Bounded,
    /// Grown minus this, percentage points of the test part, with the interval of the paired difference over its samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grown_ahead: Option<Bounded>,
    /// Percent of the test part of the old data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Bounded>,
    /// Seeds that it has: slot and blueprint.
    pub seeds: Vec<(String, String)>,
}

/// The row that is written, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Kind of the row.
    pub way: Way,
    /// Name of the row.
    pub name: String,
    /// The reason, in a sentence.
    pub why: String,
}

/// The share of `correct`, in percent.
pub fn share(correct: &[bool]) -> Bounded {
    let (hits, trials) = (correct.iter().filter(|&&hit| hit).count(), correct.len());
    let share = hits as f64 / trials.max(1) as f64;
    let interval = wilson(share, trials as u64);
    Bounded {
        mean: 100.0 * share,
        low: 100.0 * interval.low.max(0.0),
        high: 100.0 * interval.high.min(1.0),
    }
}

/// The difference of the shares of `one` and `other` on the same samples, percentage points, with the interval of Agresti
/// and Min (2005), which holds where few samples differ: half a sample is added to each of the four ways to answer.
pub fn paired(one: &[bool], other: &[bool]) -> Bounded {
    let of = |pair: (bool, bool)| {
        one.iter()
            .zip(other)
            .filter(|&(&one, &other)| (one, other) == pair)
            .count() as u64
    };
    let (won, lost, samples) = (of((true, false)), of((false, true)), one.len().max(1) as u64);
    let mean = 100.0 * (won as f64 - lost as f64) / samples as f64;
    let (won, lost, samples) = (won as f64 + 0.5, lost as f64 + 0.5, samples as f64 + 2.0);
    let centre = 100.0 * (won - lost) / samples;
    let half = 100.0 * Z * (won + lost - (won - lost).powi(2) / samples).sqrt() / samples;
    Bounded {
        mean,
        low: centre - half,
        high: centre + half,
    }
}

impl Row {
    /// The best network of a way. It is compared with `grown`.
    pub fn new(entry: &Entry, is_given: bool, tested: &Tested, grown: Option<&Tested>) -> Self {
        let (attempt, effort) = (&entry.attempt, entry.effort);
        let network = &attempt.network;
        Self {
            way: entry.way,
            name: entry.way.name(is_given).into(),
            parameters: network.measures.parameters,
            macs: network.measures.macs,
            gmacs: attempt.macs as f64 / 1e9,
            gmacs_in_all: effort.macs as f64 / 1e9,
            note: entry.note.clone(),
            steps: network.origin.steps,
            seconds: effort.seconds,
            tried: effort.tried,
            rate: attempt.loaded.task.host_opt.lr(),
            validation: attempt.validation(),
            test: share(&tested.new),
            grown_ahead: grown.map(|grown| paired(&grown.new, &tested.new)),
            old: tested.old.as_deref().map(share),
            seeds: network
                .growth
                .iter()
                .map(|seed| (seed.slot.to_string(), seed.blueprint.clone()))
                .collect(),
        }
    }
}

/// The best of the rows whose interval puts them ahead of growth; else growth, if it is ahead of the best of the others by its
/// own; else that one. All that are ahead of growth are named.
pub fn choose(rows: &[Row], keep: Keep) -> Option<Choice> {
    let others = || rows.iter().filter(|row| row.way != Way::Grown);
    let best = best_of(others());
    let grown = rows.iter().find(|row| row.way == Way::Grown);
    let (Some(grown), Some(best)) = (grown, best) else {
        let row = grown.or(best)?;
        let (why, asked) = match (row.way, keep) {
            (Way::Grown, _) => ("there was nothing else to compare with", ""),
            (_, Keep::Grown) => (NOTHING_GREW, ", though --keep grown asks for another"),
            (_, Keep::Best) => (NOTHING_GREW, ""),
        };
        return Some(row.chosen(vec![why.into()], asked));
    };
    let is_ahead = |row: &&Row| row.grown_ahead.is_some_and(|ahead| ahead.high < 0.0);
    let mut reasons: Vec<String> = others()
        .filter(is_ahead)
        .filter_map(|row| {
            let Bounded { mean, low, high } = row.grown_ahead?;
            let by = points(-mean, -high, -low);
            Some(format!("{} is ahead of growth by {by}", row.name))
        })
        .collect();
    let ahead = best_of(others().filter(is_ahead));
    let Bounded { mean, low, high } = best.grown_ahead?;
    let (by, name) = (points(mean, low, high), &best.name);
    let (row, reason) = match ahead {
        Some(row) => (row, None),
        None if low > 0.0 => (
            grown,
            Some(format!("growth is ahead of the best other, {name}, by {by}")),
        ),
        None => (best, Some(format!("growth is not ahead of {name} ({by})"))),
    };
    reasons.extend(reason);
    Some(match keep {
        Keep::Grown => grown.chosen(reasons, ", as --keep grown asks"),
        Keep::Best => row.chosen(reasons, ""),
    })
}

impl Row {
    fn chosen(&self, mut reasons: Vec<String>, asked: &str) -> Choice {
        let written = match self.way {
            Way::Given => "the given network, unchanged".into(),
            _ => format!("the network of the row {}", self.name),
        };
        reasons.push(format!("the result is {written}{asked}"));
        Choice {
            way: self.way,
            name: self.name.clone(),
            why: reasons.join("; "),
        }
    }
}

const NOTHING_GREW: &str = "no seed within the budget was committed in the given steps";

/// Chooses by validation accuracy. The test part has no influence on the choice.
fn best_of<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.max_by(|a, b| {
        let by_validation = a.validation.total_cmp(&b.validation);
        // Among equals the smaller wins, and the given network before networks made from it.
        by_validation
            .then(b.parameters.cmp(&a.parameters))
            .then((b.way as u8).cmp(&(a.way as u8)))
    })
}

fn points(mean: f64, low: f64, high: f64) -> String {
    format!("{mean:+.2} points on the test part, 95 % interval {low:+.2} to {high:+.2}")
}

#[cfg(test)]
mod tests;
