//! What each step of a rollout is worth: scaled reward, advantage, and the critic's target. Advantages are estimated
//! segment by segment (generalised advantage estimation, Schulman et al. 2016; V-trace, Espeholt et al. 2018).

use std::collections::BTreeMap;

use super::buffer::RolloutBuffer;
use super::normalise::{ValueUnits, scaled_reward};
use super::steps::StepRecord;
use crate::scenario::{Algorithm, LearnerConfig};
use crate::telemetry::statistics;

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
        let likelier = |record: &StepRecord| match config.algorithm {
            Algorithm::Impala(_) => record.log_ratio().exp(),
            Algorithm::Ppo | Algorithm::Clone(_) => 1.0,
        };
        let ratios: Vec<f64> = records.iter().map(likelier).collect();
        let found = gae((&rewards, &values, &ratios), after, config.gamma, config.gae_lambda);
        for (index, target) in targets[segment.env][segment.steps()].iter_mut().enumerate() {
            *target = StepTargets {
                reward: rewards[index],
                advantage: found.advantages[index],
                ret: found.returns[index],
                value: values[index],
                ..StepTargets::default()
            };
        }
    }
    targets
}

/// What a segment's steps are worth, in units of scaled reward.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Advantages {
    pub advantages: Vec<f64>,
    pub returns: Vec<f64>,
}

/// Advantages of one segment from its rewards, its raw values, and how much likelier than the policy that acted the present one
/// is to do each step; in f64. `after` is the value of what follows its last step: 0 if nothing does. The recursion never
/// looks beyond the segment.
///
/// `A_t = min(1, ratio_t)·(δ_t + γλ·A_(t+1))`, where all ratios are 1 generalised advantages, else what V-trace adds to the values.
pub(super) fn gae(
    (rewards, values, ratios): (&[f64], &[f64], &[f64]),
    after: f64,
    gamma: f64,
    lambda: f64,
) -> Advantages {
    let steps = rewards.len();
    let mut result = Advantages {
        advantages: vec![0.0; steps],
        returns: vec![0.0; steps],
    };
    let (mut next_value, mut next_advantage) = (after, 0.0);
    for t in (0..steps).rev() {
        let error = rewards[t] + gamma * next_value - values[t];
        let advantage = ratios[t].min(1.0) * (error + gamma * lambda * next_advantage);
        result.advantages[t] = advantage;
        result.returns[t] = advantage + values[t];
        (next_value, next_advantage) = (values[t], advantage);
    }
    result
}

/// Subtracts from the advantage of every step of `free` the mean advantage of the other envs that had a choice in the same
/// step of the same round; nothing where there is none. What the others get does not depend on the env's own choice, so
/// the gradient keeps its expectation (Kool et al. 2019).
pub(super) fn subtract_mean_of_others(
    buffer: &RolloutBuffer,
    targets: &mut [Vec<StepTargets>],
    free: &[(usize, usize)],
) {
    let moment = |&(env, step): &(usize, usize)| {
        let record = &buffer.rows[env].steps[step];
        (record.round, record.step)
    };
    let mut sums: BTreeMap<(u32, u32), (f64, u32)> = BTreeMap::new();
    for place @ &(env, step) in free {
        let (sum, count) = sums.entry(moment(place)).or_default();
        *sum += targets[env][step].advantage;
        *count += 1;
    }
    for place @ &(env, step) in free {
        let (sum, count) = sums.get(&moment(place)).copied().unwrap_or_default();
        let own = &mut targets[env][step].advantage;
        if count > 1 {
            *own -= (sum - *own) / f64::from(count - 1);
        }
    }
}

/// Standardises the advantages of `steps` by mean and deviation of those that the actor learns from, `free`.
pub(super) fn standardise(targets: &mut [Vec<StepTargets>], steps: &[(usize, usize)], free: &[f64]) {
    let (mean, deviation) = statistics::mean_and_std(free).unwrap_or_default();
    for &(env, step) in steps {
        let StepTargets { advantage, .. } = &mut targets[env][step];
        *advantage = standardised(*advantage, mean, deviation);
    }
}

/// Largest weight of a step that is cloned.
const MOST_WEIGHT: f64 = 20.0;

/// Turns standardised advantages into the weights with which steps are cloned: e^(A/β) (advantage-weighted regression, Peng et
/// al. 2019), or 1.
pub(super) fn weigh(targets: &mut [Vec<StepTargets>], steps: &[(usize, usize)], beta: Option<f64>) {
    for &(env, step) in steps {
        let StepTargets { advantage, .. } = &mut targets[env][step];
        *advantage = beta.map_or(1.0, |beta| (*advantage / beta).exp().min(MOST_WEIGHT));
    }
}

/// `(a − mean) / (max(deviation, least) + 1e-8)`.
fn standardised(advantage: f64, mean: f64, deviation: f64) -> f64 {
    (advantage - mean) / (deviation.max(LEAST_DEVIATION) + ADVANTAGE_EPSILON)
}

#[cfg(test)]
mod tests;
