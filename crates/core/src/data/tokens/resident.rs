//! A text as the envs of a device meet it, and the batches of one env on it.
//!
//! Each part is a stream on the device, four bytes a token, stored once; inputs and targets of its windows are two strided
//! views of it. A batch of inputs is one gather from the first into the env's kept buffer, and the targets of a whole step
//! are one gather from the second. If a training part is elsewhere, the windows of a batch come with their targets.

use std::ops::Range;
use std::sync::Arc;

use tch::{Kind, TchError, Tensor};

use super::{TokenSet, Tokens};
use crate::data::ahead::{Readers, Ring, Rows};
use crate::data::plan::{FeedPlan, StepKey};
use crate::data::{Batch, DataError, EvalSet, FeedArithmetic};
use crate::torch::{Backend, TorchError, upload};

/// A text on one device. Envs take their own handles from it, which share its storage.
#[derive(Debug)]
pub struct ResidentTokens {
    backend: Backend,
    block: usize,
    train: TrainTokens,
    /// The validation part.
    pub val: EvalSet,
    /// The test part.
    pub test: EvalSet,
}

/// The place in which feeds find the training part.
#[derive(Debug)]
enum TrainTokens {
    /// On the device: inputs and targets, `i32 [train windows, block]`.
    Views([Tensor; 2]),
    /// Elsewhere: what reads it, and who.
    Elsewhere(Arc<dyn Rows>, Readers),
}

/// Windows that are read when they are asked for.
#[derive(Debug)]
struct Windows {
    tokens: Arc<Tokens>,
    /// Place of the first.
    first: usize,
    block: usize,
    stride: usize,
}

impl Rows for Windows {
    fn read(&self, window: i64, row: &mut [u8], scratch: &mut Vec<u8>) -> Result<(), DataError> {
        let mut tokens = vec![0; self.block + 1];
        let first = self.first + window as usize * self.stride;
        self.tokens.read(first, &mut tokens, scratch)?;
        for (bytes, token) in row.chunks_exact_mut(size_of::<i32>()).zip(tokens) {
            bytes.copy_from_slice(&token.to_ne_bytes());
        }
        Ok(())
    }
}

impl ResidentTokens {
    /// Uploads the validation and test parts, and the training part unless `readers` fetch it from where it is stored.
    ///
    /// # Errors
    /// A device that cannot hold it, or the errors of reading tokens.
    pub fn upload(set: &TokenSet, backend: Backend, readers: Option<&Readers>) -> Result<Self, DataError> {
        let train = match readers {
            None => TrainTokens::Views(views(set, &set.train, backend)?),
            Some(readers) => {
                let windows = Windows {
                    tokens: Arc::clone(&set.tokens),
                    first: set.train.start * set.stride,
                    block: set.block,
                    stride: set.stride,
                };
                TrainTokens::Elsewhere(Arc::new(windows), readers.clone())
            }
        };
        let evaluated = |windows| -> Result<EvalSet, DataError> {
            let [inputs, targets] = views(set, windows, backend)?;
            // Losses are reckoned on whole numbers of 64 bits.
            let targets = targets.f_to_kind(Kind::Int64).and_then(|wide| wide.f_contiguous());
            Ok(EvalSet::of(
                inputs,
                targets.map_err(|cause| DataError::device(&set.name, cause))?,
            ))
        };
        Ok(Self {
            backend,
            block: set.block,
            train,
            val: evaluated(&set.val)?,
            test: evaluated(&set.test)?,
        })
    }
}

/// Uploads a part, some tokens at a time; its inputs and targets, `[windows, block]`, as views.
fn views(set: &TokenSet, windows: &Range<usize>, backend: Backend) -> Result<[Tensor; 2], DataError> {
    let error = |cause: TchError| DataError::device(&set.name, cause);
    let places = set.places(windows);
    let stream = Tensor::f_zeros([places.len() as i64], (Kind::Int, backend.device)).map_err(error)?;
    let start = places.start;
    set.tokens.for_each_chunk(places, |first, chunk| {
        let (first, count) = ((first - start) as i64, chunk.len() as i64);
        let place = stream.f_narrow(0, first, count).map_err(error)?;
        upload(&place, chunk).map_err(|cause| DataError::device(&set.name, cause))
    })?;
    let size = [windows.len() as i64, set.block as i64];
    let view = |first| stream.f_as_strided(size, [set.stride as i64, 1], first).map_err(error);
    match windows.len() {
        // A second token doesn't exist.
        0 => Ok([view(0)?, view(0)?]),
        _ => Ok([view(0)?, view(1)?]),
    }
}

/// The training feed of one env: its plan of the current step and its kept buffers.
#[derive(Debug)]
pub struct TokenFeed {
    plan: FeedPlan,
    windows: Supply,
    /// Targets of the step, `i64`, flat, and views of it, `[B, block]`, one per batch.
    step_targets: Tensor,
    batch_targets: Vec<Tensor>,
    /// `i32 [B, block]`.
    x: Tensor,
}

/// The source of the windows of a batch.
#[derive(Debug)]
enum Supply {
    /// The whole part.
    Views {
        inputs: Tensor,
        targets: Tensor,
        /// `i64 [M·B]`: windows of the step, and views of it, one per batch.
        positions: Tensor,
        batch_positions: Vec<Tensor>,
        /// `i32 [M·B, block]`: targets of the step as they are stored.
        stored_targets: Tensor,
    },
    /// From elsewhere, as bytes, and those as `i32 [B, block + 1]`.
    Ring { ring: Ring, bytes: Tensor, tokens: Tensor },
}

