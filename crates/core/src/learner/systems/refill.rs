//! Filling the rollout with steps that the present policy has not just played: recordings, or earlier rollouts.

use std::time::{Duration, Instant};

use tch::Tensor;

use super::context::{LearnerContext, PolicyLearner};
use crate::actions::{HEADS, MaskSet};
use crate::controller::LearningPolicy;
use crate::growth::LifecycleOp;
use crate::health::Failure;
use crate::learner::algorithm::{
    BufferError, DecidedStep, Learner, LearnerError, RolloutBuffer, SegmentEnd, StepOutcome, StepTensors,
};
use crate::policy::{PolicyInput, RecurrentState};
use crate::scenario::EpisodeEnd;
use crate::torch::{TorchError, catch};
use crate::trajectory::{CHARGED, Segment, SegmentFinish};

/// A segment, with its rewards under the scenario's.
pub(super) type Rewarded = (Segment, Vec<f64>);

/// Puts segments in the place of what the rollout holds, each into its row; values and probabilities are those of the policy as it is.
/// Gives how long bringing them to the device took.
pub(super) fn refill<'a>(
    context: &mut LearnerContext,
    segments: impl Iterator<Item = (usize, &'a Rewarded)>,
) -> Result<Duration, Failure> {
    let began = Instant::now();
    let scenario = &context.experiment.scenario;
    let mut rows: Vec<Vec<&Rewarded>> = vec![Vec::new(); scenario.run.n_envs];
    segments.for_each(|(row, segment)| rows[row].push(segment));
    let Some(policy) = context.controller.0.get().learned() else {
        return Ok(Duration::ZERO);
    };
    let PolicyLearner { learner, buffer, .. } = &mut *context.policy;
    let (learner, buffer, config) = (learner.get(), buffer.get(), &scenario.learner);
    buffer.clear()?;
    for place in 0..rows.iter().map(Vec::len).max().unwrap_or(0) {
        let side_by_side = rows.iter().enumerate();
        let side_by_side = side_by_side.filter_map(|(row, segments)| Some((row, *segments.get(place)?)));
        write(
            (learner, buffer),
            policy,
            &side_by_side.collect::<Vec<_>>(),
            config.episode_end,
        )?;
    }
    let copied = began.elapsed();
    let segments: Vec<&Segment> = rows.iter().flatten().map(|(segment, _)| segment).collect();
    let behind = |state: &RecurrentState| value_behind(policy, &segments, state);
    buffer.reevaluate(policy, (config, learner.value_units()), &context.reads, behind)?;
    Ok(copied)
}

