//! Reward scaling: once per rollout, when it is finished, so that all its rewards have one unit.
//!
//! Rewards are divided, never shifted: a mean that is subtracted would pay for living longer or shorter.

use serde::{Deserialize, Serialize};

use super::buffer::RolloutBuffer;
use crate::controller::RunningMoments;
use crate::scenario::{RewardNorm, RewardNormMode};

/// Scales below this are taken for it.
const MIN_SCALE: f64 = 1e-3;

/// Running statistics of rewards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewardNormalizer {
    /// What rewards are divided by.
    pub mode: RewardNormMode,
    /// Of what the mode looks at.
    pub moments: RunningMoments,
}

impl RewardNormalizer {
    /// Without any statistics.
    pub(super) fn new(mode: RewardNormMode) -> Self {
        Self {
            mode,
            moments: RunningMoments::default(),
        }
    }

    /// By what rewards are divided; 1 until `min_count` rewards are known.
    pub(super) fn scale(&self, min_count: u64) -> f64 {
        if !self.moments.is_ready(min_count) {
            return 1.0;
        }
        let RunningMoments { mean, var, .. } = self.moments;
        match self.mode {
            RewardNormMode::Off => 1.0,
            RewardNormMode::Rms => (var + mean * mean).sqrt().max(MIN_SCALE),
            RewardNormMode::Std | RewardNormMode::ReturnStd => var.sqrt().max(MIN_SCALE),
        }
    }

    /// Merges the rewards of a rollout. Returns false, and keeps the statistics, if they are not finite.
    pub(super) fn observe(&mut self, buffer: &RolloutBuffer, gamma: f64, momentum: f64) -> bool {
        let mut values = Vec::new();
        for segment in buffer.segments() {
            // The discounted sum of the segment's raw rewards so far.
            let mut running = 0.0;
            for record in &buffer.rows[segment.env].steps[segment.steps()] {
                if !segment.valid || record.fixed_reward {
                    continue;
                }
                let reward = f64::from(record.reward_raw);
                running = gamma * running + reward;
                match self.mode {
                    RewardNormMode::Off => {}
                    RewardNormMode::Rms | RewardNormMode::Std => values.push(reward),
                    RewardNormMode::ReturnStd => values.push(running),
                }
            }
        }
        self.moments.merge(values.iter().copied(), momentum)
    }
}

/// `reward / scale`, clamped.
pub(super) fn scaled_reward(reward: f32, scale: f64, config: &RewardNorm) -> f64 {
    (f64::from(reward) / scale).clamp(-config.clip, config.clip)
}

#[cfg(test)]
mod tests;
