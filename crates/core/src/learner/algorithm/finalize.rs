//! From a finished rollout to what an update learns from. The order of the steps matters: every statistic moves exactly
//! once a rollout, and nothing is measured in a unit that changes later. Steps that another policy, or an earlier one, has
//! played are first seen as the present policy sees them.

use tch::Tensor;

use super::advantages::{
    LearnerState, StepTargets, ValueUnits, standardise, step_targets, subtract_mean_of_others, weigh,
};
use super::buffer::RolloutBuffer;
use super::sequences::{SequenceBatch, longest, sequences};
use super::steps::{LearnerError, SegmentEnd, StepRecord};
use crate::actions::{HEADS, Head};
use crate::nn::Linear;
use crate::policy::{RecurrentState, TrainablePolicy};
use crate::scenario::{AdvantageBaseline, Algorithm, CloneConfig, LearnerConfig};
use crate::telemetry::{Num, OffPolicy, RolloutData, statistics};
use crate::torch::{HostSyncCounter, NoGrad, catch, read_f32};

/// Fewest steps with a choice from which the policy is trained; the critic always is.
const LEAST_ACTOR_STEPS: usize = 8;

/// A rollout that is ready to be learnt from.
#[derive(Debug)]
pub(super) struct PreparedRollout {
    pub batch: SequenceBatch,
    pub data: RolloutData,
    /// By head: whether it had something to learn.
    pub learnable: [bool; HEADS],
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
    state: &mut LearnerState,
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

    // What the other envs got in the same step takes no part in the critic's targets.
    let is_free = |&&(env, step): &&(usize, usize)| buffer.rows[env].steps[step].is_free();
    let free_steps: Vec<(usize, usize)> = steps.iter().filter(is_free).copied().collect();
    if config.advantage_baseline == AdvantageBaseline::LeaveOneOut {
        subtract_mean_of_others(buffer, &mut targets, &free_steps);
    }

    // 5. Metrics of the critic that acted, before anything moves.
    let free = free_steps.iter();
    let free: Vec<f64> = free.map(|&(env, step)| targets[env][step].advantage).collect();
    let mut data = rollout_data(&targets, &steps, &free_steps);
    let has_others = config.is_offline() || config.kept_rollouts().is_some();
    if has_others && config.algorithm.needs_behaviour() {
        data.off_policy = Some(off_policy(buffer));
    }

    // 6. Value normaliser: statistics, head, targets.
    if !state.values.observe(&returns, head)? {
        return Ok(Err(Unusable::NonFinite("return statistics")));
    }
    let units = state.values.units();
    for &(env, step) in &steps {
        targets[env][step].normalise(units);
    }

    // 7. Advantages are standardised over the steps that the actor learns from.
    standardise(&mut targets, &steps, &free);
    if let Algorithm::Clone(CloneConfig { beta }) = config.algorithm {
        weigh(&mut targets, &steps, beta);
    }
    // With too few of them only the critic learns.
    let actor_learns = free.len() >= LEAST_ACTOR_STEPS;

    // 8. Sequences.
    let segments = sequences(buffer);
    let batch = SequenceBatch::gather(buffer, &targets, &segments, longest(&segments), actor_learns, config)?;
    Ok(Ok(PreparedRollout {
        batch,
        data,
        learnable: learnable(buffer),
    }))
}

