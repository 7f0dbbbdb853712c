//! The one copy of a text on a device, and the batches of one env on it.
//!
//! The stream is stored once, four bytes a token. Inputs and targets of all windows are two strided views of it; a batch
//! of inputs is one gather from the first into the env's kept buffer, and the targets of a whole step are one gather from
//! the second.

use tch::{Kind, TchError, Tensor};

use super::TokenSet;
use crate::data::plan::{FeedPlan, StepKey};
use crate::data::{Batch, DataError, EvalSet, FeedArithmetic};
use crate::torch::{Backend, TorchError, upload};

/// A text on one device. Envs take handles of their own from it, which share its storage.
#[derive(Debug)]
pub struct ResidentTokens {
    backend: Backend,
    /// `i32 [train windows, block]`, views of the stream.
    inputs: Tensor,
    targets: Tensor,
    /// The validation part.
    pub val: EvalSet,
    /// The test part.
    pub test: EvalSet,
}

impl ResidentTokens {
    /// Uploads all parts of a text.
    ///
    /// # Errors
    /// `Device` when the device cannot hold it.
    pub fn upload(set: &TokenSet, backend: Backend) -> Result<Self, DataError> {
        let place = || -> Result<Self, TchError> {
            let stream = Tensor::f_from_slice(&set.tokens)?.f_to_device(backend.device)?;
            let [inputs, targets] = windows(set, &stream)?;
            let part = |whole: &Tensor, windows: &std::ops::Range<usize>| {
                whole.f_narrow(0, windows.start as i64, windows.len() as i64)
            };
            let evaluated = |windows| -> Result<EvalSet, TchError> {
                // Losses are reckoned on whole numbers of 64 bits.
                let targets = part(&targets, windows)?.f_to_kind(Kind::Int64)?.f_contiguous()?;
                Ok(EvalSet::of(part(&inputs, windows)?, targets))
            };
            Ok(Self {
                backend,
                val: evaluated(&set.val)?,
                test: evaluated(&set.test)?,
                inputs: part(&inputs, &set.train)?,
                targets: part(&targets, &set.train)?,
            })
        };
        place().map_err(|cause| DataError::Device {
            name: set.name.clone(),
            cause,
        })
    }
}

/// Inputs and targets of all windows, `[windows, block]`, as views.
fn windows(set: &TokenSet, stream: &Tensor) -> Result<[Tensor; 2], TchError> {
    let count = (set.tokens.len() - 1 - set.block) / set.stride + 1;
    let size = [count as i64, set.block as i64];
    let view = |first| stream.f_as_strided(size, [set.stride as i64, 1], first);
    Ok([view(0)?, view(1)?])
}

/// The training feed of one env: its plan of the current step and its kept buffers.
#[derive(Debug)]
pub struct TokenFeed {
    plan: FeedPlan,
    inputs: Tensor,
    targets: Tensor,
    /// `i64 [M·B]`: windows of the step, and views of it, one a batch.
    positions: Tensor,
    batch_positions: Vec<Tensor>,
    /// `i32 [M·B, block]`: targets of the step as they are stored.
    stored_targets: Tensor,
    /// The same as `i64`, flat, and views of it, `[B, block]`, one a batch.
    step_targets: Tensor,
    batch_targets: Vec<Tensor>,
    /// `i32 [B, block]`.
    x: Tensor,
}

impl TokenFeed {
    /// Allocates the feed of env `env` (its index within its group) on the text's device; to be called inside the stream
    /// guard of the env, so that the buffers belong to its stream.
    ///
    /// # Errors
    /// `FeedDevice` when the device cannot hold the buffers.
    pub fn new(resident: &ResidentTokens, arithmetic: FeedArithmetic, env: u64) -> Result<Self, DataError> {
        let plan = FeedPlan::of_order(arithmetic, env);
        Self::allocate(resident, plan).map_err(|error| DataError::FeedDevice {
            env,
            cause: error.into(),
        })
    }

    fn allocate(resident: &ResidentTokens, plan: FeedPlan) -> Result<Self, TchError> {
        let device = resident.backend.device;
        let (rows, block) = (plan.arithmetic.batch_size as i64, resident.inputs.size2()?.1);
        let batches = plan.arithmetic.batches as i64;
        let positions = Tensor::f_zeros([batches * rows], (Kind::Int64, device))?;
        let targets = Tensor::f_zeros([batches * rows, block], (Kind::Int64, device))?;
        let per_batch = |whole: &Tensor| -> Result<Vec<Tensor>, TchError> {
            (0..batches)
                .map(|batch| whole.f_narrow(0, batch * rows, rows))
                .collect()
        };
        Ok(Self {
            inputs: resident.inputs.shallow_clone(),
            targets: resident.targets.shallow_clone(),
            batch_positions: per_batch(&positions)?,
            positions,
            stored_targets: Tensor::f_zeros([batches * rows, block], (Kind::Int, device))?,
            batch_targets: per_batch(&targets)?,
            step_targets: targets.f_view([-1])?,
            x: Tensor::f_zeros([rows, block], (Kind::Int, device))?,
            plan,
        })
    }

    /// Draws and uploads the order of all batches of a step.
    ///
    /// # Errors
    /// `FeedDevice`.
    pub fn begin_step(&mut self, key: StepKey) -> Result<(), DataError> {
        self.gather_targets(key).map_err(|cause| self.device_error(cause))
    }

    fn gather_targets(&mut self, key: StepKey) -> Result<(), TorchError> {
        upload(&self.positions, self.plan.draw_samples(key))?;
        let _ = self
            .targets
            .f_index_select_out(&self.stored_targets, 0, &self.positions)?;
        Ok(self.step_targets.f_copy_(&self.stored_targets.f_view([-1])?)?)
    }

    /// Gathers batch `batch` of `0..M` of the step that was begun last into the env's kept buffer, which the previous
    /// batch occupied.
    ///
    /// # Errors
    /// `FeedDevice`.
    pub fn fetch(&mut self, batch: usize) -> Result<Batch, DataError> {
        let positions = &self.batch_positions[batch];
        let gathered = self.inputs.f_index_select_out(&self.x, 0, positions);
        let _ = gathered.map_err(|cause| self.device_error(cause.into()))?;
        Ok(Batch {
            x: self.x.shallow_clone(),
            y: self.batch_targets[batch].shallow_clone(),
            n: self.plan.arithmetic.batch_size,
        })
    }

    /// Targets of the whole step, `i64 [M·B·block]` in batch order.
    pub fn step_labels(&self) -> &Tensor {
        &self.step_targets
    }

    fn device_error(&self, cause: TorchError) -> DataError {
        DataError::FeedDevice {
            env: self.plan.env,
            cause,
        }
    }
}

#[cfg(test)]
mod tests;
