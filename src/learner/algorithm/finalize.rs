//! From a finished rollout to what an update learns from. The order of the steps matters: every statistic moves exactly
//! once a rollout, and nothing is measured in a unit that changes later.

use super::buffer::RolloutBuffer;
use super::error::LearnerError;
use super::reward_norm::RewardNormalizer;
use super::rollout_metrics::RolloutMetrics;
use super::sequences::{SequenceBatch, sequences};
use super::targets::{StepTargets, standardised, step_targets};
use super::value_norm::ValueNormalizer;
use crate::controller::ValueOutput;
use crate::scenario::{AdvantageNorm, LearnerConfig};
use crate::telemetry::{Num, statistics};

/// A rollout that is ready to be learnt from.
#[derive(Debug)]
pub(super) struct PreparedRollout {
    pub batch: SequenceBatch,
    pub metrics: RolloutMetrics,
    /// Too few free steps: only the critic learns.
    pub actor_skipped: bool,
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
    head: &ValueOutput,
    config: &LearnerConfig,
) -> Result<Result<PreparedRollout, Unusable>, LearnerError> {
    // 1. Every segment has its end.
    buffer.check_finished()?;
    let steps: Vec<(usize, usize)> = buffer.valid_steps().collect();
    if steps.is_empty() {
        return Ok(Err(Unusable::Empty));
    }

    // 2. Reward normaliser: statistics, then one unit for everything that is measured in rewards.
    let old_scale = rewards.scale(config.norm_min_count);
    if !rewards.observe(buffer, config.gamma, config.reward_norm.momentum) {
        return Ok(Err(Unusable::NonFinite("reward statistics")));
    }
    let scale = rewards.scale(config.norm_min_count);
    if scale != old_scale {
        buffer.rescale_values(old_scale / scale);
        values.rescale_units(old_scale / scale, head)?;
    }

    // 3. Generalised advantage estimation, cut at every segment end.
    let mut targets = step_targets(buffer, scale, config);

    // 4. Gate G0.
    let returns: Vec<f64> = steps.iter().map(|&(env, step)| targets[env][step].ret).collect();
    if returns.iter().any(|ret| !ret.is_finite()) {
        return Ok(Err(Unusable::NonFinite("returns")));
    }

    // 5. Metrics of the critic that acted, before anything moves.
    let free: Vec<f64> = steps
        .iter()
        .filter(|&&(env, step)| buffer.rows[env].steps[step].is_free())
        .map(|&(env, step)| targets[env][step].advantage)
        .collect();
    let mut metrics = RolloutMetrics::measure(buffer, &targets, &free, config);
    metrics.returns.reward_scale = Some(Num(scale));

    // 6. Value normaliser: statistics, head, targets.
    if !values.observe(&returns, config.value_norm.momentum, head)? {
        return Ok(Err(Unusable::NonFinite("return statistics")));
    }
    let units = values.units();
    metrics.critic.value_target_mean = Some(Num(units.mean));
    metrics.critic.value_target_scale = Some(Num(units.deviation));
    for &(env, step) in &steps {
        let target = &mut targets[env][step];
        target.target = units.normalise(target.ret);
        target.old_value = units.normalise(target.value);
    }

    // 7. Advantages are standardised over the steps that the actor learns from.
    if config.adv_norm == AdvantageNorm::Rollout {
        let (mean, deviation) = statistics::mean_and_std(&free).unwrap_or_default();
        for &(env, step) in &steps {
            let StepTargets { advantage, .. } = &mut targets[env][step];
            *advantage = standardised(*advantage, mean, deviation, config.adv_std_floor);
        }
    }
    let actor_skipped = free.len() < config.min_actor_steps as usize;

    // 8. Sequences.
    let sequences = sequences(buffer);
    let longest = sequences.iter().map(|sequence| sequence.len).max().unwrap_or(0);
    let batch = SequenceBatch::gather(buffer, &targets, &sequences, longest, !actor_skipped, config)?;
    Ok(Ok(PreparedRollout {
        batch,
        metrics,
        actor_skipped,
    }))
}
