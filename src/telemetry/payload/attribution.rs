//! What each seed contributes, as measured.

use serde::{Deserialize, Serialize};

use crate::growth::SlotId;
use crate::telemetry::encoding::{BigInteger, Num};
use crate::telemetry::statistics::paired_standard_error;

/// Which configurations of the players were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All 2^n.
    Full,
    /// Each player off, all on and all off.
    Ablation,
    /// More than that, but not all.
    Sampled,
}

/// One measured configuration: bit i of `mask` is on where `slots[i]` was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoalitionRow {
    /// Bit i: player i was on.
    pub mask: BigInteger,
    /// Percent.
    pub accuracy: Num,
    /// Mean per sample, nats.
    pub loss: Num,
    /// Samples that only all-on got right, and that only this configuration got right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discordant: Option<(u64, u64)>,
}

/// Accuracy and loss of each measured configuration of an env's seeds. What was not measured has no row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterfactualMatrix {
    /// The players.
    pub slots: Vec<SlotId>,
    /// Of the players.
    pub seed_ids: Vec<String>,
    /// Of the players, when they were measured.
    pub alphas: Vec<Num>,
    /// The first one has all players on.
    pub rows: Vec<CoalitionRow>,
    /// Validation samples.
    pub samples: u64,
    /// Which configurations there are.
    pub coverage: Coverage,
    /// Masks that were planned and not measured: too many for `attribution.max_configs`.
    pub dropped: Vec<BigInteger>,
    /// Host time of the pass.
    pub total_ms: Num,
    /// Forward cost of the pass as it ran, in floating-point operations.
    pub val_flops: u64,
    /// Forward cost of one whole forward per configuration, in floating-point operations.
    pub val_flops_naive: u64,
}

impl CounterfactualMatrix {
    /// Number of players.
    pub fn players(&self) -> usize {
        self.seed_ids.len()
    }

    /// What was measured for a mask.
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

    /// The mask with all players on but one.
    pub fn all_but(&self, player: usize) -> u64 {
        self.all_on() & !1_u64.checked_shl(player as u32).unwrap_or(0)
    }

    /// `v(all) − v(all but the player)` in percentage points: never clamped, need not add up.
    pub fn contribution(&self, player: usize) -> Option<f64> {
        Some(self.accuracy(self.all_on())? - self.accuracy(self.all_but(player))?)
    }

    /// Paired standard error of the contribution, percentage points.
    pub fn contribution_error(&self, player: usize) -> Option<f64> {
        let (lost, won) = self.row(self.all_but(player))?.discordant?;
        Some(paired_standard_error(lost, won, self.samples))
    }
}

/// How [`Shapley`] values were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapleyMethod {
    /// From all 2^n configurations.
    Exact,
    /// From antithetic pairs of sampled orders.
    Permutation,
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

/// Shapley values in points, parallel to `slots` and `seed_ids`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shapley {
    /// The players.
    pub slots: Vec<SlotId>,
    /// Of the players.
    pub seed_ids: Vec<String>,
    /// Of the players.
    pub values: Vec<ShapleyValue>,
    /// How they were obtained.
    pub method: ShapleyMethod,
    /// Sum of the values minus what all players add to the host.
    pub efficiency_gap: Num,
}

/// Synergy of two players with no other on: `v(ab) − v(a) − v(b) + v(none)`, percentage points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairInteraction {
    /// One slot.
    pub a: SlotId,
    /// A slot behind it in policy order.
    pub b: SlotId,
    /// Positive: together they add more than one by one.
    pub value: Num,
}

/// The measured pairs of players.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interactions {
    /// In player order.
    pub pairs: Vec<PairInteraction>,
}

#[cfg(test)]
mod tests;
