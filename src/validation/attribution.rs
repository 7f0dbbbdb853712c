//! What each seed contributes, read from the measured configurations (spec 05 §10.2-10.8).
//!
//! In: per-mask counts of one validation pass. Out: a [`CounterfactualMatrix`] of measured values only, and the
//! [`Attribution`] derived from it. Everything is looked up by mask; what was not measured is `None`, never guessed.

use serde::Serialize;
use smallvec::SmallVec;

use super::plan::{AttributionPlan, all_on, pairs};
use super::shapley::{ShapleyValue, banzhaf, exact_shapley, sampled_shapley};
use crate::scenario::AttributionStrategy;
use crate::seed::SlotId;

/// Two seeds help each other above this many percentage points (spec 05 §10.5).
pub const SYNERGY_ABOVE: f64 = 0.5;
/// Two seeds hinder each other below this many percentage points.
pub const INTERFERENCE_BELOW: f64 = -0.5;
/// An interference that improves by more than this per measurement is recovering.
pub const RECOVERING_ABOVE: f64 = 0.001;
/// Weight of the old value in the smoothed interaction.
pub const INTERACTION_DECAY: f64 = 0.7;

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
            committed_accuracy: self.committed_accuracy(),
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
    pub committed_accuracy: Option<f64>,
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

/// How two seeds get on (spec 05 §10.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InteractionRegime {
    Synergy,
    Interference,
    /// Still an interference, but a weaker one than before.
    Recovering,
    Independent,
}

/// The smoothed synergy of one pair over its measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InteractionTrend {
    smoothed: Option<f64>,
    derivative: f64,
}

impl InteractionTrend {
    /// Takes in a measured synergy and says what regime the pair is in.
    pub fn measure(&mut self, interaction: f64) -> InteractionRegime {
        let before = self.smoothed.unwrap_or(interaction);
        let smoothed = INTERACTION_DECAY * before + (1.0 - INTERACTION_DECAY) * interaction;
        self.derivative = smoothed - before;
        self.smoothed = Some(smoothed);
        regime(interaction, self.derivative)
    }

    /// Moving average, percentage points; `None` before the first measurement.
    pub fn smoothed(&self) -> Option<f64> {
        self.smoothed
    }

    /// Change of the moving average at the last measurement.
    pub fn derivative(&self) -> f64 {
        self.derivative
    }
}

/// Regime of a synergy and its smoothed change; all bounds are strict.
pub fn regime(interaction: f64, derivative: f64) -> InteractionRegime {
    if interaction > SYNERGY_ABOVE {
        InteractionRegime::Synergy
    } else if interaction >= INTERFERENCE_BELOW {
        InteractionRegime::Independent
    } else if derivative > RECOVERING_ABOVE {
        InteractionRegime::Recovering
    } else {
        InteractionRegime::Interference
    }
}

