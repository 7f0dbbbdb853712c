//! Segments as padded sequences: the batch that an update learns from (spec 04 §7.1).
//!
//! No sequence spans two segments, so no state is reset inside one. Padding reads a cell of its own whose masks allow
//! exactly one action, so that a policy evaluates it to log-probability 0; nothing stale or undefined is ever gathered.

use tch::{Device, Tensor};

use super::buffer::RolloutBuffer;
use super::finalize::StepTargets;
use crate::controller::{HEADS, Head, RecurrentState, SequenceInput, relevant};
use crate::growth::LifecycleOp;
use crate::scenario::LearnerConfig;
use crate::torch::{TorchError, catch};

/// A segment, or a chunk of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    pub env: usize,
    pub start: usize,
    pub len: usize,
    /// Stored recurrent state that enters it.
    pub state: usize,
}

/// The valid segments, cut into chunks.
pub(super) fn sequences(buffer: &RolloutBuffer) -> Vec<Sequence> {
    let length = buffer.shape().chunk_length;
    let mut found = Vec::new();
    for segment in buffer.segments().filter(|segment| segment.valid) {
        for (chunk, start) in segment.steps().step_by(length).enumerate() {
            let stored = match chunk {
                0 => segment.initial_state,
                _ => segment.chunk_states.get(chunk - 1).copied(),
            };
            found.push(Sequence {
                env: segment.env,
                start,
                len: length.min(segment.end - start),
                state: stored.unwrap_or(buffer.zero_state()),
            });
        }
    }
    found
}

/// Sequences `[B, T]` with all that the losses read. Masks are bool; steps that they exclude hold finite placeholders.
#[derive(Debug)]
pub(super) struct SequenceBatch {
    pub observations: Tensor,
    pub blueprints: Tensor,
    pub actions: Tensor,
    pub masks: Tensor,
    pub valid: Tensor,
    pub initial: RecurrentState,
    /// `[B, T, 8]`.
    pub old_log_probs: Tensor,
    /// `[B, T]`: the actor learns from the step.
    pub actor: Tensor,
    /// `[B, T, 8]`: and the head mattered to what was executed.
    pub causal: Tensor,
    /// `[B, T, 8]`: and the head could have mattered.
    pub available: Tensor,
    /// `[B, T]`, standardised unless that happens per minibatch.
    pub advantages: Tensor,
    /// `[B, T]`, normalised units.
    pub targets: Tensor,
    /// `[B, T]`, normalised units.
    pub old_values: Tensor,
    /// `[B, T]`.
    pub value_weights: Tensor,
    /// `[B, T, S]`, clamped percentage points.
    pub contributions: Tensor,
    /// `[B, T, S]`.
    pub contribution_mask: Tensor,
}

/// Host-side fields of a batch, step by step.
struct Columns {
    cells: Vec<i64>,
    actions: Vec<i64>,
    masks: Vec<bool>,
    valid: Vec<bool>,
    old_log_probs: Vec<f32>,
    actor: Vec<bool>,
    causal: Vec<bool>,
    available: Vec<bool>,
    advantages: Vec<f32>,
    targets: Vec<f32>,
    old_values: Vec<f32>,
    value_weights: Vec<f32>,
    contributions: Vec<f32>,
    contribution_mask: Vec<bool>,
}

impl SequenceBatch {
    /// Gathers `sequences` padded to `steps`; `targets` by env and step. Without `learns_actor` only the critic has
    /// something to learn.
    pub fn gather(
        buffer: &RolloutBuffer,
        targets: &[Vec<StepTargets>],
        sequences: &[Sequence],
        steps: usize,
        learns_actor: bool,
        config: &LearnerConfig,
    ) -> Result<Self, TorchError> {
        let mut columns = Columns::with_capacity(sequences.len() * steps);
        for sequence in sequences {
            for offset in 0..steps {
                if offset < sequence.len {
                    let step = sequence.start + offset;
                    columns.push_step(
                        buffer,
                        sequence.env,
                        step,
                        &targets[sequence.env][step],
                        learns_actor,
                        config,
                    );
                } else {
                    columns.push_padding(buffer);
                }
            }
        }
        let states: Vec<i64> = sequences.iter().map(|sequence| sequence.state as i64).collect();
        catch(|| columns.into_batch(buffer, &states, steps))
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.valid.size()[0] as usize
    }

    pub fn device(&self) -> Device {
        self.valid.device()
    }

    /// Some of the sequences, by index. Panics on a device error.
    pub fn select(&self, sequences: &[i64]) -> Self {
        let index = Tensor::from_slice(sequences).to_device(self.device());
        let pick = |tensor: &Tensor| tensor.index_select(0, &index);
        Self {
            observations: pick(&self.observations),
            blueprints: pick(&self.blueprints),
            actions: pick(&self.actions),
            masks: pick(&self.masks),
            valid: pick(&self.valid),
            initial: RecurrentState(self.initial.0.iter().map(|t| t.index_select(1, &index)).collect()),
            old_log_probs: pick(&self.old_log_probs),
            actor: pick(&self.actor),
            causal: pick(&self.causal),
            available: pick(&self.available),
            advantages: pick(&self.advantages),
            targets: pick(&self.targets),
            old_values: pick(&self.old_values),
            value_weights: pick(&self.value_weights),
            contributions: pick(&self.contributions),
            contribution_mask: pick(&self.contribution_mask),
        }
    }

    /// What the policy evaluates.
    pub fn input(&self) -> SequenceInput<'_> {
        SequenceInput {
            observations: &self.observations,
            blueprints: &self.blueprints,
            actions: &self.actions,
            masks: &self.masks,
            valid: &self.valid,
            initial: &self.initial,
        }
    }
}

