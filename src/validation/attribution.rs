//! What each seed contributes, read from the measured configurations.
//!
//! In: the sums of one validation pass. Out: the rows of a [`CounterfactualMatrix`], measured values only, and the
//! [`Attribution`] that follows from them. Everything is looked up by mask; what was not measured is `None`, never
//! guessed.

use smallvec::SmallVec;

use super::plan::pairs;
use super::shapley::{exact_shapley, sampled_shapley};
use crate::data::ConfigNumbers;
use crate::telemetry::{BigInteger, CoalitionRow, CounterfactualMatrix, Num, Shapley, ShapleyMethod};

/// A validation pass whose numbers cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum AttributionError {
    /// There is nothing to divide by.
    #[error("the validation pass saw no samples")]
    NoSamples,
    /// Sums and plan do not fit.
    #[error("the validation pass measured {measured} configurations, {planned} were planned")]
    WrongCount { planned: usize, measured: usize },
}

/// Turns one pass' sums, in the order of the plan's masks, into means over `samples`.
///
/// # Errors
/// No samples at all, or another number of sums than planned.
pub fn coalition_rows(
    masks: &[u64],
    samples: usize,
    sums: &[ConfigNumbers],
) -> Result<Vec<CoalitionRow>, AttributionError> {
    if samples == 0 {
        return Err(AttributionError::NoSamples);
    }
    if sums.len() != masks.len() {
        return Err(AttributionError::WrongCount {
            planned: masks.len(),
            measured: sums.len(),
        });
    }
    let row = |(&mask, sums): (&u64, &ConfigNumbers)| CoalitionRow {
        mask: BigInteger(mask),
        accuracy: Num(sums.accuracy_percent(samples)),
        loss: Num(sums.loss(samples)),
        discordant: Some((sums.only_main_correct, sums.only_this_correct)),
    };
    Ok(masks.iter().zip(sums).map(row).collect())
}

/// What follows from one matrix; `None` where a mask was not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// In player order.
    pub players: SmallVec<[PlayerAttribution; 4]>,
    /// The measured pairs, in player order.
    pub synergies: Vec<Synergy>,
    /// `v(all) − v(committed)`: what all growing players add together, percentage points.
    pub delta_cf: Option<f64>,
}

/// What one player is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerAttribution {
    /// How much lower the accuracy is without the player, percentage points.
    pub contribution: Option<f64>,
    /// How much higher the loss is without the player, nats: positive = it helps.
    pub contribution_loss: Option<f64>,
    /// `None` unless all of the player's pairs were measured.
    pub interactions: Option<InteractionSummary>,
}

/// What two players add together beyond what each adds, with no other on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synergy {
    /// Indices in player order.
    pub players: (usize, usize),
    /// Percentage points.
    pub points: f64,
}

/// A player's synergies with all others, percentage points; both 0 for a single player.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InteractionSummary {
    /// Over all pairs of the player.
    pub sum: f64,
    /// The largest synergy, at least 0.
    pub boost: f64,
}

impl Attribution {
    /// `committed`: mask of the players that are fossilized.
    pub fn of(matrix: &CounterfactualMatrix, committed: u64) -> Self {
        let whole = matrix.row(matrix.all_on());
        let loss_without = |player| Some(matrix.row(matrix.all_but(player))?.loss.0 - whole?.loss.0);
        let player = |player| PlayerAttribution {
            contribution: matrix.contribution(player),
            contribution_loss: loss_without(player),
            interactions: summary(matrix, player),
        };
        let synergy = |(i, j)| {
            let points = synergy(matrix, i, j)?;
            Some(Synergy {
                players: (i, j),
                points,
            })
        };
        let delta_cf = || Some(whole?.accuracy.0 - matrix.accuracy(committed)?);
        Self {
            players: (0..matrix.players()).map(player).collect(),
            synergies: pairs(matrix.players()).filter_map(synergy).collect(),
            delta_cf: delta_cf(),
        }
    }
}

/// `v(ij) − v(i) − v(j) + v(none)`.
fn synergy(matrix: &CounterfactualMatrix, i: usize, j: usize) -> Option<f64> {
    let (i, j) = (1 << i, 1 << j);
    let value = |mask| matrix.accuracy(mask);
    Some(value(i | j)? - value(i)? - value(j)? + value(0)?)
}

fn summary(matrix: &CounterfactualMatrix, player: usize) -> Option<InteractionSummary> {
    pairs(matrix.players())
        .filter(|&(i, j)| i == player || j == player)
        .try_fold(InteractionSummary::default(), |summary, (i, j)| {
            let value = synergy(matrix, i, j)?;
            Some(InteractionSummary {
                sum: summary.sum + value,
                boost: summary.boost.max(value),
            })
        })
}

/// Shares of `v(all) − v(none)`: exact if all 2^n masks are there, else from the plan's sampled orders, else `None`.
pub fn shapley(matrix: &CounterfactualMatrix, permutations: &[Vec<usize>]) -> Option<Shapley> {
    let value = |mask| matrix.accuracy(mask);
    let exact = exact_shapley(matrix.players(), value);
    let method = match exact {
        Some(_) => ShapleyMethod::Exact,
        None => ShapleyMethod::Permutation,
    };
    let values = exact.or_else(|| sampled_shapley(matrix.players(), permutations, value))?;
    let gain = value(matrix.all_on())? - value(0)?;
    Some(Shapley {
        slots: matrix.slots.clone(),
        seed_ids: matrix.seed_ids.clone(),
        efficiency_gap: Num(values.iter().map(|share| share.mean.0).sum::<f64>() - gain),
        values,
        method,
    })
}

#[cfg(test)]
mod tests;
