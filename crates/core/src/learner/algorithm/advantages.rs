//! The worth of each step of a rollout, and its units: scaled reward, advantage, and the critic's target.
//!
//! Both units move once per rollout, when it is finished, so that all of it has one. Rewards are divided, never shifted: a mean that
//! is subtracted would pay for living longer or shorter. The critic's raw values are in units of scaled reward, the network
//! puts out normalised ones (PopArt of van Hasselt et al. 2016). Advantages are estimated segment by segment (generalised
//! advantage estimation, Schulman et al. 2016; V-trace, Espeholt et al. 2018).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::buffer::RolloutBuffer;
use super::steps::StepRecord;
use crate::controller::{MIN_COUNT, RunningMoments};
use crate::nn::Linear;
use crate::scenario::{AdvantageBaseline, Algorithm, CloneConfig, LearnerConfig};
use crate::telemetry::{Num, RolloutData, statistics};
use crate::torch::{TorchError, catch, copy_into};

/// Scales of reward below this are taken for it.
const MIN_SCALE: f64 = 1e-3;
/// Clamp of scaled rewards and of penalties.
pub(super) const CLIP: f64 = 10.0;
/// Largest weight of the past per rollout. For rewards all history counts alike, because a unit of reward should hardly move.
const REWARD_MOMENTUM: f64 = 1.0;
/// The same for returns, which grow as the policy learns.
const RETURN_MOMENTUM: f64 = 0.5;

/// Running statistics of rewards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardNormalizer {
    /// Moments of all rewards so far.
    pub moments: RunningMoments,
}

impl RewardNormalizer {
    /// The root mean square of the rewards, by which they are divided. 1 until enough of them are known.
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
        let rewards = buffer.valid_records().filter(|record| !record.fixed_reward);
        let rewards: Vec<f64> = rewards.map(|record| record.reward_raw.into()).collect();
        self.moments.merge(rewards.iter().copied(), REWARD_MOMENTUM)
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
    /// Moments of all returns so far.
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
    /// The units in force. They change only at the end of a rollout.
    pub(super) fn units(&self) -> ValueUnits {
        if !self.moments.is_ready(MIN_COUNT) {
            return ValueUnits::RAW;
        }
        ValueUnits {
            mean: self.moments.mean,
            deviation: self.moments.var.sqrt().max(MIN_DEVIATION),
        }
    }

    /// Merges the returns of a rollout and rewrites the value head so that its raw outputs stay unchanged. Returns
    /// false, and changes nothing, if the returns' mean or variance is not finite.
    ///
    /// # Errors
    /// A device error.
    pub(super) fn observe(&mut self, returns: &[f64], head: &Linear) -> Result<bool, TorchError> {
        let before = self.units();
        let is_finite = self.moments.merge(returns.iter().copied(), RETURN_MOMENTUM);
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

/// The progress of learning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Successful updates: what all schedules run on.
    pub updates: u64,
    /// Failed updates since the last successful one.
    pub consecutive_failures: u32,
}

/// The plain part of a learner's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnerState {
    /// Updates so far.
    pub counters: Counters,
    /// Statistics of rewards.
    pub rewards: RewardNormalizer,
    /// Statistics of returns.
    pub values: ValueNormalizer,
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

/// Smallest deviation by which advantages are divided, in units of scaled reward: it keeps the noise of rollouts whose steps are
/// nearly alike from being blown up.
pub(super) const LEAST_DEVIATION: f64 = 0.1;
/// Added to what advantages are divided by.
const ADVANTAGE_EPSILON: f64 = 1e-8;

/// The worth of one step of the rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StepTargets {
    /// In reward units until it is standardised.
    pub advantage: f64,
    pub ret: f64,
    /// Raw value when the step was taken, in the rollout's final reward unit.
    pub value: f64,
    /// The critic's target in normalised units.
    pub target: f64,
}

/// The reason why a rollout cannot be learnt from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// No valid step.
    Empty,
    /// Returns, advantages or statistics are not finite (gate G0).
    NonFinite(&'static str),
}

/// The worth of a rollout's steps, and measurements from before anything moved.
pub(super) struct Worth {
    /// By env and step.
    pub targets: Vec<Vec<StepTargets>>,
    pub data: RolloutData,
}