/// Moves the statistics of rewards; where their unit changes with that, so does everything that is measured in it. Returns
/// what rewards are divided by, `None` if the statistics are not finite.
fn scale_rewards(
    buffer: &mut RolloutBuffer,
    state: &mut LearnerState,
    head: &Linear,
) -> Result<Option<f64>, LearnerError> {
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

/// How far the steps that the actor learns from are from the policy before the update.
fn off_policy(buffer: &RolloutBuffer) -> OffPolicy {
    let free = buffer.valid_records().filter(|record| record.is_free());
    let ratios = free.map(|record| record.log_ratio().exp());
    let (count, sum, squares) = ratios.fold((0.0, 0.0, 0.0), |(count, sum, squares), ratio| {
        (count + 1.0, sum + ratio, squares + ratio * ratio)
    });
    OffPolicy {
        behaviour_ratio_mean: Num(sum / count),
        effective_share: Num(sum * sum / (count * squares)),
        stale_segments: buffer.segments().filter(|segment| !segment.valid).count() as u64,
    }
}

/// By head: whether it mattered in a step that the actor learns from, and had a choice.
fn learnable(buffer: &RolloutBuffer) -> [bool; HEADS] {
    Head::ALL.map(|head| {
        let is_learnt = |record: &StepRecord| record.is_causal(head) && record.choosable[head as usize];
        buffer
            .valid_records()
            .any(|record| record.is_free() && is_learnt(record))
    })
}

fn deviation(values: &[f64]) -> f64 {
    statistics::mean_and_std(values).unwrap_or_default().1
}

/// `1 − Var(R − V)/max(Var R, floor)`.
fn explained_variance(returns: &[f64], values: &[f64]) -> f64 {
    let errors: Vec<f64> = returns.iter().zip(values).map(|(ret, value)| ret - value).collect();
    1.0 - deviation(&errors).powi(2) / deviation(returns).powi(2).max(LOW_VARIANCE)
}

/// Mean of the ratios' magnitudes, in nats, from which on a segment says nothing about the present policy.
const STALE: f64 = 2.0;

impl RolloutBuffer {
    /// Mean over the steps with a choice of how unlikely the policy finds it, in nats; `None` if there are none.
    pub fn negative_log_likelihood(&self) -> Option<f64> {
        let free = self.valid_records().filter(|record| record.is_free());
        let choices = free.map(|record| {
            let causal = Head::ALL.iter().filter(|&&head| record.is_causal(head));
            -causal
                .map(|&head| f64::from(record.log_probs[head as usize]))
                .sum::<f64>()
        });
        statistics::mean_and_std(&choices.collect::<Vec<_>>()).map(|(mean, _)| mean)
    }

    /// Leaves out the segments that the present policy is by far less, or more, likely to play than the one that did.
    pub fn leave_out_stale(&mut self) {
        for row in &mut self.rows {
            for segment in &mut row.segments {
                let steps = &row.steps[segment.steps()];
                let total: f64 = steps.iter().map(|record| record.log_ratio().abs()).sum();
                segment.valid &= total <= STALE * steps.len() as f64;
            }
        }
    }

    /// Puts the policy's log-probabilities of the stored choices, and its raw values, in the place of those that were stored.
    /// `behind` gives the value behind each segment, `[segments]`, f32, in the units of `units`, from the state in which it
    /// leaves the policy; truncated segments are credited with it.
    ///
    /// # Errors
    /// A stored choice that its mask forbids, a device error.
    pub fn reevaluate(
        &mut self,
        policy: &dyn TrainablePolicy,
        (config, units): (&LearnerConfig, ValueUnits),
        reads: &HostSyncCounter,
        behind: impl FnOnce(&RecurrentState) -> Result<Tensor, LearnerError>,
    ) -> Result<(), LearnerError> {
        let segments = sequences(self);
        let longest = longest(&segments);
        if longest == 0 {
            return Ok(());
        }
        let rows = self.rows.iter();
        let targets: Vec<_> = rows.map(|row| vec![StepTargets::default(); row.steps.len()]).collect();
        let (outputs, behind) = {
            let _no_grad = NoGrad::new();
            let batch = SequenceBatch::gather(self, &targets, &segments, longest, true, config)?;
            let evaluation = catch(|| policy.evaluate(&batch.input()))??;
            let outputs = catch(|| Tensor::cat(&[&evaluation.log_probs, &evaluation.value.unsqueeze(-1)], -1))?;
            let behind = behind(&evaluation.final_state)?;
            (read_f32(&outputs, reads)?, read_f32(&behind, reads)?)
        };
        let raw = |value: f32| units.raw(value.into()) as f32;
        for (segment, outputs) in segments.iter().zip(outputs.chunks(longest * (HEADS + 1))) {
            let records = self.rows[segment.env].steps[segment.steps()].iter_mut();
            for (record, output) in records.zip(outputs.chunks(HEADS + 1)) {
                record.log_probs.copy_from_slice(&output[..HEADS]);
                record.value = raw(output[HEADS]);
            }
        }
        let segments = self.rows.iter_mut().flat_map(|row| &mut row.segments);
        for (segment, value) in segments.filter(|segment| segment.valid).zip(behind) {
            if let Some(SegmentEnd::Truncated { bootstrap }) = &mut segment.closed {
                *bootstrap = raw(value);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
