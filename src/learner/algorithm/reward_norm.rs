//! Reward scaling: once per rollout, when it is finished, so that all its rewards have one unit.
//!
//! Rewards are divided, never shifted: a mean that is subtracted would pay for living longer or shorter.

use serde::{Deserialize, Serialize};

use super::buffer::RolloutBuffer;
use crate::controller::{MIN_COUNT, RunningMoments};

/// Scales below this are taken for it.
const MIN_SCALE: f64 = 1e-3;
/// Clamp of scaled rewards and of penalties.
pub(super) const CLIP: f64 = 10.0;
/// All history counts alike: a unit of reward should hardly move.
const MOMENTUM: f64 = 1.0;

/// Running statistics of rewards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardNormalizer {
    /// Of all rewards so far.
    pub moments: RunningMoments,
}

impl RewardNormalizer {
    /// The root mean square of the rewards, by which they are divided; 1 until enough of them are known.
    pub(super) fn scale(&self) -> f64 {
        let RunningMoments { mean, var, .. } = self.moments;
        if self.moments.is_ready(MIN_COUNT) {
            (var + mean * mean).sqrt().max(MIN_SCALE)
        } else {
            1.0
        }
    }

    /// Merges the rewards of a rollout. Returns false, and keeps the statistics, if they are not finite.
    pub(super) fn observe(&mut self, buffer: &RolloutBuffer) -> bool {
        let records = buffer.valid_steps().map(|(env, step)| &buffer.rows[env].steps[step]);
        let rewards = records.filter(|record| !record.fixed_reward);
        let rewards: Vec<f64> = rewards.map(|record| record.reward_raw.into()).collect();
        self.moments.merge(rewards.iter().copied(), MOMENTUM)
    }
}

/// `reward / scale`, clamped.
pub(super) fn scaled_reward(reward: f32, scale: f64) -> f64 {
    (f64::from(reward) / scale).clamp(-CLIP, CLIP)
}

#[cfg(test)]
mod tests;
