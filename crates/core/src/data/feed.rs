//! The batches of one env, of either kind. For images, the order and the augmentation of all batches are drawn once a step
//! on the host and uploaded as one integer tensor. Per batch one gather fills the env's kept input buffer. It gathers from
//! all images if they are on the device, else from the batch's own, which came there from a buffer of the host.
//!
//! No cursor or iterator survives a step: order and augmentation are functions of (seed, round, env, step),
//! so nothing needs saving, and no env depends on another.

use tch::{Kind, TchError, Tensor};

use super::ahead::Ring;
use super::plan::{FeedPlan, StepKey};
use super::resident::TrainImages;
use super::{Batch, DataError, FeedArithmetic, Resident, ResidentData, TokenFeed};
use crate::kernels::gather_images;
use crate::torch::{TorchError, upload};

/// The training feed of one env.
#[derive(Debug)]
pub enum Feed {
    /// Batches of images.
    Images(Box<StepFeed>),
    /// Batches of a text.
    Tokens(Box<TokenFeed>),
}

impl Feed {
    /// Allocates the feed of env `env` (its index in the run) on the data's device; to be called inside the stream
    /// guard of the env, so that the buffers belong to its stream.
    ///
    /// # Errors
    /// A device that cannot hold the buffers.
    pub fn new(resident: &Resident, arithmetic: FeedArithmetic, env: u64) -> Result<Self, DataError> {
        Ok(match resident {
            Resident::Images(data) => Self::Images(Box::new(StepFeed::new(data, arithmetic, env)?)),
            Resident::Tokens(data) => Self::Tokens(Box::new(TokenFeed::new(data, arithmetic, env)?)),
        })
    }

    /// Draws and uploads the order of all batches of a step, and the crops of images. If the data come from elsewhere,
    /// the first batches of the `upcoming` step, if one follows, are gathered after its last.
    ///
    /// # Errors
    /// Errors of the device, or storage that doesn't answer if they come from elsewhere.
    pub fn begin_step(&mut self, key: StepKey, upcoming: Option<StepKey>) -> Result<(), DataError> {
        match self {
            Self::Images(feed) => feed.begin_step(key, upcoming),
            Self::Tokens(feed) => feed.begin_step(key, upcoming),
        }
    }

    /// Gathers batch `batch` of `0..M` of the step that was begun last into the env's kept buffer, which the previous
    /// batch occupied.
    ///
    /// # Errors
    /// Errors of the device, or failures to read data that come from elsewhere.
    pub fn fetch(&mut self, batch: usize) -> Result<Batch, DataError> {
        match self {
            Self::Images(feed) => feed.fetch(batch),
            Self::Tokens(feed) => feed.fetch(batch),
        }
    }

    /// Targets of the whole step, `i64`, flat, in batch order.
    pub fn step_labels(&self) -> &Tensor {
        match self {
            Self::Images(feed) => feed.step_labels(),
            Self::Tokens(feed) => feed.step_labels(),
        }
    }
}

/// The training feed of images: its plan of the current step and its kept buffers.
#[derive(Debug)]
pub struct StepFeed {
    plan: FeedPlan,
    own_kernels: bool,
    images: Supply,
    a: Tensor,
    b: Tensor,
    masks: Option<Tensor>,
    train_labels: Tensor,
    /// `i64 [2, M·B]`: window and sample of each position of the step; `[3, M·B]` with cutout: also its square.
    positions: Tensor,
    sample_positions: Tensor,
    /// Views of `positions`, `i64 [2 or 3, B]`, one per batch.
    batch_positions: Vec<Tensor>,
    /// `i64 [M·B]`: labels of the whole step.
    labels: Tensor,
    /// Views of `labels`, one per batch.
    batch_labels: Vec<Tensor>,
    /// `u8 [B, height, width·channels]`.
    pixels: Tensor,
    /// `f32 [B, height, width·channels]` and the network's view of the same storage.
    rows: Tensor,
    x: Tensor,
}

/// The source of the images of a batch.
#[derive(Debug)]
enum Supply {
    /// All of them: `u8 [windows, height, width·channels]`.
    Windows(Tensor),
    /// From elsewhere into `pixels`, where each row is then a window: `i64 [B]`, 0 to B − 1.
    Ring(Ring, Tensor),
}

impl StepFeed {
    /// Allocates the feed of env `env` (its index in the run) on the resident data's device; to be called inside the
    /// stream guard of the env, so that the buffers belong to its stream.
    ///
    /// # Errors
    /// A device that cannot hold the buffers.
    pub fn new(resident: &ResidentData, arithmetic: FeedArithmetic, env: u64) -> Result<Self, DataError> {
        let plan = FeedPlan::of_crops(resident.augment, resident.geometry, arithmetic, env);
        Self::allocate(resident, plan).map_err(|cause| DataError::feed_device(env, cause))
    }

