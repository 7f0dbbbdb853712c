//! Reward scaling: once per rollout, when it is finished, so that all its rewards have one unit (spec 04 §5.3).
//!
//! Rewards are divided, never shifted: a mean that is subtracted would pay for living longer or shorter.

use serde::{Deserialize, Serialize};

use super::buffer::RolloutBuffer;
use crate::controller::Moments;
use crate::scenario::{RewardNorm, RewardNormMode};

/// Scales below this are taken for it.
const MIN_SCALE: f64 = 1e-3;

/// Running statistics of rewards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewardNormalizer {
    pub mode: RewardNormMode,
    pub moments: Moments,
    /// By env: discounted sum of the raw rewards of the episode that goes on; used by `ReturnStd` alone.
    pub running_returns: Vec<f64>,
}

/// A reward on its way to the advantages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawReward {
    pub value: f32,
    /// A penalty: clamped, but neither counted nor scaled.
    pub fixed: bool,
}

impl RewardNormalizer {
    pub fn new(mode: RewardNormMode, envs: usize) -> Self {
        Self {
            mode,
            moments: Moments::default(),
            running_returns: vec![0.0; envs],
        }
    }

    /// By what rewards are divided; 1 until `min_count` rewards are known.
    pub fn scale(&self, min_count: u64) -> f64 {
        if !self.moments.is_ready(min_count) {
            return 1.0;
        }
        let Moments { mean, var, .. } = self.moments;
        match self.mode {
            RewardNormMode::Off => 1.0,
            RewardNormMode::Rms => (var + mean * mean).sqrt().max(MIN_SCALE),
            RewardNormMode::Std | RewardNormMode::ReturnStd => var.sqrt().max(MIN_SCALE),
        }
    }

    /// Merges the rewards of a rollout. Returns false, and keeps the statistics, if they are not finite.
    pub fn observe(&mut self, buffer: &RolloutBuffer, gamma: f64, momentum: f64) -> bool {
        let mut values = Vec::new();
        for segment in buffer.segments() {
            let running = &mut self.running_returns[segment.env];
            for record in &buffer.rows[segment.env].steps[segment.steps()] {
                if !segment.valid || record.fixed_reward {
                    continue;
                }
                let reward = f64::from(record.reward_raw);
                *running = gamma * *running + reward;
                match self.mode {
                    RewardNormMode::Off => {}
                    RewardNormMode::Rms | RewardNormMode::Std => values.push(reward),
                    RewardNormMode::ReturnStd => values.push(*running),
                }
            }
            if segment.ends_episode() {
                *running = 0.0;
            }
        }
        self.moments.merge(values.iter().copied(), momentum)
    }
}

/// `reward / scale`, clamped; penalties are clamped alone.
pub fn scaled_reward(reward: RawReward, scale: f64, config: &RewardNorm) -> f64 {
    let scale = if reward.fixed { 1.0 } else { scale };
    (f64::from(reward.value) / scale).clamp(-config.clip, config.clip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalizer(values: &[&[f64]], mode: RewardNormMode) -> RewardNormalizer {
        let mut normalizer = RewardNormalizer::new(mode, 1);
        for batch in values {
            assert!(normalizer.moments.merge(batch.iter().copied(), 1.0));
        }
        normalizer
    }

    /// Spec 04 Check 8.
    #[test]
    fn rewards_are_divided_by_their_root_mean_square_and_penalties_are_not() {
        let first = normalizer(&[&[1.0, -2.0, 0.5, 3.0]], RewardNormMode::Rms);
        assert!((first.scale(2) - 1.887_458_6).abs() < 1e-6);

        let second = normalizer(&[&[1.0, -2.0, 0.5, 3.0], &[2.0, 1.0]], RewardNormMode::Rms);
        let scale = second.scale(2);
        assert!((scale - 1.791_182_1).abs() < 1e-6);

        let config = RewardNorm::default();
        let scaled = [(2.0, false), (-10.0, true), (1.0, false)]
            .map(|(value, fixed)| scaled_reward(RawReward { value, fixed }, scale, &config));
        for (actual, expected) in scaled.iter().zip([1.116_581_1, -10.0, 0.558_290_5]) {
            assert!((actual - expected).abs() < 1e-6, "{scaled:?}");
        }
    }

    #[test]
    fn nothing_is_scaled_before_enough_is_known() {
        let few = normalizer(&[&[5.0, 7.0]], RewardNormMode::Rms);
        assert_eq!(few.scale(32), 1.0);
    }

    #[test]
    fn a_constant_reward_stays_a_constant() {
        let rms = normalizer(&[&[4.0; 40]], RewardNormMode::Rms);
        assert!((rms.scale(32) - 4.0).abs() < 1e-12);
        let std = normalizer(&[&[4.0; 40]], RewardNormMode::Std);
        assert_eq!(std.scale(32), 1e-3);
    }

    #[test]
    fn scaled_rewards_are_clamped() {
        let reward = RawReward {
            value: -500.0,
            fixed: false,
        };
        assert_eq!(scaled_reward(reward, 2.0, &RewardNorm::default()), -10.0);
    }
}