/// Writes segments side by side, each into its row.
fn write(
    (learner, buffer): (&Learner, &mut RolloutBuffer),
    policy: &dyn LearningPolicy,
    segments: &[(usize, &Rewarded)],
    episode_end: EpisodeEnd,
) -> Result<(), LearnerError> {
    let (width, shape) = (policy.schema().len(), buffer.shape().clone());
    let longest = segments
        .iter()
        .map(|(_, (segment, _))| segment.len())
        .max()
        .unwrap_or(0);
    for step in 0..longest {
        let live = segments.iter().filter(|(_, (segment, _))| step < segment.len());
        let live: Vec<(usize, &Segment, &[f64])> = live
            .map(|(row, (segment, rewards))| (*row, segment, rewards.as_slice()))
            .collect();
        let masks: Vec<MaskSet> = live
            .iter()
            .map(|(env, segment, _)| {
                let row = &segment.masks[step * shape.mask_width()..][..shape.mask_width()];
                let row: Vec<bool> = row.iter().map(|&valid| valid != 0).collect();
                MaskSet::of_row(shape.slots, shape.blueprints, &row).ok_or(BufferError::ShapeMismatch {
                    field: "masks",
                    expected: shape.mask_width().to_string(),
                    found: format!("those of row {env}"),
                })
            })
            .collect::<Result<_, _>>()?;
        let decided: Vec<DecidedStep> = live
            .iter()
            .zip(&masks)
            .map(|((env, segment, _), masks)| DecidedStep {
                env: *env,
                round: segment.round[0] as u32,
                step: segment.step[step] as u32,
                indices: std::array::from_fn(|head| segment.actions[step * HEADS + head] as u8),
                // Of who acted; those of a rule are not known, nor asked for.
                log_probs: std::array::from_fn(|head| {
                    let log_prob = segment.log_probs[step * HEADS + head];
                    if log_prob.is_nan() { 0.0 } else { log_prob }
                }),
                // Of the present policy, once all are written.
                value: 0.0,
                masks,
            })
            .collect();
        let raw: Vec<&[f32]> = live
            .iter()
            .map(|(_, segment, _)| &segment.observation[step * width..][..width])
            .collect();
        let blueprints: Vec<i64> = live
            .iter()
            .flat_map(|(_, segment, _)| &segment.blueprints[step * shape.slots..][..shape.slots])
            .map(|&index| index.into())
            .collect();
        let (normalised, raw) = uploaded(buffer, policy, &raw)?;
        let tensors = StepTensors {
            observations: &normalised,
            raw_observations: &raw,
            blueprints: &catch(|| {
                Tensor::from_slice(&blueprints)
                    .view([live.len() as i64, -1])
                    .to_device(buffer.device())
            })?,
            state: &catch(|| policy.net().zero_state(live.len() as i64))?,
        };
        buffer.begin_steps(&decided, &tensors)?;
        let outcomes = live.iter().map(|(env, segment, rewards)| StepOutcome {
            env: *env,
            reward: rewards[step] as f32,
            effective_op: LifecycleOp::from_code(segment.effective_op[step] as usize).unwrap_or(LifecycleOp::Wait),
        });
        buffer.complete_steps(&outcomes.collect::<Vec<_>>())?;
    }
    let mut ends = Vec::new();
    for (row, (segment, rewards)) in segments {
        let is_charged = segment.flags.last().is_some_and(|flags| flags & CHARGED != 0);
        let is_over = segment.finish == [SegmentFinish::RolledBack as i64] || episode_end == EpisodeEnd::Terminal;
        match rewards.last() {
            Some(&charged) if is_charged => {
                buffer.rollback(*row, learner.clamp_penalty(charged), u32::MAX)?;
            }
            _ if is_over => ends.push((*row, SegmentEnd::Terminal)),
            _ => ends.push((*row, SegmentEnd::Truncated { bootstrap: 0.0 })),
        }
    }
    Ok(buffer.end_segments(&ends)?)
}

/// Rows of observations on the buffer's device, as the policy sees them and as they were measured.
fn uploaded(
    buffer: &RolloutBuffer,
    policy: &dyn LearningPolicy,
    raw: &[&[f32]],
) -> Result<(Tensor, Tensor), TorchError> {
    let (mut normalised, mut row) = (Vec::new(), Vec::new());
    for raw in raw {
        policy.normaliser().normalise(raw, &mut row);
        normalised.extend_from_slice(&row);
    }
    let upload = |values: &[f32]| {
        Tensor::from_slice(values)
            .view([raw.len() as i64, -1])
            .to_device(buffer.device())
    };
    catch(|| (upload(&normalised), upload(&raw.concat())))
}

/// The policy's value of what was seen behind each segment, in normalised units; 0 where nothing was.
fn value_behind(
    policy: &dyn LearningPolicy,
    segments: &[&Segment],
    state: &RecurrentState,
) -> Result<Tensor, LearnerError> {
    let (mut observations, mut row) = (Vec::new(), Vec::new());
    for segment in segments {
        let raw: Vec<f32> = segment
            .final_observation
            .iter()
            .map(|value| if value.is_nan() { 0.0 } else { *value })
            .collect();
        policy.normaliser().normalise(&raw, &mut row);
        observations.extend_from_slice(&row);
    }
    let blueprints = segments.iter().flat_map(|segment| &segment.final_blueprints);
    let blueprints: Vec<i64> = blueprints.map(|&index| index.into()).collect();
    let device = policy.net().params().device();
    let rows = segments.len() as i64;
    let input = catch(|| PolicyInput {
        observations: Tensor::from_slice(&observations).view([rows, -1]).to_device(device),
        blueprints: Tensor::from_slice(&blueprints).view([rows, -1]).to_device(device),
    })?;
    let output = policy.net().step(&input, state).map_err(TorchError::from)?;
    Ok(output.value)
}