/// Standard error, in percentage points, of an accuracy difference measured on the same samples (spec 05 §10.3).
pub fn paired_standard_error(lost: u32, gained: u32, samples: u64) -> f64 {
    let (lost, gained, samples) = (f64::from(lost), f64::from(gained), samples as f64);
    let difference = lost - gained;
    100.0 / samples * (lost + gained - difference * difference / samples).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::plan::{PlanMoment, find_players, plan_coalitions};
    use super::*;
    use crate::scenario::{AttributionConfig, Cadence};
    use crate::seed::SeedStage;

    const SAMPLES: u64 = 10_000;

    fn identity(players: usize) -> MatrixIdentity {
        MatrixIdentity {
            env: 2,
            episode: 10,
            step: 5,
            players: (0..players)
                .map(|i| MatrixPlayer {
                    slot: SlotId::new(0, i as u16),
                    seed_id: format!("e10.r0c{i}.0"),
                    alpha: 1.0,
                })
                .collect(),
            strategy: AttributionStrategy::Auto,
        }
    }

    fn plan(players: usize, config: &AttributionConfig) -> AttributionPlan {
        let moment = PlanMoment {
            step: 5,
            is_final: false,
            permutation_seed: 0,
        };
        let slots = vec![Some((SeedStage::Holding, 1.0)); players];
        plan_coalitions(&find_players(slots, false), config, moment)
    }

    /// A matrix with the given accuracies by mask and loss = 3 − accuracy / 100.
    fn matrix(players: usize, accuracy: &[f64]) -> CounterfactualMatrix {
        let plan = plan(players, &AttributionConfig::default());
        let tallies: Vec<MaskTally> = plan
            .coalitions
            .masks
            .iter()
            .map(|&mask| MaskTally {
                correct: (accuracy[mask as usize] * SAMPLES as f64 / 100.0).round() as u64,
                loss_sum: (3.0 - accuracy[mask as usize] / 100.0) * SAMPLES as f64,
                ..Default::default()
            })
            .collect();
        CounterfactualMatrix::new(identity(players), &plan, SAMPLES, &tallies).unwrap()
    }

    fn c14() -> CounterfactualMatrix {
        matrix(3, &[60.0, 62.0, 63.0, 67.0, 60.5, 62.0, 64.0, 68.0])
    }

    fn assert_close(actual: Option<f64>, expected: f64) {
        let actual = actual.expect("the masks were measured");
        assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
    }

    #[test]
    fn contributions_compare_with_each_player_off() {
        let matrix = c14();
        for (player, expected) in [4.0, 6.0, 1.0].into_iter().enumerate() {
            assert_close(matrix.contribution(player), expected);
            assert_close(matrix.contribution_loss(player), expected / 100.0);
        }
        assert_close(matrix.delta_cf(), 8.0);
        assert_close(matrix.committed_accuracy(), 60.0);
        assert_close(matrix.solo_gain(1), 3.0);
    }

    #[test]
    fn interactions_alone_and_in_context() {
        let matrix = c14();
        assert_close(matrix.interaction(0, 1), 2.0);
        assert_close(matrix.interaction(0, 2), -0.5);
        assert_close(matrix.interaction(1, 2), 0.5);
        assert_close(matrix.interaction_in_context(0, 1), 2.5);
        assert_close(matrix.interaction_in_context(0, 2), 0.0);
        assert_close(matrix.interaction_in_context(1, 2), 1.0);
    }

    #[test]
    fn the_full_record_of_three_players() {
        let attribution = c14().attribute();
        let first = attribution.players[0];
        assert_close(first.banzhaf, 2.875);
        let interactions = first.interactions.unwrap();
        assert_close(Some(interactions.sum), 1.5);
        assert_close(Some(interactions.boost), 2.0);
        let last = attribution.players[2].interactions.unwrap();
        assert_close(Some(last.sum), 0.0);
        assert_close(Some(last.boost), 0.5);
        assert_eq!(attribution.interactions.len(), 3);
    }

    #[test]
    fn a_coalition_ransom_shows_in_delta_and_interaction() {
        let matrix = matrix(2, &[70.0, 60.0, 60.0, 68.0]);
        assert_close(matrix.contribution(0), 8.0);
        assert_close(matrix.contribution(1), 8.0);
        assert_close(matrix.delta_cf(), -2.0);
        assert_close(matrix.interaction(0, 1), 18.0);
        let shares = matrix.shapley(&[]).unwrap();
        assert_close(Some(shares[0].value), -1.0);
        assert_close(Some(shares[1].value), -1.0);
    }

    #[test]
    fn the_interaction_of_two_seeds_above_a_host() {
        assert_close(matrix(2, &[60.0, 65.0, 66.0, 72.0]).interaction(0, 1), 1.0);
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        let config = AttributionConfig {
            cadence: Cadence::Off,
            ..Default::default()
        };
        let tally = MaskTally {
            correct: 50,
            loss_sum: 100.0,
            ..Default::default()
        };
        let plan = plan(2, &config);
        let matrix = CounterfactualMatrix::new(identity(2), &plan, 100, &[tally]).unwrap();
        let measured = Measured {
            accuracy: 50.0,
            loss: 1.0,
        };
        assert_eq!(matrix.get(0b11), Some(measured));
        assert_eq!(matrix.get(0b01), None);
        assert_eq!(matrix.shapley(&[]), None);
        let attribution = matrix.attribute();
        assert_eq!(attribution.delta_cf, None);
        assert_eq!(attribution.players[0].contribution, None);
        assert_eq!(attribution.players[0].interactions, None);
    }

    #[test]
    fn a_pass_without_samples_is_an_error_not_zero_percent() {
        let plan = plan(0, &AttributionConfig::default());
        let empty = CounterfactualMatrix::new(identity(0), &plan, 0, &[MaskTally::default()]);
        assert_eq!(empty, Err(AttributionError::NoSamples { env: 2, step: 5 }));
        let short = CounterfactualMatrix::new(identity(0), &plan, 10, &[]);
        assert!(matches!(short, Err(AttributionError::WrongCount { .. })));
    }

    #[test]
    fn the_paired_error_of_a_contribution() {
        let error = paired_standard_error(320, 200, 10_000);
        assert!((error - 0.227_719_125_239_844_53).abs() < 1e-9);

        let plan = plan(1, &AttributionConfig::default());
        let tally = |correct, lost, gained| MaskTally {
            correct,
            loss_sum: 0.0,
            lost,
            gained,
        };
        let tallies = [tally(7000, 0, 0), tally(6880, 320, 200)];
        let matrix = CounterfactualMatrix::new(identity(1), &plan, SAMPLES, &tallies).unwrap();
        assert_close(matrix.contribution(0), 1.2);
        assert_close(matrix.contribution_error(0), 0.227_719_125_239_844_53);
    }

    #[test]
    fn regimes_have_strict_bounds() {
        assert_eq!(regime(2.0, 0.0), InteractionRegime::Synergy);
        assert_eq!(regime(0.5, 0.0), InteractionRegime::Independent);
        assert_eq!(regime(-0.5, 0.0), InteractionRegime::Independent);
        assert_eq!(regime(-0.6, 0.001), InteractionRegime::Interference);
        assert_eq!(regime(-0.6, 0.002), InteractionRegime::Recovering);
    }

    #[test]
    fn a_weakening_interference_is_recovering() {
        let mut trend = InteractionTrend::default();
        assert_eq!(trend.measure(-2.0), InteractionRegime::Interference);
        assert_eq!(trend.measure(-1.0), InteractionRegime::Recovering);
        assert_close(trend.smoothed(), -1.7);
        assert_close(Some(trend.derivative()), 0.3);
    }
}
