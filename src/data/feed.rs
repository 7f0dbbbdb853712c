//! The batches of one env (spec 02 §5.2, §5.3): once a step the order and the augmentation of all its batches are drawn
//! on the host and uploaded as one integer tensor; per batch one gather fills the env's kept input buffer.
//!
//! There is no cursor or iterator that survives a step: order and augmentation are functions of (seed, round, env, step),
//! so nothing needs saving, and no env depends on another.

use std::ops::Range;

use tch::{Kind, TchError, Tensor};

use crate::random::{Domain, Draw, RunRng};
use crate::scenario::AugmentSpec;

use super::resident::{Conversion, Crop, Geometry};
use super::{DataError, FeedArithmetic, ResidentData, Sharing};

/// Samples on the env's device.
#[derive(Debug)]
pub struct Batch {
    /// `f32 [n, channels, height, width]`, normalised, channels-last strides. A training batch lies in the env's kept
    /// buffer: it is valid until the env's next fetch.
    pub x: Tensor,
    /// `i64 [n]`.
    pub y: Tensor,
    pub n: usize,
}

/// Which batches are due: the coordinates of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepKey {
    /// The run's seed.
    pub seed: u64,
    pub round: u64,
    /// 1-based.
    pub step: u64,
}

/// The training feed of one env: its plan of the current step and its kept buffers.
#[derive(Debug)]
pub struct StepFeed {
    plan: FeedPlan,
    windows: Tensor,
    conversion: Conversion,
    train_labels: Tensor,
    /// `i64 [2, M·B]`: window and sample of each position of the step.
    positions: Tensor,
    sample_positions: Tensor,
    /// Views of `positions`, one a batch.
    window_positions: Vec<Tensor>,
    /// `i64 [M·B]`: labels of the whole step.
    labels: Tensor,
    /// Views of `labels`, one a batch.
    batch_labels: Vec<Tensor>,
    /// `u8 [B, height, width·channels]` where the resident data is bytes.
    pixels: Option<Tensor>,
    /// `f32 [B, height, width·channels]` and the network's view of the same storage.
    rows: Tensor,
    x: Tensor,
    next_batch: usize,
}

impl StepFeed {
    /// Allocates the feed of env `env` (its index within its group) on the resident data's device.
    ///
    /// # Errors
    /// `FeedDevice` when the device cannot hold the buffers.
    pub fn new(
        resident: &ResidentData,
        arithmetic: FeedArithmetic,
        env: u64,
    ) -> Result<Self, DataError> {
        let plan = FeedPlan::new(resident, arithmetic, env);
        Self::allocate(resident, plan).map_err(|cause| DataError::FeedDevice { env, cause })
    }

    fn allocate(resident: &ResidentData, plan: FeedPlan) -> Result<Self, TchError> {
        let (device, geometry) = (resident.device, resident.geometry);
        let (height, width, channels) = (
            geometry.height as i64,
            geometry.width as i64,
            geometry.channels as i64,
        );
        let batch_size = plan.arithmetic.batch_size as i64;
        let batches = plan.arithmetic.batches as i64;
        let row_shape = [batch_size, height, width * channels];

        let positions = Tensor::f_zeros([2, batches * batch_size], (Kind::Int64, device))?;
        let labels = Tensor::f_zeros([batches * batch_size], (Kind::Int64, device))?;
        let rows = Tensor::f_zeros(row_shape, (Kind::Float, device))?;
        let per_batch = |whole: &Tensor| -> Result<Vec<Tensor>, TchError> {
            (0..batches)
                .map(|batch| whole.f_narrow(0, batch * batch_size, batch_size))
                .collect()
        };
        Ok(Self {
            windows: resident.windows.shallow_clone(),
            conversion: resident.conversion.share(),
            train_labels: resident.train_labels.shallow_clone(),
            sample_positions: positions.f_get(1)?,
            window_positions: per_batch(&positions.f_get(0)?)?,
            positions,
            batch_labels: per_batch(&labels)?,
            labels,
            pixels: match resident.conversion {
                Conversion::None => None,
                Conversion::Affine { .. } => {
                    Some(Tensor::f_zeros(row_shape, (Kind::Uint8, device))?)
                }
            },
            x: rows
                .f_view([batch_size, height, width, channels])?
                .f_permute([0, 3, 1, 2])?,
            rows,
            // Nothing may be fetched before the first plan.
            next_batch: plan.arithmetic.batches,
            plan,
        })
    }

    /// Draws and uploads order and augmentation of all batches of a step.
    ///
    /// # Errors
    /// `FeedDevice`.
    pub fn begin_step(&mut self, key: StepKey) -> Result<(), DataError> {
        let positions = self.plan.draw(key);
        let upload = |feed: &mut Self| -> Result<(), TchError> {
            let host = Tensor::f_from_slice(&positions)?.f_view_as(&feed.positions)?;
            feed.positions.f_copy_(&host)?;
            feed.train_labels
                .f_index_select_out(&feed.labels, 0, &feed.sample_positions)?;
            Ok(())
        };
        let result = upload(self);
        self.plan.positions = positions;
        self.next_batch = 0;
        result.map_err(|cause| self.device_error(cause))
    }

