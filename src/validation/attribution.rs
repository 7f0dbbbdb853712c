//! What each seed contributes, read from the measured configurations (spec 05 §10.2-10.8).
//!
//! In: per-mask counts of one validation pass. Out: a [`CounterfactualMatrix`] of measured values only, and the
//! [`Attribution`] derived from it. Everything is looked up by mask; what was not measured is `None`, never guessed.

use serde::Serialize;
use smallvec::SmallVec;

use super::plan::{AttributionPlan, all_on, pairs};
use super::shapley::{ShapleyValue, banzhaf, exact_shapley, sampled_shapley};
use crate::growth::SlotId;
use crate::scenario::AttributionStrategy;

/// A validation pass whose numbers cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributionError {
    #[error("the validation pass of env {env}, step {step} saw no samples")]
    NoSamples { env: usize, step: u32 },
    #[error("the validation pass of env {env}, step {step} measured {measured} configurations, {planned} were planned")]
    WrongCount {
        env: usize,
        step: u32,
        planned: usize,
        measured: usize,
    },
}

/// Sums over all validation samples for one mask.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MaskTally {
    pub correct: u64,
    /// Nats.
    pub loss_sum: f64,
    /// Samples that the network as it is gets right and this configuration wrong.
    pub lost: u32,
    /// Samples that the network as it is gets wrong and this configuration right.
    pub gained: u32,
}

/// Who was measured, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixIdentity {
    pub env: usize,
    pub episode: u64,
    pub step: u32,
    /// Slot, seed and amplitude of each player, in player order.
    pub players: SmallVec<[MatrixPlayer; 4]>,
    pub strategy: AttributionStrategy,
}

/// A player as it was when measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixPlayer {
    pub slot: SlotId,
    pub seed_id: String,
    pub alpha: f64,
}

/// Accuracy and loss of each measured configuration of one env's seeds (spec 05 §10.8).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterfactualMatrix {
    #[serde(flatten)]
    pub identity: MatrixIdentity,
    /// The first mask has all players on.
    pub masks: Vec<u64>,
    /// Percent, by mask.
    pub accuracy: Vec<f64>,
    /// Mean per sample in nats, by mask.
    pub loss: Vec<f64>,
    /// `(lost, gained)` samples against the network as it is, by mask.
    pub discordant: Vec<(u32, u32)>,
    pub samples: u64,
    /// Mask of the committed players.
    pub fossilized: u64,
}

/// What is measured of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Percent.
    pub accuracy: f64,
    /// Mean per sample, nats.
    pub loss: f64,
}

impl CounterfactualMatrix {
    /// Turns one pass' sums, in the order of the plan's masks, into means.
    ///
    /// # Errors
    /// No samples at all, or another number of tallies than planned.
    pub fn new(
        identity: MatrixIdentity,
        plan: &AttributionPlan,
        samples: u64,
        tallies: &[MaskTally],
    ) -> Result<Self, AttributionError> {
        let (env, step) = (identity.env, identity.step);
        let masks = plan.coalitions.masks.clone();
        if samples == 0 {
            return Err(AttributionError::NoSamples { env, step });
        }
        if tallies.len() != masks.len() {
            return Err(AttributionError::WrongCount {
                env,
                step,
                planned: masks.len(),
                measured: tallies.len(),
            });
        }
        let count = samples as f64;
        Ok(Self {
            identity,
            masks,
            accuracy: tallies
                .iter()
                .map(|tally| 100.0 * tally.correct as f64 / count)
                .collect(),
            loss: tallies.iter().map(|tally| tally.loss_sum / count).collect(),
            discordant: tallies.iter().map(|tally| (tally.lost, tally.gained)).collect(),
            samples,
            fossilized: plan.fossilized,
        })
    }

    /// What was measured for a mask.
    pub fn get(&self, mask: u64) -> Option<Measured> {
        let index = self.index(mask)?;
        Some(Measured {
            accuracy: self.accuracy[index],
            loss: self.loss[index],
        })
    }

    /// Number of players.
    pub fn players(&self) -> usize {
        self.identity.players.len()
    }

    /// `v(all) − v(all but i)` in percentage points: never clamped, need not add up.
    pub fn contribution(&self, player: usize) -> Option<f64> {
        Some(self.accuracy(self.all())? - self.accuracy(self.without(player))?)
    }

    /// How much higher the loss is without the player, in nats: positive = it helps.
    pub fn contribution_loss(&self, player: usize) -> Option<f64> {
        Some(self.get(self.without(player))?.loss - self.get(self.all())?.loss)
    }

    /// Paired standard error of the contribution, percentage points.
    pub fn contribution_error(&self, player: usize) -> Option<f64> {
        let (lost, gained) = self.discordant[self.index(self.without(player))?];
        Some(paired_standard_error(lost, gained, self.samples))
    }

    /// Accuracy with only the committed players on, percent.
    pub fn committed_accuracy(&self) -> Option<f64> {
        self.accuracy(self.fossilized)
    }

