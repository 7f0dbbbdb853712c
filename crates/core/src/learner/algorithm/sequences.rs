//! Segments as padded sequences: the batch that an update learns from. Steps that another policy, or an earlier one, has
//! played are first seen as the current policy sees them.
//!
//! A sequence is a segment, so no state is reset inside one, and none enters it. Padding reads a separate cell whose masks allow
//! exactly one action, so that a policy evaluates it to log-probability 0; nothing stale or undefined is ever gathered.

use std::ops::Range;

use tch::kind::Element;
use tch::{Device, Tensor};

use super::advantages::{StepTargets, ValueUnits};
use super::buffer::RolloutBuffer;
use super::steps::{LearnerError, RowSegment, SegmentEnd, StepRecord};
use crate::actions::{HEADS, Head, MaskSet, PolicyError, command_of};
use crate::policy::{RecurrentState, SequenceInput, TrainablePolicy};
use crate::scenario::{Algorithm, LearnerConfig};
use crate::telemetry::statistics;
use crate::torch::{HostSyncCounter, NoGrad, TorchError, catch, read_f32};

/// The segments that are learnt from.
pub(super) fn sequences(buffer: &RolloutBuffer) -> Vec<RowSegment> {
    buffer.valid_segments().cloned().collect()
}

/// Steps of the longest.
pub(super) fn longest(segments: &[RowSegment]) -> usize {
    segments.iter().map(RowSegment::len).max().unwrap_or(0)
}

/// `parts` ranges over `0..count` whose sizes differ by at most 1. Fewer if there aren't enough.
pub(super) fn split(count: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = parts.clamp(1, count.max(1));
    (0..parts).map(move |part| part * count / parts..(part + 1) * count / parts)
}

/// Sequences `[B, T]` with all that the losses read. Masks are bool. Steps that they exclude hold finite placeholders.
#[derive(Debug)]
pub(super) struct SequenceBatch {
    pub observations: Tensor,
    pub blueprints: Tensor,
    pub actions: Tensor,
    pub masks: Tensor,
    pub valid: Tensor,
    /// Steps of each sequence, on the host.
    pub lengths: Vec<i64>,
    /// Log-probabilities of the policy before the update: `[B, T, 8]`.
    pub old_log_probs: Tensor,
    /// Those of the policy that acted, if the surrogate isn't held to the one before the update: `[B, T, 8]`.
    pub behaviour: Option<Tensor>,
    /// Those of a policy that this one is held to: `[B, T, 8]`.
    pub teacher: Option<Tensor>,
    /// `[B, T]`: the actor learns from the step.
    pub actor: Tensor,
    /// `[B, T, 8]`: and the head mattered to what was executed.
    pub causal: Tensor,
    /// `[B, T, 8]`: and the head could have mattered.
    pub available: Tensor,
    /// `[B, T]`, standardised; of steps that are cloned their weights.
    pub advantages: Tensor,
    /// `[B, T]`, normalised units.
    pub targets: Tensor,
    /// `[B, T]`.
    pub value_weights: Tensor,
}

/// The places of a batch's steps, row by row: env and step in its row, or `None` for padding.
struct Places {
    places: Vec<Option<(usize, usize)>>,
    rows: i64,
    steps: i64,
    device: Device,
}

impl Places {
    fn new(segments: &[RowSegment], steps: usize, device: Device) -> Self {
        let of = |segment: &RowSegment, offset| (segment.env, segment.start + offset);
        let places = segments
            .iter()
            .flat_map(|segment| (0..steps).map(move |at| (at < segment.len()).then(|| of(segment, at))));
        Self {
            places: places.collect(),
            rows: segments.len() as i64,
            steps: steps as i64,
            device,
        }
    }

    /// `[B, T]`.
    fn column<T: Element>(&self, value: impl Fn(Option<(usize, usize)>) -> T) -> Tensor {
        let values: Vec<T> = self.places.iter().map(|&place| value(place)).collect();
        self.upload(&values, &[self.rows, self.steps])
    }

    /// `[B, T, width]`.
    fn columns<T: Element, I: IntoIterator<Item = T>>(
        &self,
        width: usize,
        values: impl Fn(Option<(usize, usize)>) -> I,
    ) -> Tensor {
        let values: Vec<T> = self.places.iter().flat_map(|&place| values(place)).collect();
        self.upload(&values, &[self.rows, self.steps, width as i64])
    }

    /// `[B, T, width]` of a field that has one row per cell.
    fn gathered(&self, buffer: &RolloutBuffer, field: &Tensor) -> Tensor {
        let cell = |place: Option<(usize, usize)>| {
            place.map_or(buffer.padding_cell(), |(env, step)| buffer.cell(env, step)) as i64
        };
        let cells: Vec<i64> = self.places.iter().map(|&place| cell(place)).collect();
        let found = field.index_select(0, &Tensor::from_slice(&cells).to_device(field.device()));
        let size = [self.rows, self.steps, field.size()[1]];
        found.reshape(size).to_device(self.device)
    }

