//! From a finished rollout to what an update learns from. The order of the steps matters: every statistic moves exactly
//! once a rollout, and nothing is measured in a unit that changes later.

use super::advantages::{standardise, step_targets, subtract_mean_of_others, weigh};
use super::buffer::RolloutBuffer;
use super::error::LearnerError;
use super::metrics::{learnable_shares, off_policy, rollout_data};
use super::normalise::{RewardNormalizer, ValueNormalizer};
use super::sequences::{SequenceBatch, sequences};
use crate::actions::HEADS;
use crate::nn::Linear;
use crate::scenario::{AdvantageBaseline, Algorithm, CloneConfig, LearnerConfig};
use crate::telemetry::RolloutData;

/// A rollout that is ready to be learnt from.
#[derive(Debug)]
pub(super) struct PreparedRollout {
    pub batch: SequenceBatch,
    pub data: RolloutData,
    /// By head: share of valid steps in which it mattered, the actor learns, and there was a choice.
    pub learnable: [f64; HEADS],
}

/// Why a rollout cannot be learnt from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// No valid step.
    Empty,
    /// Returns, advantages or statistics are not finite (gate G0).
    NonFinite(&'static str),
}

/// Normalises rewards, estimates advantages, moves the critic's units, and gathers sequences.
pub(super) fn finalize(
    buffer: &mut RolloutBuffer,
    rewards: &mut RewardNormalizer,
    values: &mut ValueNormalizer,
    head: &Linear,
    config: &LearnerConfig,
) -> Result<Result<PreparedRollout, Unusable>, LearnerError> {
    // 1. Every segment has its end.
    buffer.check_finished()?;
    let steps: Vec<(usize, usize)> = buffer.valid_steps().collect();
    if steps.is_empty() {
        return Ok(Err(Unusable::Empty));
    }

    // 2. Reward normaliser: statistics, then one unit for everything that is measured in rewards.
    let Some(scale) = scale_rewards(buffer, rewards, values, head)? else {
        return Ok(Err(Unusable::NonFinite("reward statistics")));
    };

    // 3. Generalised advantage estimation, cut at every segment end.
    let mut targets = step_targets(buffer, scale, config);

    // 4. Gate G0.
    let returns: Vec<f64> = steps.iter().map(|&(env, step)| targets[env][step].ret).collect();
    if returns.iter().any(|ret| !ret.is_finite()) {
        return Ok(Err(Unusable::NonFinite("returns")));
    }

    // What the other envs got in the same step takes no part in the critic's targets.
    let is_free = |&&(env, step): &&(usize, usize)| buffer.rows[env].steps[step].is_free();
    let free_steps: Vec<(usize, usize)> = steps.iter().filter(is_free).copied().collect();
    if config.advantage_baseline == AdvantageBaseline::LeaveOneOut {
        subtract_mean_of_others(buffer, &mut targets, &free_steps);
    }

    // 5. Metrics of the critic that acted, before anything moves.
    let free = free_steps.iter();
    let free: Vec<f64> = free.map(|&(env, step)| targets[env][step].advantage).collect();
    let mut data = rollout_data(buffer, &targets, &free, scale);
    let has_others = config.is_offline() || config.kept_rollouts().is_some();
    if has_others && config.algorithm.needs_behaviour() {
        data.off_policy = Some(off_policy(buffer));
    }

    // 6. Value normaliser: statistics, head, targets.
    if !values.observe(&returns, config.value_norm.momentum, head)? {
        return Ok(Err(Unusable::NonFinite("return statistics")));
    }
    let units = values.units();
    for &(env, step) in &steps {
        targets[env][step].normalise(units);
    }

    // 7. Advantages are standardised over the steps that the actor learns from.
    standardise(&mut targets, &steps, &free);
    if let Algorithm::Clone(CloneConfig { beta }) = config.algorithm {
        weigh(&mut targets, &steps, beta);
    }
    // With too few of them only the critic learns.
    let actor_learns = free.len() >= config.min_actor_steps as usize;

    // 8. Sequences.
    let sequences = sequences(buffer);
    let longest = sequences.iter().map(|sequence| sequence.len).max().unwrap_or(0);
    let batch = SequenceBatch::gather(buffer, &targets, &sequences, longest, actor_learns, config)?;
    Ok(Ok(PreparedRollout {
        batch,
        data,
        learnable: learnable_shares(buffer),
    }))
}

/// Moves the statistics of rewards; where their unit changes with that, so does everything that is measured in it. Returns
/// what rewards are divided by, `None` if the statistics are not finite.
fn scale_rewards(
    buffer: &mut RolloutBuffer,
    rewards: &mut RewardNormalizer,
    values: &mut ValueNormalizer,
    head: &Linear,
) -> Result<Option<f64>, LearnerError> {
    let old_scale = rewards.scale();
    if !rewards.observe(buffer) {
        return Ok(None);
    }
    let scale = rewards.scale();
    if scale != old_scale {
        buffer.rescale_values(old_scale / scale);
        values.rescale_units(old_scale / scale, head)?;
    }
    Ok(Some(scale))
}