/// Scales rewards, estimates advantages and moves the critic's units: steps 2 to 7 of `finalize`, in its order.
///
/// # Errors
/// A device error.
pub(super) fn appraise(
    buffer: &mut RolloutBuffer,
    state: &mut LearnerState,
    head: &Linear,
    config: &LearnerConfig,
) -> Result<Result<Worth, Unusable>, TorchError> {
    let steps: Vec<(usize, usize)> = buffer.valid_steps().collect();
    if steps.is_empty() {
        return Ok(Err(Unusable::Empty));
    }

    // 2. Reward normaliser: statistics, then one unit for everything that is measured in rewards.
    let Some(scale) = scale_rewards(buffer, state, head)? else {
        return Ok(Err(Unusable::NonFinite("reward statistics")));
    };

    // 3. Generalised advantage estimation, cut at every segment end.
    let mut targets = step_targets(buffer, scale, config);

    // 4. Gate G0.
    let returns: Vec<f64> = steps.iter().map(|&(env, step)| targets[env][step].ret).collect();
    if returns.iter().any(|ret| !ret.is_finite()) {
        return Ok(Err(Unusable::NonFinite("returns")));
    }

    // The results of the other envs in the same step take no part in the critic's targets.
    let is_free = |&&(env, step): &&(usize, usize)| buffer.rows[env].steps[step].is_free();
    let free_steps: Vec<(usize, usize)> = steps.iter().filter(is_free).copied().collect();
    if config.advantage_baseline == AdvantageBaseline::LeaveOneOut {
        subtract_mean_of_others(buffer, &mut targets, &free_steps);
    }

    // 5. Metrics of the critic that acted, before anything moves.
    let free = free_steps.iter();
    let free: Vec<f64> = free.map(|&(env, step)| targets[env][step].advantage).collect();
    let data = rollout_data(&targets, &steps, &free_steps);

    // 6. Value normaliser: statistics, head, targets.
    if !state.values.observe(&returns, head)? {
        return Ok(Err(Unusable::NonFinite("return statistics")));
    }
    let units = state.values.units();

    // 7. Advantages are standardised over the steps that the actor learns from.
    let (mean, deviation) = statistics::mean_and_std(&free).unwrap_or_default();
    for &(env, step) in &steps {
        let worth = &mut targets[env][step];
        worth.target = units.normalise(worth.ret);
        worth.advantage = standardised(worth.advantage, mean, deviation);
    }
    if let Algorithm::Clone(CloneConfig { beta }) = config.algorithm {
        weigh(&mut targets, &steps, beta);
    }
    Ok(Ok(Worth { targets, data }))
}

/// Moves the statistics of rewards; where their unit changes with that, so does everything that is measured in it. Returns
/// what rewards are divided by, `None` if the statistics are not finite.
fn scale_rewards(
    buffer: &mut RolloutBuffer,
    state: &mut LearnerState,
    head: &Linear,
) -> Result<Option<f64>, TorchError> {
    let old_scale = state.rewards.scale();
    if !state.rewards.observe(buffer) {
        return Ok(None);
    }
    let scale = state.rewards.scale();
    if scale != old_scale {
        buffer.rescale_values(old_scale / scale);
        state.values.rescale_units(old_scale / scale, head)?;
    }
    Ok(Some(scale))
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
                advantage: found.advantages[index],
                ret: found.returns[index],
                value: values[index],
                ..StepTargets::default()
            };
        }
    }
    targets
}

/// The worth of a segment's steps, in units of scaled reward.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Advantages {
    pub advantages: Vec<f64>,
    pub returns: Vec<f64>,
}

/// Advantages of one segment from its rewards, its raw values, and how much likelier than the policy that acted the current one
/// is to do each step; in f64. `after` is the value of the state after its last step, 0 without one. The recursion never
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
/// step of the same round, if there is one. The results of the others don't depend on the env's own choice, so
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

/// Largest weight of a step that is cloned.
const MOST_WEIGHT: f64 = 20.0;

/// Turns standardised advantages into the weights with which steps are cloned: e^(A/β) (advantage-weighted regression, Peng et
/// al. 2019), or 1.
fn weigh(targets: &mut [Vec<StepTargets>], steps: &[(usize, usize)], beta: Option<f64>) {
    for &(env, step) in steps {
        let StepTargets { advantage, .. } = &mut targets[env][step];
        *advantage = beta.map_or(1.0, |beta| (*advantage / beta).exp().min(MOST_WEIGHT));
    }
}

/// `(a − mean) / (max(deviation, least) + 1e-8)`.
fn standardised(advantage: f64, mean: f64, deviation: f64) -> f64 {
    (advantage - mean) / (deviation.max(LEAST_DEVIATION) + ADVANTAGE_EPSILON)
}

/// Variance of returns below which little is left to explain, in units of scaled reward.
const LOW_VARIANCE: f64 = 1.0;

/// Measures a rollout from the values of the policy that acted, over its steps and over those that the actor learns from.
fn rollout_data(targets: &[Vec<StepTargets>], steps: &[(usize, usize)], free: &[(usize, usize)]) -> RolloutData {
    let column = |steps: &[(usize, usize)], field: fn(&StepTargets) -> f64| -> Vec<f64> {
        steps.iter().map(|&(env, step)| field(&targets[env][step])).collect()
    };
    let returns = column(steps, |target| target.ret);
    let explained = |steps| {
        let (returns, values) = (column(steps, |target| target.ret), column(steps, |target| target.value));
        Num(explained_variance(&returns, &values))
    };
    let (return_mean, return_std) = statistics::mean_and_std(&returns).unwrap_or_default();
    RolloutData {
        steps_valid: steps.len() as u64,
        steps_actor: free.len() as u64,
        explained_variance: explained(steps),
        explained_variance_free: (!free.is_empty()).then(|| explained(free)),
        ev_low_return_variance: return_std.powi(2) < LOW_VARIANCE,
        return_mean: Num(return_mean),
        return_std: Num(return_std),
        off_policy: None,
    }
}

/// `1 − Var(R − V)/max(Var R, floor)`.
fn explained_variance(returns: &[f64], values: &[f64]) -> f64 {
    let variance = |of: &[f64]| statistics::mean_and_std(of).unwrap_or_default().1.powi(2);
    let errors: Vec<f64> = returns.iter().zip(values).map(|(ret, value)| ret - value).collect();
    1.0 - variance(&errors) / variance(returns).max(LOW_VARIANCE)
}

#[cfg(test)]
mod tests;
