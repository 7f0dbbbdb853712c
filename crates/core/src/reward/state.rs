//! A reward's memory between the steps of an episode: plain data, reset with the episode.

use bevy_ecs::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::inputs::RewardError;

/// The memory of an env. `Default` is the state at the start of an episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardState {
    /// The mode's account of each slot's seed: the amount that a commit would keep, and its pay per step after. Observations
    /// may show it; slots that are not named have none.
    pub accounts: SmallVec<[f64; 4]>,
    /// The mode's own memory, in JSON.
    memory: Option<String>,
    /// Committed accuracy after the last step, percent; unknown after a rollback.
    pub(super) committed_accuracy: Option<f64>,
    /// The amount lent to growing seeds.
    pub(super) lent: f64,
    /// The loss that has been paid for, nats.
    pub(super) paid_loss: Option<f64>,
}

impl RewardState {
    /// The mode's newest memory in this episode; the default before there is one. A rollback does not change it: the seeds that
    /// it removed are missing from the next step's inputs.
    ///
    /// # Errors
    /// [`RewardError::Memory`] if the memory is not an `M`.
    pub fn recall<M: DeserializeOwned + Default>(&self) -> Result<M, RewardError> {
        match &self.memory {
            Some(text) => serde_json::from_str(text).map_err(unreadable),
            None => Ok(M::default()),
        }
    }

    /// Remembers all that the mode needs of the episode in later steps; checkpoints keep it.
    ///
    /// # Errors
    /// [`RewardError::Memory`] if serde refuses it.
    pub fn remember(&mut self, memory: &impl Serialize) -> Result<(), RewardError> {
        self.memory = Some(serde_json::to_string(memory).map_err(unreadable)?);
        Ok(())
    }

    /// The account of the seed in `slot`.
    pub fn account(&self, slot: usize) -> f64 {
        self.accounts.get(slot).copied().unwrap_or(0.0)
    }

    /// The network is another than the one that was paid for.
    pub(super) fn roll_back(&mut self) {
        self.committed_accuracy = None;
        self.lent = 0.0;
    }
}

fn unreadable(error: serde_json::Error) -> RewardError {
    RewardError::Memory(error.to_string())
}