    fn upload<T: Element>(&self, values: &[T], size: &[i64]) -> Tensor {
        Tensor::from_slice(values).reshape(size).to_device(self.device)
    }
}

/// The weight of a step, or of padding, in the critic's learning.
fn value_weight(record: Option<&StepRecord>, config: &LearnerConfig) -> f32 {
    match record {
        None => 0.0,
        Some(record) if record.is_free() => 1.0,
        Some(_) => config.forced_value_weight as f32,
    }
}

/// # Errors
/// `MaskedActionEvaluated` if steps that are learnt from chose what their masks forbid, by a head that matters to their op.
fn check_actions(buffer: &RolloutBuffer) -> Result<(), LearnerError> {
    let (shape, width) = (buffer.shape(), buffer.shape().mask_width());
    let masks = buffer.cells.masks.f_flatten(0, -1).and_then(Vec::<bool>::try_from);
    let masks = masks.map_err(TorchError::from)?;
    let is_masked = |&(env, step): &(usize, usize)| {
        let row = &masks[buffer.cell(env, step) * width..][..width];
        let masks = MaskSet::of_row(shape.slots, shape.blueprints, row);
        let chosen = masks.zip(command_of(&buffer.rows[env].steps[step].indices).ok());
        chosen.is_none_or(|(masks, command)| !masks.allows(&command))
    };
    match buffer.valid_steps().filter(is_masked).count() as u64 {
        0 => Ok(()),
        count => Err(PolicyError::MaskedActionEvaluated { count }.into()),
    }
}

impl SequenceBatch {
    /// Gathers `segments` padded to `steps`; `targets` by env and step. Without `learns_actor` only the critic has
    /// something to learn. Fails too on a stored choice that its masks forbid.
    pub fn gather(
        buffer: &RolloutBuffer,
        targets: &[Vec<StepTargets>],
        segments: &[RowSegment],
        steps: usize,
        learns_actor: bool,
        config: &LearnerConfig,
    ) -> Result<Self, LearnerError> {
        check_actions(buffer)?;
        let record = |(env, step): (usize, usize)| &buffer.rows[env].steps[step];
        let learns = |place| learns_actor && record(place).is_free();
        let target = |place: Option<(usize, usize)>, field: fn(&StepTargets) -> f64| {
            place.map_or(0.0, |(env, step)| field(&targets[env][step]) as f32)
        };
        let of_heads = |place: Option<(usize, usize)>, is: &dyn Fn(&StepRecord, Head) -> bool| {
            Head::ALL.map(|head| place.is_some_and(|place| learns(place) && is(record(place), head)))
        };
        Ok(catch(|| {
            let places = Places::new(segments, steps, buffer.device());
            Self {
                observations: places.gathered(buffer, &buffer.cells.observations),
                blueprints: places.gathered(buffer, &buffer.cells.blueprints),
                masks: places.gathered(buffer, &buffer.cells.masks),
                actions: places.columns(HEADS, |place| match place {
                    Some(place) => record(place).indices.map(i64::from),
                    None => Head::ALL.map(|head| head.placeholder() as i64),
                }),
                valid: places.column(|place| place.is_some()),
                lengths: segments.iter().map(|segment| segment.len() as i64).collect(),
                old_log_probs: places.columns(HEADS, |place| {
                    place.map_or([0.0; HEADS], |place| record(place).log_probs)
                }),
                behaviour: (config.is_offline() && config.algorithm == Algorithm::Ppo).then(|| {
                    places.columns(HEADS, |place| {
                        place.map_or([0.0; HEADS], |place| record(place).behaviour)
                    })
                }),
                teacher: None,
                actor: places.column(|place| place.is_some_and(learns)),
                causal: places.columns(HEADS, |place| of_heads(place, &StepRecord::is_causal)),
                available: places.columns(HEADS, |place| {
                    of_heads(place, &|record, head| record.available[head as usize])
                }),
                advantages: places.column(|place| target(place, |target| target.advantage)),
                targets: places.column(|place| target(place, |target| target.target)),
                value_weights: places.column(|place| value_weight(place.map(record), config)),
            }
        })?)
    }

    /// Observations of all segments of a buffer as they were measured, in the form of a batch's: `[B, T, D]`.
    pub fn raw_observations(&self, buffer: &RolloutBuffer) -> Result<Tensor, TorchError> {
        let size = self.observations.size();
        let places = Places::new(&sequences(buffer), size[1] as usize, buffer.device());
        catch(|| places.gathered(buffer, &buffer.cells.raw_observations))
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.valid.size()[0] as usize
    }

    pub fn device(&self) -> Device {
        self.valid.device()
    }

