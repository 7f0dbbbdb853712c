//! What the rows of a `grow` came to: sizes, accuracies with intervals, paired differences on the test part, and the verdict.

use serde::Serialize;

use super::play::Attempt;
use crate::compare::statistics::{Z, wilson};
use crate::telemetry::statistics::paired_standard_error;

/// Which samples of the test part a network gets right.
pub struct Tested {
    /// By sample, of texts by token.
    pub new: Vec<bool>,
    /// The same of the old data.
    pub old: Option<Vec<bool>>,
}

/// A way to spend the compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The given network as it is.
    Given,
    /// The same host trained without growth: fine-tuned, where its weights were given.
    Trained,
    /// Its head alone.
    Head,
    /// A wider host of the grown network's size from fresh weights.
    Widened,
    /// The grown network's architecture from fresh weights.
    FromScratch,
    /// Growth.
    Grown,
}

impl Way {
    /// As tables call it.
    pub const fn name(self, is_given: bool) -> &'static str {
        match self {
            Self::Given => "as given",
            Self::Trained if is_given => "fine-tuned",
            Self::Trained => "trained",
            Self::Head => "head alone",
            Self::Widened => "widened",
            Self::FromScratch => "from scratch",
            Self::Grown => "grown",
        }
    }
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
    /// What it is.
    pub way: Way,
    /// As tables call it.
    pub name: String,
    /// Trainable values.
    pub parameters: u64,
    /// Multiply-accumulates of a sample.
    pub macs: u64,
    /// Those of its training and validation, in billions.
    pub gmacs: f64,
    /// Steps of its training.
    pub steps: u32,
    /// Wall time of everything that was tried for it.
    pub seconds: f64,
    /// How many times it was tried.
    pub tried: usize,
    /// The learning rate that was best on validation.
    pub rate: f64,
    /// Percent of the validation part, by which it was chosen.
    pub validation: f64,
    /// Percent of the test part, with Wilson's interval over its samples.
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

/// Which row is written, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Of the row.
    pub way: Way,
    /// Of the row.
    pub name: String,
    /// In a sentence.
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

/// How much larger the share of `one` is than that of `other`, percentage points, of the same samples.
pub fn paired(one: &[bool], other: &[bool]) -> Bounded {
    let of = |pair: (bool, bool)| {
        one.iter()
            .zip(other)
            .filter(|&(&one, &other)| (one, other) == pair)
            .count() as u64
    };
    let (won, lost, samples) = (of((true, false)), of((false, true)), one.len().max(1) as u64);
    let mean = 100.0 * (won as f64 - lost as f64) / samples as f64;
    let half = Z * paired_standard_error(won, lost, samples);
    Bounded {
        mean,
        low: mean - half,
        high: mean + half,
    }
}

impl Row {
    /// The best attempt of a way; `grown` is what it is compared with.
    pub fn new(way: Way, is_given: bool, attempt: &Attempt, tested: &Tested, grown: Option<&Tested>) -> Self {
        let network = &attempt.network;
        Self {
            way,
            name: way.name(is_given).into(),
            parameters: network.measures.parameters,
            macs: network.measures.macs,
            gmacs: attempt.macs as f64 / 1e9,
            steps: attempt.steps,
            seconds: attempt.seconds,
            tried: attempt.tried,
            rate: attempt.rate,
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

/// Growth, if it is ahead of the best of the others by its interval; else that one. Where the given network is to stay as it
/// is, it is the only other that may be written; where it has no head, the one that has trained just that.
pub fn choose(rows: &[Row], is_frozen: bool) -> Option<Choice> {
    let is_other = |row: &&Row| row.way != Way::Grown && (!is_frozen || keeps(row.way, rows));
    let others = rows.iter().filter(is_other);
    // By validation: the test part chooses nothing.
    let best = others.max_by(|a, b| {
        a.validation
            .total_cmp(&b.validation)
            .then(b.parameters.cmp(&a.parameters))
    });
    let grown = rows.iter().find(|row| row.way == Way::Grown);
    let choice = |row: &Row, why| Choice {
        way: row.way,
        name: row.name.clone(),
        why,
    };
    let (Some(grown), Some(best)) = (grown, best) else {
        let only = grown.or(best)?;
        let why = match only.way {
            Way::Grown => "there was nothing else to compare with".into(),
            _ => format!(
                "no seed within the budget was committed in the steps that there were: what is written is the network {}",
                only.name
            ),
        };
        return Some(choice(only, why));
    };
    let ahead = best.grown_ahead?;
    let by = format!(
        "{:+.2} points on the test part, 95 % interval {:+.2} to {:+.2}",
        ahead.mean, ahead.low, ahead.high
    );
    Some(if ahead.low > 0.0 {
        let name = &best.name;
        let rest = beside_changed(rows, is_frozen);
        let why = format!("growth is ahead of the best other that may be written, {name}, by {by}{rest}");
        choice(grown, why)
    } else if best.way == Way::Given {
        choice(
            best,
            format!("growth is not ahead ({by}): the given network is written unchanged"),
        )
    } else {
        let name = &best.name;
        choice(
            best,
            format!("growth is not ahead of {name} ({by}): what is written is the network {name}"),
        )
    })
}

/// Whether all that was given stays in a row.
fn keeps(way: Way, rows: &[Row]) -> bool {
    way == Way::Given || (way == Way::Head && rows.iter().all(|row| row.way != Way::Given))
}

/// Where the given network is to stay: how growth does beside the best row that changes it, which the choice leaves out.
fn beside_changed(rows: &[Row], is_frozen: bool) -> String {
    let changed = rows
        .iter()
        .filter(|row| is_frozen && row.way != Way::Grown && !keeps(row.way, rows));
    let best = changed.max_by(|a, b| a.validation.total_cmp(&b.validation));
    let beside = best.and_then(|row| Some((&row.name, row.grown_ahead?.mean)));
    beside.map_or_else(String::new, |(name, points)| {
        format!("; it is {points:+.2} points from {name}, which does not keep the given network")
    })
}

#[cfg(test)]
mod tests;
