//! Measured contributions of seeds.

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::{BigInteger, Num};
use crate::telemetry::statistics::paired_standard_error;

/// One measured configuration: bit i of `mask` is on where player i was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoalitionRow {
    /// Bit i: player i was on.
    pub mask: BigInteger,
    /// Percent.
    pub accuracy: Num,
    /// Mean per sample, nats.
    pub loss: Num,
    /// Samples that only all-on got right, and that only this configuration got right.
    pub discordant: (u64, u64),
}

/// Accuracy and loss of each measured configuration of an env's seeds. What was not measured has no row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Measured", into = "Measured")]
pub struct CounterfactualMatrix {
    /// The players.
    pub seed_ids: Vec<String>,
    /// The first one has all players on.
    pub rows: Vec<CoalitionRow>,
    /// Validation samples.
    pub samples: u64,
}

/// The written form: a row is mask, samples that were right, loss and both numbers of discordant samples.
#[derive(Serialize, Deserialize)]
struct Measured {
    seed_ids: Vec<String>,
    samples: u64,
    rows: Vec<(BigInteger, u64, Num, u64, u64)>,
}

impl From<CounterfactualMatrix> for Measured {
    fn from(matrix: CounterfactualMatrix) -> Self {
        let correct = |row: &CoalitionRow| (row.accuracy.0 * matrix.samples as f64 / 100.0).round() as u64;
        let row = |row: &CoalitionRow| {
            let (lost, won) = row.discordant;
            (row.mask, correct(row), row.loss, lost, won)
        };
        Self {
            rows: matrix.rows.iter().map(row).collect(),
            seed_ids: matrix.seed_ids,
            samples: matrix.samples,
        }
    }
}

impl TryFrom<Measured> for CounterfactualMatrix {
    type Error = &'static str;

    fn try_from(short: Measured) -> Result<Self, Self::Error> {
        let is_possible = |row: &(_, u64, _, _, _)| row.1 <= short.samples;
        if short.samples > u32::MAX.into() || !short.rows.iter().all(is_possible) {
            return Err("more samples than there are");
        }
        let row = |(mask, correct, loss, lost, won)| CoalitionRow {
            mask,
            accuracy: Num(100.0 * correct as f64 / short.samples as f64),
            loss,
            discordant: (lost, won),
        };
        Ok(Self {
            rows: short.rows.into_iter().map(row).collect(),
            seed_ids: short.seed_ids,
            samples: short.samples,
        })
    }
}

impl CounterfactualMatrix {
    /// Number of players.
    pub fn players(&self) -> usize {
        self.seed_ids.len()
    }

    /// The measurements for a mask.
    pub fn row(&self, mask: u64) -> Option<&CoalitionRow> {
        self.rows.iter().find(|row| row.mask.0 == mask)
    }

    /// Percent; `None` if the mask was not measured.
    pub fn accuracy(&self, mask: u64) -> Option<f64> {
        self.row(mask).map(|row| row.accuracy.0)
    }

    /// The mask with all players on.
    pub fn all_on(&self) -> u64 {
        let off = 64_usize.saturating_sub(self.players());
        u64::MAX.checked_shr(off as u32).unwrap_or(0)
    }

    /// The mask with all players on except one.
    pub fn all_but(&self, player: usize) -> u64 {
        self.all_on() & !1_u64.checked_shl(player as u32).unwrap_or(0)
    }

    /// The same for a file, with short losses.
    pub fn short(&self) -> Self {
        let mut short = self.clone();
        for row in &mut short.rows {
            row.loss = Num::short(row.loss.0);
        }
        short
    }

    /// `v(all) − v(all except the player)` in percentage points. It is never clamped, and needn't add up.
    pub fn contribution(&self, player: usize) -> Option<f64> {
        Some(self.accuracy(self.all_on())? - self.accuracy(self.all_but(player))?)
    }

    /// Paired standard error of the contribution, percentage points.
    pub fn contribution_error(&self, player: usize) -> Option<f64> {
        let (lost, won) = self.row(self.all_but(player))?.discordant;
        Some(paired_standard_error(lost, won, self.samples))
    }
}

/// One player's share of what all players add together, in points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapleyValue {
    /// The share.
    pub mean: Num,
    /// Standard error of the sampling: 0 if exact; absent with a single pair of orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std: Option<Num>,
    /// Sampled pairs of orders; 0 if exact.
    pub n: u32,
}

/// Shapley values in points, parallel to `seed_ids`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shapley {
    /// Ids of the players.
    pub seed_ids: Vec<String>,
    /// Values of the players.
    pub values: Vec<ShapleyValue>,
}

#[cfg(test)]
mod tests;
