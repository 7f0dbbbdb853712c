//! Contribution of each seed, read from the measured configurations.
//!
//! In: the sums of one validation pass. Out: the rows of a [`CounterfactualMatrix`], measured values only, and the
//! [`Attribution`] that follows from them. Everything is looked up by mask; a value that was not measured is `None`, never
//! guessed.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::plan::pairs;
use super::shapley::{exact_shapley, sampled_shapley};
use crate::seed::SeedRecord;
use crate::telemetry::{BigInteger, CoalitionRow, CounterfactualMatrix, Num, Shapley};
use crate::training::ConfigNumbers;

/// Turns one pass' sums, one for each of the plan's masks and in their order, into means over `samples`, at least 1.
pub fn coalition_rows(masks: &[u64], samples: usize, sums: &[ConfigNumbers]) -> Vec<CoalitionRow> {
    let row = |(&mask, sums): (&u64, &ConfigNumbers)| CoalitionRow {
        mask: BigInteger(mask),
        accuracy: Num(sums.accuracy_percent(samples)),
        loss: Num(sums.loss(samples)),
        discordant: (sums.only_main_correct, sums.only_this_correct),
    };
    masks.iter().zip(sums).map(row).collect()
}

/// Values that follow from one matrix; `None` where a mask was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// The players in order.
    pub players: SmallVec<[PlayerAttribution; 4]>,
    /// The measured pairs, in player order.
    pub synergies: Vec<Synergy>,
    /// `v(all) − v(committed)`: what all growing players add together, percentage points.
    pub delta_cf: Option<f64>,
}

/// Contribution and interactions of one player.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerAttribution {
    /// The accuracy with the player minus the accuracy without it, percentage points.
    pub contribution: Option<f64>,
    /// Sum of its synergies with all others, percentage points; `None` unless all of the player's pairs were measured.
    pub interaction_sum: Option<f64>,
}

/// Two players' joint gain beyond the gains of each, with no other on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Synergy {
    /// Indices in player order.
    pub players: (usize, usize),
    /// Percentage points.
    pub points: f64,
}

impl Attribution {
    /// `committed`: mask of the players that are committed.
    pub fn of(matrix: &CounterfactualMatrix, committed: u64) -> Self {
        let player = |player| PlayerAttribution {
            contribution: matrix.contribution(player),
            interaction_sum: interaction_sum(matrix, player),
        };
        let synergy = |(i, j)| {
            let points = synergy(matrix, i, j)?;
            Some(Synergy {
                players: (i, j),
                points,
            })
        };
        let delta_cf = || Some(matrix.accuracy(matrix.all_on())? - matrix.accuracy(committed)?);
        Self {
            players: (0..matrix.players()).map(player).collect(),
            synergies: pairs(matrix.players()).filter_map(synergy).collect(),
            delta_cf: delta_cf(),
        }
    }

    /// Writes the measurements of `players` into the seeds in their slots.
    pub fn write_into(&self, players: &[usize], slots: &mut [Option<&mut SeedRecord>]) {
        for (measured, &slot) in self.players.iter().zip(players) {
            let Some(seed) = &mut slots[slot] else { continue };
            if let Some(points) = measured.contribution {
                seed.measure_contribution(points);
            }
            seed.interaction_sum = measured.interaction_sum.unwrap_or(seed.interaction_sum);
        }
    }
}

/// `v(ij) − v(i) − v(j) + v(none)`.
fn synergy(matrix: &CounterfactualMatrix, i: usize, j: usize) -> Option<f64> {
    let (i, j) = (1 << i, 1 << j);
    let value = |mask| matrix.accuracy(mask);
    Some(value(i | j)? - value(i)? - value(j)? + value(0)?)
}

fn interaction_sum(matrix: &CounterfactualMatrix, player: usize) -> Option<f64> {
    pairs(matrix.players())
        .filter(|&(i, j)| i == player || j == player)
        .try_fold(0.0, |sum, (i, j)| Some(sum + synergy(matrix, i, j)?))
}

/// Shares of `v(all) − v(none)`: exact if all 2^n masks are there, else from the plan's sampled orders, else `None`.
pub fn shapley(matrix: &CounterfactualMatrix, permutations: &[Vec<usize>]) -> Option<Shapley> {
    let value = |mask| matrix.accuracy(mask);
    let values =
        exact_shapley(matrix.players(), value).or_else(|| sampled_shapley(matrix.players(), permutations, value))?;
    Some(Shapley {
        seed_ids: matrix.seed_ids.clone(),
        values,
    })
}

#[cfg(test)]
mod tests;
