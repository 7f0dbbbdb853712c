//! What a checkpoint keeps of a learner: named tensors and a plain record (spec 04 §15). No generator state: every draw
//! is derived from seed and round.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::error::LearnerError;
use super::ppo::Learner;
use super::reward_norm::RewardNormalizer;
use super::value_norm::ValueNormalizer;
use crate::torch::copy_into;

/// How far learning has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Successful updates: what all schedules run on.
    pub updates: u64,
    pub policy_version: u64,
    pub consecutive_failures: u32,
}

/// The plain part of a learner's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnerState {
    pub counters: Counters,
    pub rewards: RewardNormalizer,
    pub values: ValueNormalizer,
}

impl Learner {
    /// The plain part of the state.
    pub fn state(&self) -> LearnerState {
        LearnerState {
            counters: self.counters,
            rewards: self.rewards.clone(),
            values: self.values,
        }
    }

    /// The optimizer's moments by name: `exp_avg.<parameter>`, `exp_avg_sq.<parameter>`, `step.<parameter>`. The
    /// tensors are the live ones.
    pub fn state_tensors(&self) -> Vec<(String, Tensor)> {
        self.optimizer.named_state()
    }

    /// Continues from a saved state, in place. The policy's parameters are the caller's to restore, before this: both
    /// together are the last state known to be good.
    ///
    /// # Errors
    /// `Incompatible` with every difference, in which case nothing has changed; a device error.
    pub fn restore(&mut self, state: &LearnerState, tensors: &[(String, Tensor)]) -> Result<(), LearnerError> {
        let live = self.state_tensors();
        let differences = [
            differences_of_norms(state, &self.state()),
            differences_of_tensors(tensors, &live),
        ]
        .concat();
        if !differences.is_empty() {
            return Err(LearnerError::Incompatible(differences));
        }
        for (name, tensor) in &live {
            if let Some((_, saved)) = tensors.iter().find(|(saved, _)| saved == name) {
                copy_into(tensor, saved, false)?;
            }
        }
        self.counters = state.counters;
        self.rewards = state.rewards.clone();
        self.values = state.values;
        self.optimizer.remember()?;
        Ok(())
    }
}

fn differences_of_norms(saved: &LearnerState, live: &LearnerState) -> Vec<String> {
    let mut differences = Vec::new();
    let (old, new) = (&saved.rewards, &live.rewards);
    if old.mode != new.mode {
        differences.push(format!("reward_norm.mode was {:?}, is {:?}", old.mode, new.mode));
    }
    if old.running_returns.len() != new.running_returns.len() {
        let (old, new) = (old.running_returns.len(), new.running_returns.len());
        differences.push(format!("there were {old} envs, there are {new}"));
    }
    if saved.values.mode != live.values.mode {
        let (old, new) = (saved.values.mode, live.values.mode);
        differences.push(format!("value_norm.mode was {old:?}, is {new:?}"));
    }
    differences
}

fn differences_of_tensors(saved: &[(String, Tensor)], live: &[(String, Tensor)]) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, tensor) in live {
        match saved.iter().find(|(saved, _)| saved == name) {
            None => differences.push(format!("`{name}` is missing")),
            Some((_, saved)) if saved.size() != tensor.size() => {
                let (old, new) = (saved.size(), tensor.size());
                differences.push(format!("`{name}` has the shape {old:?}, expected {new:?}"));
            }
            Some((_, saved)) if saved.kind() != tensor.kind() => {
                let (old, new) = (saved.kind(), tensor.kind());
                differences.push(format!("`{name}` is {old:?}, expected {new:?}"));
            }
            Some(_) => {}
        }
    }
    let unknown = saved
        .iter()
        .filter(|(name, _)| live.iter().all(|(live, _)| live != name));
    differences.extend(unknown.map(|(name, _)| format!("`{name}` is no tensor of this learner")));
    differences
}