    /// Gathers batch `batch` into the env's kept buffer, which the previous batch occupied.
    ///
    /// # Errors
    /// `FeedContract` unless batches are fetched as `0..M` once a step, `FeedDevice`.
    pub fn fetch(&mut self, batch: usize) -> Result<Batch, DataError> {
        if batch != self.next_batch || batch >= self.plan.arithmetic.batches {
            return Err(DataError::FeedContract {
                env: self.plan.env,
                what: "training batch",
                expected: self.next_batch,
                got: batch,
            });
        }
        self.next_batch += 1;
        self.gather(batch)
            .map_err(|cause| self.device_error(cause))?;
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

    fn gather(&mut self, batch: usize) -> Result<(), TchError> {
        let positions = &self.window_positions[batch];
        match (&self.conversion, &self.pixels) {
            (Conversion::Affine { a, b }, Some(pixels)) => {
                self.windows.f_index_select_out(pixels, 0, positions)?;
                self.rows.f_copy_(pixels)?;
                let _ = self.rows.f_mul_(a)?;
                let _ = self.rows.f_add_(b)?;
            }
            _ => {
                self.windows.f_index_select_out(&self.rows, 0, positions)?;
            }
        }
        Ok(())
    }

    fn device_error(&self, cause: TchError) -> DataError {
        DataError::FeedDevice {
            env: self.plan.env,
            cause,
        }
    }
}

impl Conversion {
    fn share(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Affine { a, b } => Self::Affine {
                a: a.shallow_clone(),
                b: b.shallow_clone(),
            },
        }
    }
}

/// The host side: which sample stands where in the step, cropped how.
#[derive(Debug)]
struct FeedPlan {
    arithmetic: FeedArithmetic,
    augment: Option<AugmentSpec>,
    geometry: Geometry,
    env: u64,
    permutation: Vec<u32>,
    positions: Vec<i64>,
}

impl FeedPlan {
    fn new(resident: &ResidentData, arithmetic: FeedArithmetic, env: u64) -> Self {
        Self {
            augment: resident.augment,
            geometry: resident.geometry,
            env,
            permutation: Vec::with_capacity(arithmetic.n_train),
            positions: Vec::with_capacity(2 * arithmetic.train_samples()),
            arithmetic,
        }
    }

    /// Windows, then samples, of all positions of the step. Hands out the kept buffer; the caller puts it back.
    fn draw(&mut self, key: StepKey) -> Vec<i64> {
        let mut positions = std::mem::take(&mut self.positions);
        let total = self.arithmetic.train_samples();
        positions.clear();
        positions.resize(2 * total, 0);
        let (windows, samples) = positions.split_at_mut(total);
        self.draw_order(key, samples);
        self.draw_windows(key, samples, windows);
        positions
    }

    /// One permutation a pass (domain 2); the incomplete tail of a pass is dropped.
    fn draw_order(&mut self, key: StepKey, samples: &mut [i64]) {
        let pass_samples = self.arithmetic.batches_per_pass * self.arithmetic.batch_size;
        for (pass, part) in samples.chunks_mut(pass_samples).enumerate() {
            let mut indices = self.step_indices(key);
            if pass > 0 {
                indices.push(pass as u64);
            }
            self.permutation.clear();
            self.permutation.extend(0..self.arithmetic.n_train as u32);
            RunRng::new(key.seed, Domain::DataOrder, &indices).shuffle(&mut self.permutation);
            let own = self.own_part(part.len());
            for (sample, &index) in part.iter_mut().zip(&self.permutation[own]) {
                *sample = i64::from(index);
            }
        }
    }

    /// One stream a batch (domain 3).
    fn draw_windows(&self, key: StepKey, samples: &[i64], windows: &mut [i64]) {
        let batch_size = self.arithmetic.batch_size;
        let batches = samples
            .chunks_exact(batch_size)
            .zip(windows.chunks_exact_mut(batch_size));
        for (batch, (samples, windows)) in batches.enumerate() {
            let mut indices = self.augmentation_indices(key);
            indices.push(batch as u64);
            let mut rng = RunRng::new(key.seed, Domain::Augmentation, &indices);
            for (&sample, window) in samples.iter().zip(windows) {
                let crop = self
                    .augment
                    .map_or(Crop::default(), |augment| draw_crop(&mut rng, augment));
                *window = self.geometry.window(sample as usize, crop);
            }
        }
    }

    /// What names the order's stream: envs that share an order leave themselves out of it.
    fn step_indices(&self, key: StepKey) -> Vec<u64> {
        match self.arithmetic.sharing {
            Sharing::PerEnv => vec![key.round, self.env, key.step],
            Sharing::Common | Sharing::Shard => vec![key.round, key.step],
        }
    }

    fn augmentation_indices(&self, key: StepKey) -> Vec<u64> {
        match self.arithmetic.sharing {
            Sharing::PerEnv | Sharing::Shard => vec![key.round, self.env, key.step],
            Sharing::Common => vec![key.round, key.step],
        }
    }

    fn own_part(&self, len: usize) -> Range<usize> {
        let first = match self.arithmetic.sharing {
            Sharing::PerEnv | Sharing::Common => 0,
            Sharing::Shard => self.env as usize * self.arithmetic.train_samples(),
        };
        first..first + len
    }
}

/// All three are always drawn, so that the stream's layout does not depend on settings.
fn draw_crop(rng: &mut impl Draw, augment: AugmentSpec) -> Crop {
    let offsets = 2 * u64::from(augment.pad) + 1;
    let top = rng.below(offsets) as usize;
    let left = rng.below(offsets) as usize;
    Crop {
        top,
        left,
        is_flipped: rng.uniform_f64() < augment.flip_p,
    }
}
