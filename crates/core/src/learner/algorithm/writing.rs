//! Writing a rollout: decisions, outcomes, ends of segments, and what a rollback or a failure of its env changes in it.
//!
//! Every batch is checked as a whole before anything is written. Actions, masks and rewards are on the host anyway when
//! they arrive, so the checks cost no device read.

use tch::Tensor;

use super::buffer::{RolloutBuffer, Row};
use super::steps::{
    BufferError, DecidedStep, Segment, SegmentEnd, StepOutcome, StepRecord, StepTensors, require_finite,
};
use crate::actions::Head;
use crate::growth::LifecycleOp;
use crate::torch::catch;

impl RolloutBuffer {
    /// Writes the decisions of all envs that decided in this step.
    ///
    /// # Errors
    /// Anything that must not enter the buffer, which is then unchanged; a device error.
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
    /// An env that waits for none, or a reward that is not finite; the buffer is then unchanged.
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
    /// No open segment, a pending step, or a bootstrap that is not finite; the buffer is then unchanged.
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
            None => row.segments.push(Segment {
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
    /// Returns how many steps before the charged one lost their own rewards; `None` if there is nothing to charge, since
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

impl Row {
    /// Takes back a step whose action never ran; the segment it opened goes with it.
    fn discard_pending(&mut self) {
        if !std::mem::take(&mut self.is_pending) {
            return;
        }
        self.steps.pop();
        let len = self.steps.len();
        if let Some(open) = self.open_segment() {
            open.end = len;
            if open.is_empty() {
                self.segments.pop();
            }
        }
    }
}

fn mismatch(field: &'static str, expected: impl ToString, found: impl ToString) -> BufferError {
    BufferError::ShapeMismatch {
        field,
        expected: expected.to_string(),
        found: found.to_string(),
    }
}
