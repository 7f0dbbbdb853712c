//! What each step of a rollout is worth: scaled reward, advantage, and what the critic should have said.

use super::buffer::RolloutBuffer;
use super::gae::gae;
use super::reward_norm::scaled_reward;
use super::value_norm::ValueUnits;
use crate::scenario::LearnerConfig;

/// Least deviation by which advantages are divided, in units of scaled reward: it keeps the noise of rollouts whose steps are
/// nearly alike from being blown up.
pub(super) const LEAST_DEVIATION: f64 = 0.1;
/// Added to what advantages are divided by.
const ADVANTAGE_EPSILON: f64 = 1e-8;

/// What one step of the rollout is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StepTargets {
    /// Scaled reward.
    pub reward: f64,
    pub td_error: f64,
    /// In reward units until it is standardised.
    pub advantage: f64,
    pub ret: f64,
    /// Raw value when the step was taken, in the rollout's final reward unit.
    pub value: f64,
    /// The critic's target in normalised units.
    pub target: f64,
}

impl StepTargets {
    /// Fills in what the critic is held to in the units that it is going to speak in.
    pub fn normalise(&mut self, units: ValueUnits) {
        self.target = units.normalise(self.ret);
    }
}

/// Targets of all valid steps, by env and step, with rewards divided by `scale`.
pub(super) fn step_targets(buffer: &RolloutBuffer, scale: f64, config: &LearnerConfig) -> Vec<Vec<StepTargets>> {
    let rows = buffer.rows.iter();
    let mut targets: Vec<_> = rows.map(|row| vec![StepTargets::default(); row.steps.len()]).collect();
    for segment in buffer.valid_segments() {
        let records = &buffer.rows[segment.env].steps[segment.steps()];
        let rewards: Vec<f64> = records
            .iter()
            .map(|record| {
                let scale = if record.fixed_reward { 1.0 } else { scale };
                scaled_reward(record.reward_raw, scale)
            })
            .collect();
        let values: Vec<f64> = records.iter().map(|record| record.value.into()).collect();
        let after = segment.closed.map_or(0.0, |end| end.bootstrap().into());
        let found = gae(&rewards, &values, after, config.gamma, config.gae_lambda);
        for (index, target) in targets[segment.env][segment.steps()].iter_mut().enumerate() {
            *target = StepTargets {
                reward: rewards[index],
                td_error: found.td_errors[index],
                advantage: found.advantages[index],
                ret: found.returns[index],
                value: values[index],
                ..StepTargets::default()
            };
        }
    }
    targets
}

/// `(a − mean) / (max(deviation, least) + 1e-8)`.
pub(super) fn standardised(advantage: f64, mean: f64, deviation: f64) -> f64 {
    (advantage - mean) / (deviation.max(LEAST_DEVIATION) + ADVANTAGE_EPSILON)
}

#[cfg(test)]
mod tests;