    /// `v(all) − v(committed)`: what all growing players add together, percentage points.
    pub fn delta_cf(&self) -> Option<f64> {
        Some(self.accuracy(self.all())? - self.committed_accuracy()?)
    }

    /// What the player adds to the host alone, percentage points.
    pub fn solo_gain(&self, player: usize) -> Option<f64> {
        Some(self.accuracy(1 << player)? - self.accuracy(0)?)
    }

    /// Synergy of two players with no other on: `v(ij) − v(i) − v(j) + v(∅)`, percentage points.
    pub fn interaction(&self, i: usize, j: usize) -> Option<f64> {
        let (i, j) = (1 << i, 1 << j);
        Some(self.accuracy(i | j)? - self.accuracy(i)? - self.accuracy(j)? + self.accuracy(0)?)
    }

    /// Synergy of two players with all others on, percentage points.
    pub fn interaction_in_context(&self, i: usize, j: usize) -> Option<f64> {
        let neither = self.without(i) & self.without(j);
        Some(
            self.accuracy(self.all())? - self.accuracy(self.without(i))? - self.accuracy(self.without(j))?
                + self.accuracy(neither)?,
        )
    }

    /// Shares of `v(all) − v(∅)`: exact if all 2^n masks are there, else from the plan's sampled orders, else `None`.
    pub fn shapley(&self, permutations: &[Vec<usize>]) -> Option<Vec<ShapleyValue>> {
        let value = |mask| self.accuracy(mask);
        exact_shapley(self.players(), value).or_else(|| sampled_shapley(self.players(), permutations, value))
    }

    /// All derived numbers at once.
    pub fn attribute(&self) -> Attribution {
        let count = self.players();
        let banzhaf = banzhaf(count, |mask| self.accuracy(mask));
        let interactions: Vec<Interaction> = pairs(count)
            .map(|(i, j)| Interaction {
                players: (i, j),
                solo: self.interaction(i, j),
                in_context: self.interaction_in_context(i, j),
            })
            .collect();
        let players = (0..count)
            .map(|player| PlayerAttribution {
                contribution: self.contribution(player),
                contribution_error: self.contribution_error(player),
                contribution_loss: self.contribution_loss(player),
                solo_gain: self.solo_gain(player),
                banzhaf: banzhaf.as_ref().map(|values| values[player]),
                interactions: interaction_summary(player, &interactions),
            })
            .collect();
        Attribution {
            players,
            interactions,
            delta_cf: self.delta_cf(),
        }
    }

    fn accuracy(&self, mask: u64) -> Option<f64> {
        self.index(mask).map(|index| self.accuracy[index])
    }

    fn index(&self, mask: u64) -> Option<usize> {
        self.masks.iter().position(|&measured| measured == mask)
    }

    fn all(&self) -> u64 {
        all_on(self.players())
    }

    fn without(&self, player: usize) -> u64 {
        self.all() & !(1 << player)
    }
}

/// What follows from one matrix; `None` where a mask was not measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    /// In player order.
    pub players: SmallVec<[PlayerAttribution; 4]>,
    /// All pairs, in order.
    pub interactions: Vec<Interaction>,
    pub delta_cf: Option<f64>,
}

/// One player's numbers, in percentage points but for the loss (nats).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlayerAttribution {
    pub contribution: Option<f64>,
    pub contribution_error: Option<f64>,
    pub contribution_loss: Option<f64>,
    pub solo_gain: Option<f64>,
    pub banzhaf: Option<f64>,
    /// `None` unless all of the player's pairs were measured.
    pub interactions: Option<InteractionSummary>,
}

/// Synergy of a pair of players, percentage points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interaction {
    pub players: (usize, usize),
    /// With no other player on.
    pub solo: Option<f64>,
    /// With all other players on.
    pub in_context: Option<f64>,
}

/// A player's synergies with all others, percentage points; both 0 for a single player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InteractionSummary {
    pub sum: f64,
    /// The largest synergy, at least 0.
    pub boost: f64,
}

fn interaction_summary(player: usize, interactions: &[Interaction]) -> Option<InteractionSummary> {
    interactions
        .iter()
        .filter(|pair| pair.players.0 == player || pair.players.1 == player)
        .try_fold(InteractionSummary::default(), |summary, pair| {
            let value = pair.solo?;
            Some(InteractionSummary {
                sum: summary.sum + value,
                boost: summary.boost.max(value),
            })
        })
}

/// Standard error, in percentage points, of an accuracy difference measured on the same samples (spec 05 §10.3).
pub fn paired_standard_error(lost: u32, gained: u32, samples: u64) -> f64 {
    let (lost, gained, samples) = (f64::from(lost), f64::from(gained), samples as f64);
    let difference = lost - gained;
    100.0 / samples * (lost + gained - difference * difference / samples).sqrt()
}

#[cfg(test)]
mod tests;
