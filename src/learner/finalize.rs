//! From a finished rollout to what an update learns from, in the order that spec 04 §6 fixes. Everything here happens
//! exactly once per rollout.

use super::advantages::{Spread, spread};
use super::buffer::RolloutBuffer;
use super::diagnostics::RolloutDiagnostics;
use super::error::LearnerError;
use super::gae::gae;
use super::reward_norm::{RawReward, RewardNormalizer, scaled_reward};
use super::sequences::{SequenceBatch, sequences};
use super::value_norm::ValueNormalizer;
use crate::controller::ValueOutput;
use crate::scenario::{AdvantageNorm, LearnerConfig};

/// What one step of the rollout is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StepTargets {
    /// Scaled reward.
    pub reward: f64,
    pub td_error: f64,
    /// In reward units until step 7 standardises it.
    pub advantage: f64,
    pub ret: f64,
    /// Raw value when the step was taken, in the rollout's final reward unit.
    pub value: f64,
    /// The critic's target in normalised units.
    pub target: f64,
    /// `value` in normalised units.
    pub old_value: f64,
}

/// A rollout that is ready to be learnt from.
#[derive(Debug)]
pub(super) struct Rollout {
    pub batch: SequenceBatch,
    pub diagnostics: RolloutDiagnostics,
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
) -> Result<Result<Rollout, Unusable>, LearnerError> {
    // 1. Every segment has its end; the caller has cut those that go on.
    buffer.check_finished()?;
    if buffer.segments().all(|segment| !segment.valid) {
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
    let mut targets = estimate(buffer, scale, config);

    // 4. Guard G0.
    let steps = valid_steps(buffer);
    let pick = |field: fn(&StepTargets) -> f64| -> Vec<f64> {
        steps.iter().map(|&(env, step)| field(&targets[env][step])).collect()
    };
    let returns = pick(|target| target.ret);
    if returns.iter().any(|ret| !ret.is_finite()) {
        return Ok(Err(Unusable::NonFinite("returns")));
    }

    // 5. Diagnostics of the critic that acted, before anything moves.
    let free: Vec<f64> = free_steps(buffer)
        .map(|(env, step)| targets[env][step].advantage)
        .collect();
    let advantages = spread(&free, config.adv_std_floor);
    let mut diagnostics = RolloutDiagnostics::measure(buffer, &targets, &steps, config);
    diagnostics.set_advantages(&free, advantages);
    diagnostics.set_reward_scale(scale);

    // 6. Value normaliser: statistics, head, targets.
    if !values.observe(&returns, config.value_norm.momentum, head)? {
        return Ok(Err(Unusable::NonFinite("return statistics")));
    }
    let units = values.units();
    diagnostics.set_value_units(units);
    for &(env, step) in &steps {
        let target = &mut targets[env][step];
        target.target = units.normalise(target.ret);
        target.old_value = units.normalise(target.value);
    }

    // 7. Advantages are standardised over the steps that the actor learns from.
    if config.adv_norm == AdvantageNorm::Rollout {
        standardise(&mut targets, &steps, advantages, config.adv_std_floor);
    }
    let actor_skipped = free.len() < config.min_actor_steps as usize;

    // 8. Sequences.
    let sequences = sequences(buffer);
    let longest = sequences.iter().map(|sequence| sequence.len).max().unwrap_or(0);
    let batch = SequenceBatch::gather(buffer, &targets, &sequences, longest, !actor_skipped, config)?;
    Ok(Ok(Rollout {
        batch,
        diagnostics,
        actor_skipped,
    }))
}

/// Targets of all valid steps, by env and step.
fn estimate(buffer: &RolloutBuffer, scale: f64, config: &LearnerConfig) -> Vec<Vec<StepTargets>> {
    let rows = buffer.rows.iter();
    let mut targets: Vec<_> = rows.map(|row| vec![StepTargets::default(); row.steps.len()]).collect();
    for segment in buffer.segments().filter(|segment| segment.valid) {
        let records = &buffer.rows[segment.env].steps[segment.steps()];
        let rewards: Vec<f64> = records
            .iter()
            .map(|record| {
                let reward = RawReward {
                    value: record.reward_raw,
                    fixed: record.fixed_reward,
                };
                scaled_reward(reward, scale, &config.reward_norm)
            })
            .collect();
        let values: Vec<f64> = records.iter().map(|record| record.value.into()).collect();
        let after = segment.closed.map_or(0.0, |end| end.bootstrap().into());
        let found = gae(&rewards, &values, after, config.gamma, config.gae_lambda);
        for (index, step) in segment.steps().enumerate() {
            targets[segment.env][step] = StepTargets {
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

fn valid_steps(buffer: &RolloutBuffer) -> Vec<(usize, usize)> {
    let valid = buffer.segments().filter(|segment| segment.valid);
    valid
        .flat_map(|segment| segment.steps().map(|step| (segment.env, step)))
        .collect()
}

/// The steps that the actor learns from.
fn free_steps(buffer: &RolloutBuffer) -> impl Iterator<Item = (usize, usize)> {
    let valid = valid_steps(buffer).into_iter();
    valid.filter(|&(env, step)| buffer.rows[env].steps[step].is_free())
}

fn standardise(targets: &mut [Vec<StepTargets>], steps: &[(usize, usize)], spread: Spread, floor: f64) {
    for &(env, step) in steps {
        let target = &mut targets[env][step];
        target.advantage = spread.standardise(target.advantage, floor);
    }
}
