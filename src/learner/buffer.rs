//! The rollout buffer: what the envs lived through between two updates (spec 04 §3).
//!
//! One row per env; rows fill independently. A step is written in two phases ([`record`](super::record)); rollbacks edit
//! what was written ([`rollback`](super::rollback)). What is born on the device -
//! observations, slot blueprints, recurrent states - stays there in preallocated tensors, written with one indexed copy
//! per field and step; what is born on the host - actions, masks, rewards - stays on the host and travels once, with
//! the sequences of the update.
//!
//! Recurrent states are stored only where a training sequence can start: at chunk boundaries, and where a segment
//! continues an episode that the last rollout cut.

use tch::{Device, Kind, Tensor};

use super::error::BufferError;
use super::record::StepRecord;
use super::recurrent::{row_numbers, state_numbers};
use super::segments::{RollbackCounters, Segment};
use crate::controller::{Head, MaskSet, RecurrentState};
use crate::growth::LifecycleOp;
use crate::torch::catch;

/// Sizes of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferShape {
    pub envs: usize,
    /// Steps per row.
    pub steps: usize,
    /// Length of an observation.
    pub observation: usize,
    pub slots: usize,
    pub blueprints: usize,
    /// `[layers, width]` of each recurrent state tensor; empty for a policy without memory.
    pub state: Vec<[i64; 2]>,
    /// Longest training sequence.
    pub chunk_length: usize,
}

impl BufferShape {
    pub fn mask_width(&self) -> usize {
        MaskSet::row_width(self.slots, self.blueprints)
    }

    /// Recurrent states a row can hold: chunk boundaries, and the state carried into its first segment.
    pub(super) fn states_per_row(&self) -> usize {
        self.steps / self.chunk_length + 1
    }
}

/// Per-step data of an env.
#[derive(Debug)]
pub(super) struct Row {
    pub steps: Vec<StepRecord>,
    /// The newest step waits for its outcome.
    pub is_pending: bool,
    pub segments: Vec<Segment>,
    /// The next segment continues a cut episode: its first state must be stored.
    pub continues: bool,
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

/// See the module.
#[derive(Debug)]
pub struct RolloutBuffer {
    pub(super) shape: BufferShape,
    pub(super) device: Device,
    pub(super) rows: Vec<Row>,
    pub(super) cells: Cells,
    /// `[cells × W]`, as [`MaskSet::write_row`] lays them out.
    pub(super) masks: Vec<bool>,
    /// `[cells × S]`; NaN: not measured.
    pub(super) contributions: Vec<f32>,
    pub(super) counters: RollbackCounters,
    /// Per state tensor: numbers of the recurrent states with which valid segments ended.
    final_states: Vec<Vec<Tensor>>,
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
        let rows = (0..shape.envs).map(|_| Row {
            steps: Vec::with_capacity(shape.steps),
            is_pending: false,
            segments: Vec::new(),
            continues: false,
            states: 0,
        });
        Ok(Self {
            rows: rows.collect(),
            final_states: shape.state.iter().map(|_| Vec::new()).collect(),
            masks,
            contributions: vec![f32::NAN; (count + 1) * shape.slots],
            cells,
            shape,
            device,
            counters: RollbackCounters::default(),
        })
    }

    pub fn shape(&self) -> &BufferShape {
        &self.shape
    }

    pub fn device(&self) -> Device {
        self.device
    }

    /// Steps of an env's row, a pending one included.
    pub fn len(&self, env: usize) -> usize {
        self.rows.get(env).map_or(0, |row| row.steps.len())
    }

    /// No env has a step.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.steps.is_empty())
    }

    pub fn is_full(&self, env: usize) -> bool {
        self.len(env) == self.shape.steps
    }

    /// The envs whose newest segment has steps and has not been closed: candidates for a cut.
    pub fn open_envs(&self) -> Vec<usize> {
        let is_open = |row: &Row| row.segments.last().is_some_and(|s| s.closed.is_none() && !s.is_empty());
        (0..self.rows.len()).filter(|&env| is_open(&self.rows[env])).collect()
    }

    /// All segments, by env, then by step.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.rows.iter().flat_map(|row| &row.segments)
    }

    /// Raw reward of a step as it now stands, penalties and forfeits included.
    pub fn reward(&self, env: usize, step: usize) -> Option<f32> {
        Some(self.rows.get(env)?.steps.get(step)?.reward_raw)
    }

    pub fn rollback_counters(&self) -> RollbackCounters {
        self.counters
    }

    /// `f32 [steps, D]`: raw observations of all valid steps, for the observation normaliser's commit.
    ///
    /// # Errors
    /// A device error.
    pub fn valid_raw_observations(&self) -> Result<Tensor, BufferError> {
        let valid = self.segments().filter(|segment| segment.valid);
        let cells: Vec<i64> = valid
            .flat_map(|segment| segment.steps().map(|step| self.cell(segment.env, step) as i64))
            .collect();
        let index = Tensor::from_slice(&cells);
        Ok(catch(|| {
            self.cells
                .raw_observations
                .index_select(0, &index.to_device(self.device))
        })?)
    }

    /// Takes note of how the recurrent states are with which valid segments end: `[layers, segments, width]` each.
    ///
    /// # Errors
    /// A device error.
    pub fn note_final_states(&mut self, state: &RecurrentState) -> Result<(), BufferError> {
        let numbers = catch(|| row_numbers(state))?;
        for (noted, numbers) in self.final_states.iter_mut().zip(numbers) {
            noted.push(numbers);
        }
        Ok(())
    }

    /// Numbers of all noted states, by state tensor, on the device; empty if none were noted.
    pub(super) fn final_state_numbers(&self) -> Result<Vec<Tensor>, BufferError> {
        let noted = self.final_states.iter().filter(|noted| !noted.is_empty());
        Ok(catch(|| {
            noted.map(|noted| state_numbers(&Tensor::cat(noted, 0))).collect()
        })?)
    }

    /// Every step has its outcome and every segment its end.
    ///
    /// # Errors
    /// `PendingStep`, `OpenSegment` or `EmptyRollout`.
    pub fn check_finished(&self) -> Result<(), BufferError> {
        for (env, row) in self.rows.iter().enumerate() {
            if row.is_pending {
                let step = row.steps.len() - 1;
                return Err(BufferError::PendingStep { env, step });
            }
            if let Some(open) = row.segments.last().filter(|s| s.closed.is_none() && !s.is_empty()) {
                return Err(BufferError::OpenSegment { env, start: open.start });
            }
        }
        if self.is_empty() {
            return Err(BufferError::EmptyRollout);
        }
        Ok(())
    }

    /// Empties the rows for the next rollout; episodes that were cut go on in it.
    ///
    /// # Errors
    /// `PendingStep`.
    pub fn clear(&mut self) -> Result<(), BufferError> {
        for (env, row) in self.rows.iter().enumerate() {
            if row.is_pending {
                let step = row.steps.len() - 1;
                return Err(BufferError::PendingStep { env, step });
            }
        }
        for row in &mut self.rows {
            row.steps.clear();
            row.segments.clear();
            row.states = 0;
        }
        self.final_states.iter_mut().for_each(Vec::clear);
        self.counters = RollbackCounters::default();
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
                segment.closed = segment.closed.map(|end| end.rescaled(factor));
            }
        }
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
        row[at + head.placeholder(0)] = true;
        at += head.size(shape.slots, shape.blueprints);
    }
}