impl Columns {
    fn with_capacity(n: usize) -> Self {
        Self {
            cells: Vec::with_capacity(n),
            actions: Vec::with_capacity(n * HEADS),
            masks: Vec::new(),
            valid: Vec::with_capacity(n),
            old_log_probs: Vec::with_capacity(n * HEADS),
            actor: Vec::with_capacity(n),
            causal: Vec::with_capacity(n * HEADS),
            available: Vec::with_capacity(n * HEADS),
            advantages: Vec::with_capacity(n),
            targets: Vec::with_capacity(n),
            old_values: Vec::with_capacity(n),
            value_weights: Vec::with_capacity(n),
            contributions: Vec::new(),
            contribution_mask: Vec::new(),
        }
    }

    fn push_cell(&mut self, buffer: &RolloutBuffer, cell: usize) {
        let width = buffer.shape().mask_width();
        self.cells.push(cell as i64);
        self.masks
            .extend_from_slice(&buffer.masks[cell * width..(cell + 1) * width]);
    }

    fn push_step(
        &mut self,
        buffer: &RolloutBuffer,
        env: usize,
        step: usize,
        targets: &StepTargets,
        learns_actor: bool,
        config: &LearnerConfig,
    ) {
        let cell = buffer.cell(env, step);
        let record = &buffer.rows[env].steps[step];
        let is_actor = learns_actor && record.is_free();
        self.push_cell(buffer, cell);
        self.valid.push(true);
        self.actor.push(is_actor);
        for head in Head::ALL {
            self.actions.push(record.indices[head as usize].into());
            self.old_log_probs.push(record.log_probs[head as usize]);
            self.causal.push(is_actor && relevant(record.effective_op, head));
            self.available.push(is_actor && record.available[head as usize]);
        }
        self.advantages.push(targets.advantage as f32);
        self.targets.push(targets.target as f32);
        self.old_values.push(targets.old_value as f32);
        self.value_weights.push(if record.is_free() {
            1.0
        } else {
            config.forced_value_weight as f32
        });
        let slots = buffer.shape().slots;
        let clip = config.aux_clip as f32;
        for &contribution in &buffer.contributions[cell * slots..(cell + 1) * slots] {
            let is_known = !contribution.is_nan();
            self.contribution_mask.push(is_known);
            self.contributions
                .push(if is_known { contribution.clamp(-clip, clip) } else { 0.0 });
        }
    }

    fn push_padding(&mut self, buffer: &RolloutBuffer) {
        self.push_cell(buffer, buffer.padding_cell());
        self.valid.push(false);
        self.actor.push(false);
        self.actions.extend(Head::ALL.map(|head| head.placeholder(0) as i64));
        self.old_log_probs.extend([0.0; HEADS]);
        self.causal.extend([false; HEADS]);
        self.available.extend([false; HEADS]);
        for column in [
            &mut self.advantages,
            &mut self.targets,
            &mut self.old_values,
            &mut self.value_weights,
        ] {
            column.push(0.0);
        }
        let slots = buffer.shape().slots;
        self.contributions.extend(std::iter::repeat_n(0.0, slots));
        self.contribution_mask.extend(std::iter::repeat_n(false, slots));
    }

    fn into_batch(self, buffer: &RolloutBuffer, states: &[i64], steps: usize) -> SequenceBatch {
        let device = buffer.device();
        let (rows, steps) = (states.len() as i64, steps as i64);
        let flags = |values: &[bool], width: &[i64]| {
            let size = [&[rows, steps], width].concat();
            Tensor::from_slice(values).reshape(size).to_device(device)
        };
        let floats = |values: &[f32], width: &[i64]| {
            let size = [&[rows, steps], width].concat();
            Tensor::from_slice(values).reshape(size).to_device(device)
        };
        let cells = Tensor::from_slice(&self.cells).to_device(device);
        let gathered = |field: &Tensor| field.index_select(0, &cells).reshape([rows, steps, field.size()[1]]);
        let states = Tensor::from_slice(states).to_device(device);
        let entering = |stored: &Tensor| stored.index_select(0, &states).transpose(0, 1).contiguous();
        let heads = [HEADS as i64];
        let slots = [buffer.shape().slots as i64];
        SequenceBatch {
            observations: gathered(&buffer.cells.observations),
            blueprints: gathered(&buffer.cells.blueprints),
            actions: Tensor::from_slice(&self.actions)
                .reshape([rows, steps, HEADS as i64])
                .to_device(device),
            masks: flags(&self.masks, &[buffer.shape().mask_width() as i64]),
            valid: flags(&self.valid, &[]),
            initial: RecurrentState(buffer.cells.states.iter().map(entering).collect()),
            old_log_probs: floats(&self.old_log_probs, &heads),
            actor: flags(&self.actor, &[]),
            causal: flags(&self.causal, &heads),
            available: flags(&self.available, &heads),
            advantages: floats(&self.advantages, &[]),
            targets: floats(&self.targets, &[]),
            old_values: floats(&self.old_values, &[]),
            value_weights: floats(&self.value_weights, &[]),
            contributions: floats(&self.contributions, &slots),
            contribution_mask: flags(&self.contribution_mask, &slots),
        }
    }
}

/// How often each op was executed, in the order of the ops.
pub(super) fn op_counts(buffer: &RolloutBuffer) -> [u64; LifecycleOp::ALL.len()] {
    let mut counts = [0; LifecycleOp::ALL.len()];
    for segment in buffer.segments().filter(|segment| segment.valid) {
        for record in &buffer.rows[segment.env].steps[segment.steps()] {
            counts[record.effective_op.code()] += 1;
        }
    }
    counts
}