impl TokenFeed {
    /// Allocates the feed of env `env` (its index in the run) on the text's device; to be called inside the stream
    /// guard of the env, so that the buffers belong to its stream.
    ///
    /// # Errors
    /// A device that cannot hold the buffers.
    pub fn new(resident: &ResidentTokens, arithmetic: FeedArithmetic, env: u64) -> Result<Self, DataError> {
        let plan = FeedPlan::of_order(arithmetic, env);
        Self::allocate(resident, plan).map_err(|cause| DataError::feed_device(env, cause))
    }

    fn allocate(resident: &ResidentTokens, plan: FeedPlan) -> Result<Self, TchError> {
        let device = resident.backend.device;
        let (rows, block) = (plan.arithmetic.batch_size as i64, resident.block as i64);
        let batches = plan.arithmetic.batches as i64;
        let targets = Tensor::f_zeros([batches * rows, block], (Kind::Int64, device))?;
        let per_batch = |whole: &Tensor| -> Result<Vec<Tensor>, TchError> {
            (0..batches)
                .map(|batch| whole.f_narrow(0, batch * rows, rows))
                .collect()
        };
        let windows = match &resident.train {
            TrainTokens::Views([inputs, targets]) => {
                let positions = Tensor::f_zeros([batches * rows], (Kind::Int64, device))?;
                Supply::Views {
                    inputs: inputs.shallow_clone(),
                    targets: targets.shallow_clone(),
                    batch_positions: per_batch(&positions)?,
                    positions,
                    stored_targets: Tensor::f_zeros([batches * rows, block], (Kind::Int, device))?,
                }
            }
            TrainTokens::Elsewhere(windows, readers) => {
                let row = (resident.block + 1) * size_of::<i32>();
                let bytes = Tensor::f_zeros([rows, row as i64], (Kind::Uint8, device))?;
                Supply::Ring {
                    ring: Ring::new(readers, windows, row, device, plan.env),
                    tokens: bytes.f_view_dtype(Kind::Int)?,
                    bytes,
                }
            }
        };
        Ok(Self {
            windows,
            batch_targets: per_batch(&targets)?,
            step_targets: targets.f_view([-1])?,
            x: Tensor::f_zeros([rows, block], (Kind::Int, device))?,
            plan,
        })
    }

    /// Draws the order of all batches of a step, and uploads it. Where the text comes from elsewhere, the first batches of
    /// the `upcoming` step are gathered after its last.
    ///
    /// # Errors
    /// Errors of the device, or storage that doesn't answer if the text comes from elsewhere.
    pub fn begin_step(&mut self, key: StepKey, upcoming: Option<StepKey>) -> Result<(), DataError> {
        let order = self.plan.draw(key, upcoming);
        match &mut self.windows {
            Supply::Ring { ring, .. } => ring.turn_to(0, &mut self.plan),
            Supply::Views {
                targets,
                positions,
                stored_targets,
                ..
            } => gather_targets(order, [targets, positions, stored_targets, &self.step_targets])
                .map_err(|cause| DataError::feed_device(self.plan.env, cause)),
        }
    }

    /// Gathers batch `batch` of `0..M` of the step that was begun last into the env's kept buffer, which the previous
    /// batch occupied.
    ///
    /// # Errors
    /// Errors of the device, or failures to read a text that comes from elsewhere.
    pub fn fetch(&mut self, batch: usize) -> Result<Batch, DataError> {
        if let Supply::Ring { ring, bytes, .. } = &mut self.windows {
            ring.fetch(batch, &mut self.plan, bytes)?;
        }
        self.gather(batch)
            .map_err(|cause| DataError::feed_device(self.plan.env, cause))?;
        Ok(Batch {
            x: self.x.shallow_clone(),
            y: self.batch_targets[batch].shallow_clone(),
            n: self.plan.arithmetic.batch_size,
        })
    }

    fn gather(&self, batch: usize) -> Result<(), TchError> {
        match &self.windows {
            Supply::Views {
                inputs,
                batch_positions,
                ..
            } => {
                let _ = inputs.f_index_select_out(&self.x, 0, &batch_positions[batch])?;
            }
            Supply::Ring { tokens, .. } => {
                let block = tokens.size2()?.1 - 1;
                self.x.shallow_clone().f_copy_(&tokens.f_narrow(1, 0, block)?)?;
                let mut targets = self.batch_targets[batch].shallow_clone();
                targets.f_copy_(&tokens.f_narrow(1, 1, block)?)?;
            }
        }
        Ok(())
    }

    /// Targets of the whole step, `i64 [M·B·block]` in batch order; of a text that comes from elsewhere, once all its
    /// batches were fetched.
    pub fn step_labels(&self) -> &Tensor {
        &self.step_targets
    }
}

/// Uploads the order of a step into `positions` and gathers its targets, as stored and then as flat `i64`.
fn gather_targets(order: &[i64], [targets, positions, stored, step]: [&Tensor; 4]) -> Result<(), TorchError> {
    upload(positions, order)?;
    let _ = targets.f_index_select_out(stored, 0, positions)?;
    step.shallow_clone().f_copy_(&stored.f_view([-1])?)?;
    Ok(())
}

#[cfg(test)]
mod tests;