    fn allocate(resident: &ResidentData, plan: FeedPlan) -> Result<Self, TchError> {
        let (device, geometry) = (resident.backend.device, resident.geometry);
        let [height, width, channels] = geometry.shape.dimensions();
        let batch_size = plan.arithmetic.batch_size as i64;
        let batches = plan.arithmetic.batches as i64;
        let row_shape = [batch_size, height, width * channels];

        let positions = Tensor::f_zeros([plan.draws() as i64, batches * batch_size], (Kind::Int64, device))?;
        let labels = Tensor::f_zeros([batches * batch_size], (Kind::Int64, device))?;
        let rows = Tensor::f_zeros(row_shape, (Kind::Float, device))?;
        let images = match &resident.train {
            TrainImages::Windows(windows) => Supply::Windows(windows.shallow_clone()),
            TrainImages::Elsewhere(cuts, readers) => {
                let ring = Ring::new(readers, cuts, geometry.shape.size(), device, plan.env);
                Supply::Ring(ring, Tensor::f_arange(batch_size, (Kind::Int64, device))?)
            }
        };
        let per_batch = |whole: &Tensor| -> Result<Vec<Tensor>, TchError> {
            (0..batches)
                .map(|batch| whole.f_narrow(-1, batch * batch_size, batch_size))
                .collect()
        };
        Ok(Self {
            own_kernels: resident.backend.uses_own_kernels(),
            images,
            a: resident.a.shallow_clone(),
            b: resident.b.shallow_clone(),
            masks: resident.masks.as_ref().map(Tensor::shallow_clone),
            train_labels: resident.train_labels.shallow_clone(),
            sample_positions: positions.f_get(1)?,
            batch_positions: per_batch(&positions)?,
            positions,
            batch_labels: per_batch(&labels)?,
            labels,
            pixels: Tensor::f_zeros(row_shape, (Kind::Uint8, device))?,
            x: rows
                .f_view([batch_size, height, width, channels])?
                .f_permute([0, 3, 1, 2])?,
            rows,
            plan,
        })
    }

    /// Draws and uploads order and augmentation of all batches of a step. Where images come from elsewhere, the first
    /// batches of the `upcoming` step are gathered after its last.
    ///
    /// # Errors
    /// Errors of the device, or storage that doesn't answer if images come from elsewhere.
    pub fn begin_step(&mut self, key: StepKey, upcoming: Option<StepKey>) -> Result<(), DataError> {
        self.upload(key, upcoming)
            .map_err(|cause| DataError::feed_device(self.plan.env, cause))?;
        match &mut self.images {
            Supply::Windows(_) => Ok(()),
            Supply::Ring(ring, _) => ring.turn_to(0, &mut self.plan),
        }
    }

    fn upload(&mut self, key: StepKey, upcoming: Option<StepKey>) -> Result<(), TorchError> {
        upload(&self.positions, self.plan.draw(key, upcoming))?;
        let _ = self
            .train_labels
            .f_index_select_out(&self.labels, 0, &self.sample_positions)?;
        Ok(())
    }

    /// Gathers batch `batch` of `0..M` of the step that was begun last into the env's kept buffer, which the previous
    /// batch occupied.
    ///
    /// # Errors
    /// Errors of the device, or failures to read images that come from elsewhere.
    pub fn fetch(&mut self, batch: usize) -> Result<Batch, DataError> {
        if let Supply::Ring(ring, _) = &mut self.images {
            ring.fetch(batch, &mut self.plan, &self.pixels)?;
        }
        self.gather(&self.batch_positions[batch])
            .map_err(|cause| DataError::feed_device(self.plan.env, cause))?;
        Ok(Batch {
            x: self.x.shallow_clone(),
            y: self.batch_labels[batch].shallow_clone(),
            n: self.plan.arithmetic.batch_size,
        })
    }

    /// Labels of all training positions of the step, `i64 [M·B]` in batch order.
    pub fn step_labels(&self) -> &Tensor {
        &self.labels
    }

    /// Fills the input buffer with the images at `positions: i64 [2 or 3, B]`.
    fn gather(&self, positions: &Tensor) -> Result<(), TchError> {
        let (windows, drawn) = match &self.images {
            Supply::Windows(windows) => (windows, positions.f_get(0)?),
            Supply::Ring(_, in_order) => (&self.pixels, in_order.shallow_clone()),
        };
        let squares = match &self.masks {
            Some(masks) => Some((masks, positions.f_get(2)?)),
            None => None,
        };
        if self.own_kernels {
            let squares = squares.as_ref().map(|(masks, places)| [*masks, places]);
            return gather_images([windows, &drawn], squares, [&self.a, &self.b], &self.rows);
        }
        if let Supply::Windows(windows) = &self.images {
            let _ = windows.f_index_select_out(&self.pixels, 0, &drawn)?;
        }
        let mut rows = self.rows.shallow_clone();
        rows.f_copy_(&self.pixels)?;
        let _ = rows.f_mul_(&self.a)?;
        let _ = rows.f_add_(&self.b)?;
        if let Some((masks, places)) = squares {
            let _ = rows.f_masked_fill_(&masks.f_index_select(0, &places)?, 0.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
