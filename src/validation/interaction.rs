//! How two seeds get on over time: the smoothed synergy of each pair and the regime it is in (spec 05 §10.5).
//!
//! In: the measured synergies of one step. Out: a [`PairRegime`] for each. Pure data; a pair is known by its seeds, so
//! a new seed in an old slot starts afresh.

use std::collections::BTreeMap;

use bevy_ecs::component::Component;
use serde::Serialize;

use super::attribution::{Attribution, MatrixIdentity};

/// Two seeds help each other above this many percentage points.
pub const SYNERGY_ABOVE: f64 = 0.5;
/// Two seeds hinder each other below this many percentage points.
pub const INTERFERENCE_BELOW: f64 = -0.5;
/// An interference whose average rises by more than this per measurement is recovering.
pub const RECOVERING_ABOVE: f64 = 0.001;
/// Weight of the old value in the smoothed synergy.
pub const INTERACTION_DECAY: f64 = 0.7;

/// What a pair's synergy amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InteractionRegime {
    Synergy,
    Interference,
    /// Still an interference, but a weaker one than before.
    Recovering,
    Independent,
}

impl InteractionRegime {
    /// Regime of a synergy in percentage points and of the change of its average; all bounds are strict.
    pub fn of(synergy: f64, derivative: f64) -> Self {
        if synergy > SYNERGY_ABOVE {
            Self::Synergy
        } else if synergy >= INTERFERENCE_BELOW {
            Self::Independent
        } else if derivative > RECOVERING_ABOVE {
            Self::Recovering
        } else {
            Self::Interference
        }
    }
}

/// A pair's synergy as of its last measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairRegime {
    pub regime: InteractionRegime,
    /// Moving average of the synergy, percentage points.
    pub smoothed: f64,
    /// Change of the moving average at the last measurement.
    pub derivative: f64,
}

impl PairRegime {
    /// Takes in a synergy measured after `before`; the first one is its own average.
    fn after(before: Option<&Self>, synergy: f64) -> Self {
        let old = before.map_or(synergy, |pair| pair.smoothed);
        let smoothed = INTERACTION_DECAY * old + (1.0 - INTERACTION_DECAY) * synergy;
        let derivative = smoothed - old;
        Self {
            regime: InteractionRegime::of(synergy, derivative),
            smoothed,
            derivative,
        }
    }
}

/// The pairs of an env that the last measurement of its seeds covered, by seed ids.
#[derive(Component, Clone, Debug, Default, PartialEq)]
pub struct InteractionRegimes(pub BTreeMap<(String, String), PairRegime>);

impl InteractionRegimes {
    /// Takes in a step's attribution. Pairs that it does not measure are forgotten.
    pub(super) fn measure(&mut self, identity: &MatrixIdentity, attribution: &Attribution) {
        let seed_id = |player: usize| identity.players[player].seed_id.clone();
        let measured = attribution.interactions.iter().filter_map(|pair| {
            let key = (seed_id(pair.players.0), seed_id(pair.players.1));
            let regime = PairRegime::after(self.0.get(&key), pair.solo?);
            Some((key, regime))
        });
        self.0 = measured.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(before: Option<&PairRegime>, synergy: f64) -> PairRegime {
        PairRegime::after(before, synergy)
    }

    /// Spec 05 C14: of three pairs one is a synergy; ±0.5 is neither that nor an interference.
    #[test]
    fn regimes_have_strict_bounds() {
        use InteractionRegime::{Independent, Interference, Recovering, Synergy};
        let of_first = |synergy| after(None, synergy).regime;
        assert_eq!([2.0, -0.5, 0.5].map(of_first), [Synergy, Independent, Independent]);
        assert_eq!(InteractionRegime::of(-0.6, 0.001), Interference);
        assert_eq!(InteractionRegime::of(-0.6, 0.002), Recovering);
    }

    #[test]
    fn a_weakening_interference_is_recovering() {
        let first = after(None, -2.0);
        assert_eq!((first.regime, first.smoothed), (InteractionRegime::Interference, -2.0));

        let second = after(Some(&first), -1.0);

        assert_eq!(second.regime, InteractionRegime::Recovering);
        assert!((second.smoothed + 1.7).abs() < 1e-9);
        assert!((second.derivative - 0.3).abs() < 1e-9);
    }
}
