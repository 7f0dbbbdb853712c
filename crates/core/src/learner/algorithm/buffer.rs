//! The rollout buffer: the actions and observations of the envs between two updates.
//!
//! One row per env. Rows fill independently. A step is written in two phases, and rollbacks edit what was written. Every batch is
//! checked as a whole before anything is written: actions, masks and rewards are on the host anyway when they arrive, so the
//! checks cost no device read. Device results (observations, slot blueprints) stay there in
//! preallocated tensors, written with one indexed copy per field and step. Host results (actions, masks,
//! rewards) stay on the host and are copied once, with the sequences of the update. Recurrent states aren't stored: a training
//! sequence is a whole segment, which begins with none.
//!
//! A checkpoint inside a round keeps the rollout as far as it goes, none of it learnt from yet.

use tch::{Device, Kind, Tensor};

use super::steps::{
    BufferError, DecidedStep, Row, RowSegment, SegmentEnd, StepOutcome, StepRecord, StepTensors, require_finite,
};
use crate::actions::{Head, MaskSet};
use crate::growth::LifecycleOp;
use crate::health::Failure;
use crate::torch::{TorchError, catch};
use crate::unfinished::{UnfinishedRound, UnfinishedRoundError};

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
}

impl BufferShape {
    /// Elements of one step's masks.
    pub fn mask_width(&self) -> usize {
        MaskSet::row_width(self.slots, self.blueprints)
    }
}

/// Tensors of all steps. The last cell of each belongs to no step and is what padding reads.
#[derive(Debug)]
pub(super) struct Cells {
    pub observations: Tensor,
    pub raw_observations: Tensor,
    pub blueprints: Tensor,
    /// `bool [cells, W]`, as [`MaskSet::write_row`] lays them out; on the CPU.
    pub masks: Tensor,
}

/// The steps of all envs since the last update.
#[derive(Debug)]
pub struct RolloutBuffer {
    pub(super) shape: BufferShape,
    pub(super) device: Device,
    pub(super) rows: Vec<Row>,
    pub(super) cells: Cells,
}

