//! The seeds that were measured last, for the cadence `on_change`: while nothing about them changes but their weights, they are
//! not measured again.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::plan::{Players, find_players};
use crate::growth::SeedStage;
use crate::scenario::{AttributionConfig, AttributionStrategy, Cadence};
use crate::seed::SeedRecord;

/// A player as it was measured: its slot and germination identify it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
    slot: usize,
    germination: u32,
    stage: SeedStage,
    alpha: f64,
}

/// The players of an episode's last measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastMeasured(Option<SmallVec<[Measured; 4]>>);

impl LastMeasured {
    /// The players among the seeds of the slots, in slot order, and the settings by which this step measures them: with the
    /// cadence `on_change` the strategy is `off` where none of them has changed since they were measured and none is held.
    /// Remembers this step's measurement. `is_final`: the episode's last step, which is measured in any case.
    pub fn find<'a>(
        &mut self,
        seeds: impl Iterator<Item = Option<&'a SeedRecord>>,
        include_committed: bool,
        config: &AttributionConfig,
        is_final: bool,
    ) -> (Players, AttributionConfig) {
        let seeds: SmallVec<[_; 4]> = seeds.collect();
        let states = seeds
            .iter()
            .map(|seed| seed.map(|seed| (seed.stage, seed.alpha.alpha())));
        let players = find_players(states, include_committed);
        if config.cadence != Cadence::OnChange {
            return (players, *config);
        }
        let now = players.iter().filter_map(|player| {
            let seed = seeds[player.slot]?;
            Some(Measured {
                slot: player.slot,
                germination: seed.identity.germination,
                stage: player.stage,
                alpha: seed.alpha.alpha(),
            })
        });
        let now = Some(now.collect());
        let is_held = players.iter().any(|player| player.stage == SeedStage::Holding);
        let strategy = if is_final || is_held || self.0 != now {
            self.0 = now;
            config.strategy
        } else {
            AttributionStrategy::Off
        };
        (players, AttributionConfig { strategy, ..*config })
    }

    /// Forgets the last measurement: the network is another episode's, or has been put back.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests;
