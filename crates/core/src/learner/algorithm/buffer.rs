//! The rollout buffer: what the envs did and observed between two updates.
//!
//! One row per env; rows fill independently. A step is written in two phases, and rollbacks edit what was written
//! (`writing`). What is computed on the device - observations, slot blueprints, recurrent states - stays there in
//! preallocated tensors, written with one indexed copy per field and step; what is computed on the host - actions, masks,
//! rewards - stays on the host and is copied once, with the sequences of the update.
//!
//! Recurrent states are stored only where a training sequence can start in the middle of a segment: at chunk boundaries.

use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::error::BufferError;
use super::steps::{Segment, StepRecord};
use crate::actions::{Head, MaskSet};
use crate::growth::LifecycleOp;
use crate::torch::catch;

/// Sizes of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferShape {
    /// Rows.
    pub envs: usize,
    /// Steps per row.
    pub steps: usize,
    /// Length of an observation.
    pub observation: usize,
    /// Slots of a host.
    pub slots: usize,
    /// Blueprints that a slot can be given.
    pub blueprints: usize,
    /// `[layers, width]` of each recurrent state tensor; empty for a policy without memory.
    pub state: Vec<[i64; 2]>,
    /// Longest training sequence.
    pub chunk_length: usize,
}

impl BufferShape {
    /// Elements of one step's masks.
    pub fn mask_width(&self) -> usize {
        MaskSet::row_width(self.slots, self.blueprints)
    }

    /// Recurrent states a row can hold, one a chunk boundary.
    pub(super) fn states_per_row(&self) -> usize {
        self.steps / self.chunk_length
    }
}

/// Per-step data of an env.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Row {
    pub steps: Vec<StepRecord>,
    /// The newest step waits for its outcome.
    pub is_pending: bool,
    pub segments: Vec<Segment>,
    /// Recurrent states stored for it.
    pub states: usize,
}

/// Tensors of all steps; the last cell of each belongs to no step and is what padding reads.
#[derive(Debug)]
pub(super) struct Cells {
    pub observations: Tensor,
    pub raw_observations: Tensor,
    pub blueprints: Tensor,
    /// Per state tensor `[cells, layers, width]`, the last one zero.
    pub states: Vec<Tensor>,
}

/// The steps of all envs since the last update.
#[derive(Debug)]
pub struct RolloutBuffer {
    pub(super) shape: BufferShape,
    pub(super) device: Device,
    pub(super) rows: Vec<Row>,
    pub(super) cells: Cells,
    /// `[cells × W]`, as [`MaskSet::write_row`] lays them out.
    pub(super) masks: Vec<bool>,
}