impl RolloutBuffer {
    /// Allocates everything on `device`, once.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(shape: BufferShape, device: Device) -> Result<Self, BufferError> {
        let count = shape.envs * shape.steps;
        let mut padding = vec![false; shape.mask_width()];
        write_padding_mask(&shape, &mut padding);
        let cells = catch(|| {
            let zeros = |size: &[i64]| Tensor::zeros(size, (Kind::Float, device));
            let observations = [count as i64 + 1, shape.observation as i64];
            let masks = Tensor::zeros([count as i64 + 1, padding.len() as i64], (Kind::Bool, Device::Cpu));
            masks.get(count as i64).copy_(&Tensor::from_slice(&padding));
            Cells {
                masks,
                observations: zeros(&observations),
                raw_observations: zeros(&observations),
                blueprints: Tensor::full([count as i64 + 1, shape.slots as i64], -1, (Kind::Int64, device)),
            }
        })?;
        Ok(Self {
            rows: (0..shape.envs).map(|_| Row::default()).collect(),
            cells,
            shape,
            device,
        })
    }

    /// Sizes.
    pub fn shape(&self) -> &BufferShape {
        &self.shape
    }

    /// The device of its tensors.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Steps of an env's row, a pending one included.
    pub fn len(&self, env: usize) -> usize {
        self.rows.get(env).map_or(0, |row| row.steps.len())
    }

    /// Returns whether an env's newest segment waits for its end.
    pub fn has_open_segment(&self, env: usize) -> bool {
        let newest = self.rows.get(env).and_then(|row| row.segments.last());
        newest.is_some_and(RowSegment::is_open)
    }

    /// All segments, by env, then by step.
    pub(super) fn segments(&self) -> impl Iterator<Item = &RowSegment> {
        self.rows.iter().flat_map(|row| &row.segments)
    }

    /// Those that are learnt from.
    pub(super) fn valid_segments(&self) -> impl Iterator<Item = &RowSegment> {
        self.segments().filter(|segment| segment.valid)
    }

    /// The steps that are learnt from, as `(env, step)`.
    pub(super) fn valid_steps(&self) -> impl Iterator<Item = (usize, usize)> {
        self.valid_segments()
            .flat_map(|segment| segment.steps().map(|step| (segment.env, step)))
    }

    /// Their records.
    pub(super) fn valid_records(&self) -> impl Iterator<Item = &StepRecord> {
        self.valid_segments()
            .flat_map(move |segment| &self.rows[segment.env].steps[segment.steps()])
    }

    /// `f32 [steps, D]`: raw observations of all valid steps, for the observation normaliser's commit.
    ///
    /// # Errors
    /// A device error.
    pub fn valid_raw_observations(&self) -> Result<Tensor, BufferError> {
        let cells: Vec<usize> = self.valid_steps().map(|(env, step)| self.cell(env, step)).collect();
        let index = indices(&cells, self.device)?;
        Ok(catch(|| self.cells.raw_observations.index_select(0, &index))?)
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

impl RolloutBuffer {
    /// Writes the decisions of all envs that decided in this step.
    ///
    /// # Errors
    /// Anything that must not enter the buffer, which is then unchanged, or a device error.
    pub fn begin_steps(&mut self, steps: &[DecidedStep], tensors: &StepTensors) -> Result<(), BufferError> {
        self.check_tensors(steps.len(), tensors)?;
        for (index, step) in steps.iter().enumerate() {
            self.check_step(step)?;
            if steps[..index].iter().any(|other| other.env == step.env) {
                return Err(BufferError::PendingStep {
                    env: step.env,
                    step: self.len(step.env),
                });
            }
        }
        let cells: Vec<i64> = steps
            .iter()
            .map(|step| self.cell(step.env, self.len(step.env)) as i64)
            .collect();
        let width = self.shape.mask_width();
        let mut masks = vec![false; steps.len() * width];
        for (step, row) in steps.iter().zip(masks.chunks_exact_mut(width)) {
            step.masks.write_row(self.shape.blueprints, row);
        }
        catch(|| {
            let index = Tensor::from_slice(&cells);
            let masks = Tensor::from_slice(&masks).view([steps.len() as i64, width as i64]);
            let _ = self.cells.masks.index_copy_(0, &index, &masks);
            let index = index.to_device(self.device);
            let fields = [
                (&mut self.cells.observations, tensors.observations),
                (&mut self.cells.raw_observations, tensors.raw_observations),
                (&mut self.cells.blueprints, tensors.blueprints),
            ];
            for (field, values) in fields {
                let _ = field.index_copy_(0, &index, &values.detach());
            }
        })?;
        steps.iter().for_each(|step| self.push(step));
        Ok(())
    }

    /// Gives pending steps their outcomes.
    ///
    /// # Errors
    /// An env that waits for none, or a reward that isn't finite. The buffer is then unchanged.
    pub fn complete_steps(&mut self, outcomes: &[StepOutcome]) -> Result<(), BufferError> {
        for outcome in outcomes {
            let env = outcome.env;
            let row = self.row(env)?;
            if !row.is_pending {
                return Err(BufferError::NoPendingStep { env });
            }
            let step = row.steps.len() - 1;
            require_finite(outcome.reward.is_finite(), env, step, "reward")?;
        }
        for outcome in outcomes {
            let row = &mut self.rows[outcome.env];
            row.is_pending = false;
            if let Some(record) = row.steps.last_mut() {
                record.reward_raw = outcome.reward;
                record.effective_op = outcome.effective_op;
            }
        }
        Ok(())
    }

    /// Closes the open segment of each env listed.
    ///
    /// # Errors
    /// No open segment, a pending step, or a bootstrap that isn't finite. The buffer is then unchanged.
    pub fn end_segments(&mut self, ends: &[(usize, SegmentEnd)]) -> Result<(), BufferError> {
        for &(env, end) in ends {
            let row = self.row(env)?;
            row.check_outcome(env)?;
            if row.segments.last().is_none_or(|segment| segment.closed.is_some()) {
                return Err(BufferError::SegmentClosed { env });
            }
            let step = row.steps.len().saturating_sub(1);
            require_finite(end.bootstrap().is_finite(), env, step, "bootstrap")?;
        }
        for &(env, end) in ends {
            let row = &mut self.rows[env];
            if let Some(segment) = row.open_segment() {
                segment.closed = Some(end);
            }
        }
        Ok(())
    }

    fn check_tensors(&self, n: usize, tensors: &StepTensors) -> Result<(), BufferError> {
        let n = n as i64;
        let shape = &self.shape;
        let expected = [
            ("observations", tensors.observations, vec![n, shape.observation as i64]),
            (
                "raw observations",
                tensors.raw_observations,
                vec![n, shape.observation as i64],
            ),
            ("blueprints", tensors.blueprints, vec![n, shape.slots as i64]),
        ];
        for (field, tensor, size) in expected {
            if tensor.size() != size {
                return Err(mismatch(field, format!("{size:?}"), format!("{:?}", tensor.size())));
            }
        }
        Ok(())
    }

    fn check_step(&self, decided: &DecidedStep) -> Result<(), BufferError> {
        let env = decided.env;
        let row = self.row(env)?;
        let step = row.steps.len();
        row.check_outcome(env)?;
        if step == self.shape.steps {
            return Err(BufferError::RowFull { env, capacity: step });
        }
        if decided.masks.slots() != self.shape.slots {
            return Err(mismatch("masks", self.shape.slots, decided.masks.slots()));
        }
        let mut log_probs = decided.log_probs.iter();
        require_finite(decided.value.is_finite(), env, step, "value")?;
        require_finite(
            log_probs.all(|log_prob| log_prob.is_finite()),
            env,
            step,
            "log-probability",
        )?;
        let illegal = |head| BufferError::IllegalAction { env, step, head };
        let index = |head: Head| usize::from(decided.indices[head as usize]);
        let op = LifecycleOp::from_code(index(Head::Op)).ok_or(illegal(Head::Op))?;
        // The op first: the other heads' masks depend on it.
        for head in std::iter::once(Head::Op).chain(Head::ALL) {
            let members = decided.masks.effective(head, op, index(Head::Slot));
            if members.is_empty() {
                return Err(BufferError::EmptyMask { env, step, head });
            }
            if !members.contains(index(head)) {
                return Err(illegal(head));
            }
        }
        Ok(())
    }

    /// Writes a checked step.
    fn push(&mut self, decided: &DecidedStep) {
        let row = &mut self.rows[decided.env];
        let start = row.steps.len();
        row.steps.push(StepRecord::new(decided));
        row.is_pending = true;
        match row.open_segment() {
            Some(open) => open.end = start + 1,
            None => row.segments.push(RowSegment {
                env: decided.env,
                start,
                end: start + 1,
                closed: None,
                valid: true,
            }),
        }
    }

    /// Charges a rollback of `env` to what it did since its segment began, and closes the segment. A pending step is
    /// discarded: its action never ran. Other envs are not touched. The caller zeroes the env's live recurrent state.
    ///
    /// `penalty` is raw reward, clamped already, and is never scaled. `restored` is the step of the episode whose state
    /// was restored: transitions up to it keep their rewards.
    ///
    /// Returns how many steps before the charged one lost their own rewards. `None` if there is nothing to charge, since
    /// the env had no finished step since its segment began.
    ///
    /// # Errors
    /// An unknown env or a penalty that is not finite.
    pub fn rollback(&mut self, env: usize, penalty: f32, restored: u32) -> Result<Option<usize>, BufferError> {
        let row = self.row_mut(env)?;
        require_finite(penalty.is_finite(), env, row.steps.len(), "penalty")?;
        row.discard_pending();
        let steps = row.open_segment().map(|segment| segment.steps()).unwrap_or_default();
        let mut forfeited = 0;
        if let Some(segment) = row.open_segment() {
            segment.closed = Some(SegmentEnd::Terminal);
        }
        if let Some((last, earlier)) = row.steps[steps.clone()].split_last_mut() {
            last.fix_reward(penalty);
            let kept = earlier.partition_point(|record| record.step <= restored);
            forfeited = earlier.len() - kept;
            earlier[kept..].iter_mut().for_each(|record| record.fix_reward(0.0));
        }
        Ok((!steps.is_empty()).then_some(forfeited))
    }

    /// Leaves the open segment of an env that has failed out of learning, and closes it.
    ///
    /// # Errors
    /// An unknown env.
    pub fn abandon_segment(&mut self, env: usize) -> Result<(), BufferError> {
        let row = self.row_mut(env)?;
        row.discard_pending();
        if let Some(segment) = row.open_segment() {
            segment.closed = Some(SegmentEnd::Terminal);
            segment.valid = false;
        }
        Ok(())
    }
}

fn mismatch(field: &'static str, expected: impl ToString, found: impl ToString) -> BufferError {
    BufferError::ShapeMismatch {
        field,
        expected: expected.to_string(),
        found: found.to_string(),
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

impl RolloutBuffer {
    /// Saves everything that was written. Call between two steps. The rest of the buffer belongs to earlier rollouts.
    ///
    /// # Errors
    /// A device error.
    pub fn save(&self, round: &mut UnfinishedRound) -> Result<(), UnfinishedRoundError> {
        round.put("rollout.rows", &self.rows)?;
        let cells = self.written_cells();
        for (name, tensor) in self.cells.named() {
            let index = indices(&cells, tensor.device())?;
            round.put_tensor(name, &catch(|| tensor.index_select(0, &index))?)?;
        }
        Ok(())
    }

    /// Takes back what [`save`](Self::save) of a buffer of the same shape has kept.
    ///
    /// # Errors
    /// A part that is missing from the round, or is another buffer's, or a device error.
    pub fn restore(&mut self, round: &UnfinishedRound) -> Result<(), Failure> {
        let rows: Vec<Row> = round.get("rollout.rows")?;
        let fits = |row: &Row| row.steps.len() <= self.shape.steps;
        if rows.len() != self.shape.envs || !rows.iter().all(fits) {
            let (name, why) = ("rollout.rows".into(), "they belong to another rollout".into());
            return Err(UnfinishedRoundError::Unreadable { name, why }.into());
        }
        self.rows = rows;
        let cells = self.written_cells();
        for (name, tensor) in self.cells.named() {
            let index = indices(&cells, tensor.device())?;
            let part = catch(|| tensor.index_select(0, &index))?;
            round.copy_to(name, &part)?;
            let _ = catch(|| tensor.shallow_clone().index_copy_(0, &index, &part))?;
        }
        Ok(())
    }

    /// Cells of all steps, by env, then by step.
    fn written_cells(&self) -> Vec<usize> {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(env, row)| (0..row.steps.len()).map(move |step| self.cell(env, step)))
            .collect()
    }
}

impl Cells {
    /// Each with its name in a checkpoint.
    fn named(&self) -> [(&'static str, &Tensor); 4] {
        [
            ("rollout.masks", &self.masks),
            ("rollout.observations", &self.observations),
            ("rollout.raw_observations", &self.raw_observations),
            ("rollout.blueprints", &self.blueprints),
        ]
    }
}

fn indices(cells: &[usize], device: Device) -> Result<Tensor, TorchError> {
    let cells: Vec<i64> = cells.iter().map(|&cell| cell as i64).collect();
    catch(|| Tensor::from_slice(&cells).to_device(device))
}
