//! What rewards and values are measured in. Both move once per rollout, when it is finished, so that all of it has one unit.
//!
//! Rewards are divided, never shifted: a mean that is subtracted would pay for living longer or shorter. The critic's raw values
//! are in units of scaled reward, the network puts out normalised ones (PopArt of van Hasselt et al. 2016).

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::buffer::RolloutBuffer;
use crate::controller::{MIN_COUNT, RunningMoments};
use crate::nn::Linear;
use crate::torch::{TorchError, catch, copy_into};

/// Scales of reward below this are taken for it.
const MIN_SCALE: f64 = 1e-3;
/// Clamp of scaled rewards and of penalties.
pub(super) const CLIP: f64 = 10.0;
/// Of rewards all history counts alike: a unit of reward should hardly move.
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

/// Deviations of returns below this are taken for it.
const MIN_DEVIATION: f64 = 1e-3;

/// Running statistics of returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueNormalizer {
    /// Of all returns so far.
    pub moments: RunningMoments,
}

/// `raw = normalised · deviation + mean`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueUnits {
    /// In units of scaled reward.
    pub mean: f64,
    /// In units of scaled reward.
    pub deviation: f64,
}

impl ValueUnits {
    /// Those of scaled reward itself.
    const RAW: Self = Self {
        mean: 0.0,
        deviation: 1.0,
    };

    /// From units of scaled reward.
    pub fn normalise(self, raw: f64) -> f64 {
        (raw - self.mean) / self.deviation
    }

    /// To units of scaled reward.
    pub fn raw(self, normalised: f64) -> f64 {
        normalised * self.deviation + self.mean
    }
}

impl ValueNormalizer {
    /// The units in force; they change only at the end of a rollout.
    pub(super) fn units(&self) -> ValueUnits {
        if !self.moments.is_ready(MIN_COUNT) {
            return ValueUnits::RAW;
        }
        ValueUnits {
            mean: self.moments.mean,
            deviation: self.moments.var.sqrt().max(MIN_DEVIATION),
        }
    }

    /// Merges the returns of a rollout and rewrites the value head so that its raw outputs stay as they are. Returns
    /// false, and changes nothing, if the returns' mean or variance is not finite.
    ///
    /// # Errors
    /// A device error.
    pub(super) fn observe(&mut self, returns: &[f64], momentum: f64, head: &Linear) -> Result<bool, TorchError> {
        let before = self.units();
        let is_finite = self.moments.merge(returns.iter().copied(), momentum);
        if is_finite {
            preserve_outputs(head, before, self.units())?;
        }
        Ok(is_finite)
    }

    /// The unit of reward changed: all raw values are `factor` times what they were. The statistics move, or, where none
    /// are in use, the head itself.
    ///
    /// # Errors
    /// A device error.
    pub(super) fn rescale_units(&mut self, factor: f64, head: &Linear) -> Result<(), TorchError> {
        let is_in_use = self.moments.is_ready(MIN_COUNT);
        if self.moments.count > 0 {
            self.moments.mean *= factor;
            self.moments.var *= factor * factor;
        }
        if is_in_use {
            return Ok(());
        }
        let bias = bias_of(head)?;
        let (weight, scaled) = catch(|| (head.weight.detach() * factor, bias.detach() * factor))?;
        copy_into(&head.weight, &weight, false)?;
        copy_into(bias, &scaled, false)
    }
}

/// `w' = w·σ/σ'`, `b' = (σ·b + μ − μ')/σ'`, in place.
fn preserve_outputs(head: &Linear, from: ValueUnits, to: ValueUnits) -> Result<(), TorchError> {
    let bias = bias_of(head)?;
    let (weight, moved) = catch(|| {
        let weight = head.weight.detach() * (from.deviation / to.deviation);
        let bias = (bias.detach() * from.deviation + (from.mean - to.mean)) / to.deviation;
        (weight, bias)
    })?;
    copy_into(&head.weight, &weight, false)?;
    copy_into(bias, &moved, false)
}

fn bias_of(head: &Linear) -> Result<&Tensor, TorchError> {
    let missing = || TorchError::Other("the last layer of the value head has no bias, which its units need".into());
    head.bias.as_ref().ok_or_else(missing)
}

#[cfg(test)]
mod tests;
