//! What a reward remembers between the steps of an episode: plain data, reset with the episode.

use bevy_ecs::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::inputs::RewardError;

/// What is remembered of an env. `Default` is the state at the start of an episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardState {
    /// What the mode keeps for each slot's seed: what a commit would keep, and what it is paid per step since. Observations may
    /// show it; slots that are not named have none.
    pub accounts: SmallVec<[f64; 4]>,
    /// What the mode itself remembers, in JSON.
    memory: Option<String>,
    /// Percent, after the last step; unknown after a rollback.
    pub(super) committed_accuracy: Option<f64>,
    /// What growing seeds have on loan.
    pub(super) lent: f64,
    /// Nats: the loss that has been paid for.
    pub(super) paid_loss: Option<f64>,
}

impl RewardState {
    /// What the mode has remembered last in this episode; the default before it has. A rollback does not change it: seeds that went
    /// with one are missing from the next step's inputs.
    ///
    /// # Errors
    /// [`RewardError::Memory`] where something else was remembered than `M`.
    pub fn recall<M: DeserializeOwned + Default>(&self) -> Result<M, RewardError> {
        match &self.memory {
            Some(text) => serde_json::from_str(text).map_err(unreadable),
            None => Ok(M::default()),
        }
    }

    /// Remembers all that the mode needs of the episode in later steps; checkpoints keep it.
    ///
    /// # Errors
    /// [`RewardError::Memory`] where serde refuses it.
    pub fn remember(&mut self, memory: &impl Serialize) -> Result<(), RewardError> {
        self.memory = Some(serde_json::to_string(memory).map_err(unreadable)?);
        Ok(())
    }

    /// What is kept on account for the seed in `slot`.
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