    /// The sequences `order[part]`. `on_device` holds all of `order`. Panics on a device error.
    pub fn select(&self, order: &[i64], on_device: &Tensor, part: Range<usize>) -> Self {
        let index = on_device.narrow(0, part.start as i64, part.len() as i64);
        let lengths = order[part].iter().map(|&sequence| self.lengths[sequence as usize]);
        let pick = |tensor: &Tensor| tensor.index_select(0, &index);
        Self {
            observations: pick(&self.observations),
            blueprints: pick(&self.blueprints),
            actions: pick(&self.actions),
            masks: pick(&self.masks),
            valid: pick(&self.valid),
            lengths: lengths.collect(),
            old_log_probs: pick(&self.old_log_probs),
            behaviour: self.behaviour.as_ref().map(pick),
            teacher: self.teacher.as_ref().map(pick),
            actor: pick(&self.actor),
            causal: pick(&self.causal),
            available: pick(&self.available),
            advantages: pick(&self.advantages),
            targets: pick(&self.targets),
            value_weights: pick(&self.value_weights),
        }
    }

    /// Returns whether no step of a sequence is padding.
    pub fn is_full(&self) -> bool {
        self.lengths.iter().all(|&length| length == self.valid.size()[1])
    }

    /// Overwrites all tensors with those of a batch of the same size, in place. Panics on a device error.
    pub fn copy_from(&mut self, other: &Self) {
        let pairs = self.tensors().into_iter().zip(other.tensors());
        for (mut to, from) in pairs {
            to.copy_(&from);
        }
        self.lengths.clone_from(&other.lengths);
    }

    fn tensors(&self) -> Vec<Tensor> {
        let always = [
            &self.observations,
            &self.blueprints,
            &self.actions,
            &self.masks,
            &self.valid,
            &self.old_log_probs,
            &self.actor,
            &self.causal,
            &self.available,
            &self.advantages,
            &self.targets,
            &self.value_weights,
        ];
        let all = always.into_iter().chain(&self.behaviour).chain(&self.teacher);
        all.map(Tensor::shallow_clone).collect()
    }

    /// The policy's input.
    pub fn input(&self) -> SequenceInput<'_> {
        SequenceInput {
            observations: &self.observations,
            blueprints: &self.blueprints,
            actions: &self.actions,
            masks: &self.masks,
            valid: &self.valid,
            lengths: &self.lengths,
        }
    }
}

/// Mean of the ratios' magnitudes, in nats, from which on a segment says nothing about the current policy.
const STALE: f64 = 2.0;

impl RolloutBuffer {
    /// Mean over the steps with a choice of how unlikely the policy finds it, in nats. `None` if there are none.
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

    /// Leaves out the segments that the current policy is by far less, or more, likely to play than the one that did.
    pub fn leave_out_stale(&mut self) {
        for row in &mut self.rows {
            for segment in &mut row.segments {
                let steps = &row.steps[segment.steps()];
                let total: f64 = steps.iter().map(|record| record.log_ratio().abs()).sum();
                segment.valid &= total <= STALE * steps.len() as f64;
            }
        }
    }

    /// Replaces the stored log-probabilities of the stored choices, and the raw values, by those of the policy.
    /// `after` gives the value after each segment, `[segments]`, f32, in the units of `units`, from the state in which it
    /// leaves the policy. Truncated segments are credited with it.
    ///
    /// # Errors
    /// A stored choice that its mask forbids, a device error.
    pub fn reevaluate(
        &mut self,
        policy: &dyn TrainablePolicy,
        (config, units): (&LearnerConfig, ValueUnits),
        reads: &HostSyncCounter,
        after: impl FnOnce(&RecurrentState) -> Result<Tensor, LearnerError>,
    ) -> Result<(), LearnerError> {
        let segments = sequences(self);
        let longest = longest(&segments);
        if longest == 0 {
            return Ok(());
        }
        let rows = self.rows.iter();
        let targets: Vec<_> = rows.map(|row| vec![StepTargets::default(); row.steps.len()]).collect();
        let (outputs, after) = {
            let _no_grad = NoGrad::new();
            let batch = SequenceBatch::gather(self, &targets, &segments, longest, true, config)?;
            let evaluation = catch(|| policy.evaluate(&batch.input()))??;
            let outputs = catch(|| Tensor::cat(&[&evaluation.log_probs, &evaluation.value.unsqueeze(-1)], -1))?;
            let after = after(&evaluation.final_state)?;
            (read_f32(&outputs, reads)?, read_f32(&after, reads)?)
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
        for (segment, value) in segments.filter(|segment| segment.valid).zip(after) {
            if let Some(SegmentEnd::Truncated { bootstrap }) = &mut segment.closed {
                *bootstrap = raw(value);
            }
        }
        Ok(())
    }
}
