//! Steps that the present policy has not just played: the last rollouts of a run's envs, and filling the rollout with them or
//! with recordings.

use std::time::{Duration, Instant};

use safetensors::{SafeTensorError, SafeTensors};
use tch::Tensor;

use super::context::{LearnerContext, PolicyLearner};
use super::transitions::begin_steps;
use crate::actions::{HEADS, MaskSet};
use crate::controller::{LearningPolicy, Observation};
use crate::health::Failure;
use crate::learner::algorithm::{
    BufferError, BufferShape, DecidedStep, Learner, LearnerError, RolloutBuffer, SegmentEnd, StepOutcome,
};
use crate::policy::{PolicyInput, RecurrentState};
use crate::scenario::EpisodeEnd;
use crate::torch::{TorchError, catch};
use crate::trajectory::{CHARGED, Segment, SegmentFinish, Sizes};

/// What envs did in the last rounds.
pub struct KeptRollouts {
    segments: Vec<Segment>,
    sizes: Sizes,
    /// Of how many rounds they are.
    rounds: u32,
}

impl KeptRollouts {
    /// None yet, of at most that number of rounds.
    pub(super) const fn new(sizes: Sizes, rounds: u32) -> Self {
        Self {
            segments: Vec::new(),
            sizes,
            rounds,
        }
    }

    /// All of them, each with the env that played it.
    pub(super) fn by_env(&self) -> impl Iterator<Item = (usize, &Segment)> {
        self.segments.iter().map(|kept| (kept.env[0] as usize, kept))
    }

    /// Takes in what envs did in this round, and lets go of what is too long ago.
    pub(super) fn take_in(&mut self, round: u32, played: impl Iterator<Item = Segment>) {
        let whole = played.filter(|segment| segment.finish != [SegmentFinish::Failed as i64]);
        self.segments.extend(whole);
        let is_recent = |segment: &Segment| segment.round[0] + i64::from(self.rounds) > round.into();
        self.segments.retain(is_recent);
    }

    /// What was seen since `round`, a row a step.
    pub(super) fn seen_since(&self, round: u32) -> Vec<f32> {
        let new = self.segments.iter().filter(|kept| kept.round[0] >= round.into());
        new.flat_map(|kept| kept.observation.iter().copied()).collect()
    }

    /// As a file of tensors.
    ///
    /// # Errors
    /// More than the format can describe.
    pub fn encode(&self) -> Result<Vec<u8>, SafeTensorError> {
        Segment::encode(&self.segments, self.sizes)
    }

    /// Takes back what [`encode`](Self::encode) has written.
    ///
    /// # Errors
    /// The tensor that is not as it should be, and why.
    pub fn decode(&mut self, file: &[u8]) -> Result<(), String> {
        let file = SafeTensors::deserialize(file).map_err(|error| error.to_string())?;
        let segments = Segment::decode(&file, self.sizes).map_err(|(tensor, why)| format!("`{tensor}` {why}"))?;
        self.segments.clear();
        self.take_in(0, segments.into_iter());
        Ok(())
    }
}

/// Puts segments in the place of what the rollout holds, each into its row; values and probabilities are those of the policy as it is.
/// Gives how long bringing them to the device took.
pub(super) fn refill<'a>(
    context: &mut LearnerContext,
    segments: impl Iterator<Item = (usize, &'a Segment)>,
) -> Result<Duration, Failure> {
    let began = Instant::now();
    let scenario = &context.experiment.scenario;
    let mut rows: Vec<Vec<&Segment>> = vec![Vec::new(); scenario.run.n_envs];
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
        let side_by_side: Vec<_> = side_by_side.collect();
        write(learner, buffer, policy, &side_by_side, config.episode_end)?;
    }
    let copied = began.elapsed();
    let segments = rows.concat();
    let behind = |state: &RecurrentState| value_behind(policy, &segments, state);
    buffer.reevaluate(policy, (config, learner.value_units()), &context.reads, behind)?;
    Ok(copied)
}