impl RolloutBuffer {
    /// Allocates everything on `device`, once.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(shape: BufferShape, device: Device) -> Result<Self, BufferError> {
        let chunk_length = shape.chunk_length.max(1);
        let shape = BufferShape { chunk_length, ..shape };
        let count = shape.envs * shape.steps;
        let states = shape.envs * shape.states_per_row();
        let cells = catch(|| {
            let zeros = |size: &[i64]| Tensor::zeros(size, (Kind::Float, device));
            let observations = [count as i64 + 1, shape.observation as i64];
            Cells {
                observations: zeros(&observations),
                raw_observations: zeros(&observations),
                blueprints: Tensor::full([count as i64 + 1, shape.slots as i64], -1, (Kind::Int64, device)),
                states: shape
                    .state
                    .iter()
                    .map(|&[layers, width]| zeros(&[states as i64 + 1, layers, width]))
                    .collect(),
            }
        })?;
        let mut masks = vec![false; (count + 1) * shape.mask_width()];
        write_padding_mask(&shape, &mut masks[count * shape.mask_width()..]);
        Ok(Self {
            rows: (0..shape.envs).map(|_| Row::default()).collect(),
            masks,
            cells,
            shape,
            device,
        })
    }

    /// Sizes.
    pub fn shape(&self) -> &BufferShape {
        &self.shape
    }

    /// Where its tensors lie.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Steps of an env's row, a pending one included.
    pub fn len(&self, env: usize) -> usize {
        self.rows.get(env).map_or(0, |row| row.steps.len())
    }

    /// Whether an env's newest segment waits for its end.
    pub fn has_open_segment(&self, env: usize) -> bool {
        let newest = self.rows.get(env).and_then(|row| row.segments.last());
        newest.is_some_and(Segment::is_open)
    }

    /// All segments, by env, then by step.
    pub(super) fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.rows.iter().flat_map(|row| &row.segments)
    }

    /// Those that are learnt from.
    pub(super) fn valid_segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments().filter(|segment| segment.valid)
    }

    /// The steps that are learnt from, as `(env, step)`.
    pub(super) fn valid_steps(&self) -> impl Iterator<Item = (usize, usize)> {
        self.valid_segments()
            .flat_map(|segment| segment.steps().map(|step| (segment.env, step)))
    }

    /// `f32 [steps, D]`: raw observations of all valid steps, for the observation normaliser's commit.
    ///
    /// # Errors
    /// A device error.
    pub fn valid_raw_observations(&self) -> Result<Tensor, BufferError> {
        let cells: Vec<i64> = self
            .valid_steps()
            .map(|(env, step)| self.cell(env, step) as i64)
            .collect();
        let index = Tensor::from_slice(&cells);
        Ok(catch(|| {
            self.cells
                .raw_observations
                .index_select(0, &index.to_device(self.device))
        })?)
    }

    /// Every step has its outcome and every segment its end.
    ///
    /// # Errors
    /// `PendingStep` or `OpenSegment`.
    pub(super) fn check_finished(&self) -> Result<(), BufferError> {
        for (env, row) in self.rows.iter().enumerate() {
            row.check_outcome(env)?;
            if let Some(open) = row.segments.last().filter(|segment| segment.is_open()) {
                return Err(BufferError::OpenSegment { env, start: open.start });
            }
        }
        Ok(())
    }

    /// Empties the rows for the next rollout.
    ///
    /// # Errors
    /// `PendingStep`.
    pub fn clear(&mut self) -> Result<(), BufferError> {
        for (env, row) in self.rows.iter().enumerate() {
            row.check_outcome(env)?;
        }
        for row in &mut self.rows {
            row.steps.clear();
            row.segments.clear();
            row.states = 0;
        }
        Ok(())
    }

    /// Index of a step in every per-cell field.
    pub(super) fn cell(&self, env: usize, step: usize) -> usize {
        env * self.shape.steps + step
    }

    /// The cell that padding reads.
    pub(super) fn padding_cell(&self) -> usize {
        self.shape.envs * self.shape.steps
    }

    /// The stored state that is zero for ever.
    pub(super) fn zero_state(&self) -> usize {
        self.shape.envs * self.shape.states_per_row()
    }

    pub(super) fn row(&self, env: usize) -> Result<&Row, BufferError> {
        let envs = self.rows.len();
        self.rows.get(env).ok_or(BufferError::UnknownEnv { env, envs })
    }

    pub(super) fn row_mut(&mut self, env: usize) -> Result<&mut Row, BufferError> {
        let envs = self.rows.len();
        self.rows.get_mut(env).ok_or(BufferError::UnknownEnv { env, envs })
    }

    /// Values and bootstraps in units that are `factor` times as many.
    pub(super) fn rescale_values(&mut self, factor: f64) {
        for row in &mut self.rows {
            for record in &mut row.steps {
                record.value = (f64::from(record.value) * factor) as f32;
            }
            for segment in &mut row.segments {
                if let Some(end) = &mut segment.closed {
                    end.rescale(factor);
                }
            }
        }
    }
}

impl Row {
    /// The newest segment, if steps can still be added to it.
    pub fn open_segment(&mut self) -> Option<&mut Segment> {
        self.segments.last_mut().filter(|segment| segment.closed.is_none())
    }

    /// The newest step, if any, has its outcome.
    pub fn check_outcome(&self, env: usize) -> Result<(), BufferError> {
        if self.is_pending {
            let step = self.steps.len() - 1;
            return Err(BufferError::PendingStep { env, step });
        }
        Ok(())
    }
}

/// Exactly one choice per head: waiting, with placeholders.
fn write_padding_mask(shape: &BufferShape, row: &mut [bool]) {
    let mut at = LifecycleOp::Wait.code() * shape.slots;
    if shape.slots > 0 {
        row[at] = true;
    }
    at = LifecycleOp::ALL.len() * shape.slots;
    for slot in 0..shape.slots {
        row[at + slot * shape.blueprints] = true;
    }
    at += shape.slots * shape.blueprints;
    for head in Head::PARAMETERS {
        row[at + head.placeholder()] = true;
        at += head.size(shape.slots, shape.blueprints);
    }
}