/// Writes segments side by side, each into its row.
fn write(
    learner: &Learner,
    buffer: &mut RolloutBuffer,
    policy: &dyn LearningPolicy,
    segments: &[(usize, &Segment)],
    episode_end: EpisodeEnd,
) -> Result<(), LearnerError> {
    let (width, slots) = (policy.schema().len(), buffer.shape().slots);
    let longest = segments.iter().map(|(_, segment)| segment.len()).max();
    for step in 0..longest.unwrap_or(0) {
        let live = || segments.iter().filter(move |(_, segment)| step < segment.len());
        let choices = live().map(|(_, segment)| segment.choice(step));
        let choices = choices.collect::<Result<Vec<_>, _>>()?;
        let masks = live().map(|(row, segment)| masks_of(*row, segment, step, buffer.shape()));
        let masks = masks.collect::<Result<Vec<_>, _>>()?;
        let decided = live().zip(&choices).zip(&masks);
        let decided = decided.map(|(((row, segment), &(indices, _)), masks)| DecidedStep {
            env: *row,
            round: segment.round[0] as u32,
            step: segment.step[step] as u32,
            indices,
            // Of who acted; those of a rule are not known, nor asked for.
            log_probs: std::array::from_fn(|head| {
                let log_prob = segment.log_probs[step * HEADS + head];
                if log_prob.is_nan() { 0.0 } else { log_prob }
            }),
            // Of the present policy, once all are written.
            value: 0.0,
            masks,
        });
        let seen = live().map(|(_, segment)| {
            let blueprints = &segment.blueprints[step * slots..][..slots];
            observation(policy, &segment.observation[step * width..][..width], blueprints)
        });
        let (decided, seen): (Vec<_>, Vec<_>) = (decided.collect(), seen.collect());
        begin_steps(buffer, &decided, &seen.iter().collect::<Vec<_>>())?;
        let outcomes = live().zip(&choices);
        let outcomes = outcomes.map(|((row, segment), &(_, effective_op))| StepOutcome {
            env: *row,
            reward: segment.reward[step] as f32,
            effective_op,
        });
        buffer.complete_steps(&outcomes.collect::<Vec<_>>())?;
    }
    let mut ends = Vec::new();
    for (row, segment) in segments {
        let is_charged = segment.flags.last().is_some_and(|flags| flags & CHARGED != 0);
        let is_over = segment.finish == [SegmentFinish::RolledBack as i64] || episode_end == EpisodeEnd::Terminal;
        match segment.reward.last() {
            Some(&charged) if is_charged => {
                buffer.rollback(*row, learner.clamp_penalty(charged), u32::MAX)?;
            }
            _ if is_over => ends.push((*row, SegmentEnd::Terminal)),
            _ => ends.push((*row, SegmentEnd::Truncated { bootstrap: 0.0 })),
        }
    }
    Ok(buffer.end_segments(&ends)?)
}

fn masks_of(row: usize, segment: &Segment, step: usize, shape: &BufferShape) -> Result<MaskSet, BufferError> {
    let width = shape.mask_width();
    let valid = segment.masks[step * width..][..width].iter().map(|&valid| valid != 0);
    let masks = MaskSet::of_row(shape.slots, shape.blueprints, &valid.collect::<Vec<_>>());
    masks.ok_or_else(|| BufferError::ShapeMismatch {
        field: "masks",
        expected: width.to_string(),
        found: format!("those of row {row}"),
    })
}

/// What was seen, as the policy sees it.
fn observation(policy: &dyn LearningPolicy, raw: &[f32], blueprints: &[i32]) -> Observation {
    let mut seen = Observation {
        raw: raw.to_vec(),
        blueprints: blueprints.iter().map(|&index| index.into()).collect(),
        ..Observation::default()
    };
    policy.normaliser().normalise(raw, &mut seen.normalised);
    seen
}

/// The policy's value of what was seen behind each segment, in normalised units; 0 where nothing was.
fn value_behind(
    policy: &dyn LearningPolicy,
    segments: &[&Segment],
    state: &RecurrentState,
) -> Result<Tensor, LearnerError> {
    let known = |value: &f32| if value.is_nan() { 0.0 } else { *value };
    let seen = segments.iter().map(|segment| {
        let raw: Vec<f32> = segment.final_observation.iter().map(known).collect();
        observation(policy, &raw, &segment.final_blueprints)
    });
    let seen: Vec<Observation> = seen.collect();
    let observations: Vec<f32> = seen.iter().flat_map(|seen| seen.normalised.iter().copied()).collect();
    let blueprints: Vec<i64> = seen.iter().flat_map(|seen| seen.blueprints.iter().copied()).collect();
    let device = policy.net().params().device();
    let rows = segments.len() as i64;
    let input = catch(|| PolicyInput {
        observations: Tensor::from_slice(&observations).view([rows, -1]).to_device(device),
        blueprints: Tensor::from_slice(&blueprints).view([rows, -1]).to_device(device),
    })?;
    let output = policy.net().step(&input, state).map_err(TorchError::from)?;
    Ok(output.value)
}
