//! The batches of one env (spec 02 §5.2, §5.3): once a step the order and the augmentation of all its batches are drawn
//! on the host and uploaded as one integer tensor; per batch one gather fills the env's kept input buffer.
//!
//! There is no cursor or iterator that survives a step: order and augmentation are functions of (seed, round, env, step),
//! so nothing needs saving, and no env depends on another.

use std::ops::Range;

use tch::{Kind, TchError, Tensor};

use crate::random::{Domain, Draw, RunRng};
use crate::scenario::AugmentSpec;

use super::resident::{Crop, Geometry};
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
    a: Tensor,
    b: Tensor,
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
    /// `u8 [B, height, width·channels]`.
    pixels: Tensor,
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
            a: resident.a.shallow_clone(),
            b: resident.b.shallow_clone(),
            train_labels: resident.train_labels.shallow_clone(),
            sample_positions: positions.f_get(1)?,
            window_positions: per_batch(&positions.f_get(0)?)?,
            positions,
            batch_labels: per_batch(&labels)?,
            labels,
            pixels: Tensor::f_zeros(row_shape, (Kind::Uint8, device))?,
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
            let _ =
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
        let _ = self
            .windows
            .f_index_select_out(&self.pixels, 0, positions)?;
        self.rows.f_copy_(&self.pixels)?;
        let _ = self.rows.f_mul_(&self.a)?;
        let _ = self.rows.f_add_(&self.b)?;
        Ok(())
    }

    fn device_error(&self, cause: TchError) -> DataError {
        DataError::FeedDevice {
            env: self.plan.env,
            cause,
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

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;
    use crate::data::dataset::tests::{digits_task, small_colour_task};
    use crate::data::{DataSet, load};
    use crate::scenario::{BatchesPerStep, FeedMode, TaskSpec};

    const FIRST_STEP: StepKey = StepKey {
        seed: 42,
        round: 0,
        step: 1,
    };

    fn resident(data: &DataSet, augment: Option<AugmentSpec>) -> ResidentData {
        ResidentData::upload(data, augment, Device::Cpu).unwrap()
    }

    /// Feed plans of all envs of a task, without augmentation.
    fn plans(task: &TaskSpec, mode: FeedMode, n_envs: usize) -> Vec<FeedPlan> {
        let data = load(task, None).unwrap();
        let resident = resident(&data, None);
        let arithmetic = FeedArithmetic::new(task, mode, &data, n_envs).unwrap();
        (0..n_envs as u64)
            .map(|env| FeedPlan::new(&resident, arithmetic, env))
            .collect()
    }

    fn order(plan: &mut FeedPlan, key: StepKey) -> Vec<i64> {
        let mut samples = vec![0; plan.arithmetic.train_samples()];
        plan.draw_order(key, &mut samples);
        samples
    }

    #[test]
    fn crops_are_the_published_ones() {
        let crops = |pad: u32| {
            let augment = AugmentSpec { pad, flip_p: 0.5 };
            let mut rng = RunRng::new(42, Domain::Augmentation, &[0, 0, 1, 0]);
            [(); 4].map(|()| {
                let crop = draw_crop(&mut rng, augment);
                (crop.top, crop.left, crop.is_flipped)
            })
        };

        assert_eq!(
            crops(4),
            [(3, 5, true), (1, 4, false), (0, 8, true), (0, 7, true)]
        );
        assert_eq!(
            crops(1),
            [(1, 1, true), (0, 1, false), (0, 2, true), (0, 2, true)]
        );
    }

    #[test]
    fn the_order_of_an_env_is_the_published_permutation() {
        let mut task = small_colour_task();
        if let crate::scenario::DataSource::SynthImages(params) = &mut task.data {
            params.train = 8;
        }
        task.batch_size = 4;
        let mut envs = plans(&task, FeedMode::PerEnv, 2);

        assert_eq!(order(&mut envs[0], FIRST_STEP), [5, 1, 6, 4, 3, 2, 7, 0]);
        assert_eq!(order(&mut envs[1], FIRST_STEP), [4, 5, 7, 3, 0, 1, 6, 2]);
        let second = StepKey {
            step: 2,
            ..FIRST_STEP
        };
        assert_eq!(order(&mut envs[0], second), [3, 0, 6, 7, 5, 2, 1, 4]);
    }

    #[test]
    fn forty_steps_of_digits_leave_no_sample_out() {
        let mut envs = plans(&digits_task(), FeedMode::PerEnv, 1);
        let mut is_used = vec![false; 1266];

        for step in 1..=40 {
            for sample in order(&mut envs[0], StepKey { step, ..FIRST_STEP }) {
                is_used[sample as usize] = true;
            }
        }

        assert!(is_used.into_iter().all(|is_used| is_used));
    }

    #[test]
    fn batches_beyond_one_pass_come_from_a_new_permutation() {
        let full = order(
            &mut plans(&digits_task(), FeedMode::PerEnv, 1)[0],
            FIRST_STEP,
        );
        let long_task = TaskSpec {
            batches_per_step: BatchesPerStep::Count(30),
            ..digits_task()
        };

        let long = order(&mut plans(&long_task, FeedMode::PerEnv, 1)[0], FIRST_STEP);

        // Batches 0..19 are pass 0, batches 19..30 begin pass 1.
        let second = RunRng::new(42, Domain::DataOrder, &[0, 0, 1, 1]).permutation(1266);
        assert_eq!(long[..19 * 64], full);
        assert!(
            long[19 * 64..]
                .iter()
                .zip(second)
                .all(|(&sample, expected)| sample == i64::from(expected))
        );
        assert_eq!(long.len(), 30 * 64);
    }

    #[test]
    fn only_shards_depend_on_the_number_of_envs() {
        let shard_task = TaskSpec {
            batches_per_step: BatchesPerStep::Shard,
            ..digits_task()
        };
        let orders = |task: &TaskSpec, mode: FeedMode, n_envs: usize| -> Vec<Vec<i64>> {
            let mut envs = plans(task, mode, n_envs);
            envs.iter_mut()
                .map(|plan| order(plan, FIRST_STEP))
                .collect()
        };

        let per_env = orders(&digits_task(), FeedMode::PerEnv, 4);
        assert_eq!(per_env[2], orders(&digits_task(), FeedMode::PerEnv, 8)[2]);

        let shards = orders(&shard_task, FeedMode::PerEnv, 4);
        assert_ne!(shards[2], orders(&shard_task, FeedMode::PerEnv, 8)[2]);
        let mut all = shards.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4 * 4 * 64, "shards overlap");

        let common = orders(&digits_task(), FeedMode::Common, 3);
        assert!(common.iter().all(|order| *order == common[0]));
        assert_ne!(common[0], per_env[0]);
    }

    /// The definition of spec 02 §4.3 and §4.2, pixel by pixel.
    fn augmented(data: &DataSet, sample: usize, pad: usize, crop: Crop) -> Vec<f32> {
        let (h, w, c) = (data.height, data.width, data.channels);
        let image = &data.train.images[sample * h * w * c..][..h * w * c];
        let mut pixels = Vec::new();
        for channel in 0..c {
            for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
                let column = if crop.is_flipped { w - 1 - x } else { x };
                let source_y = (y + crop.top).checked_sub(pad).filter(|&y| y < h);
                let source_x = (column + crop.left).checked_sub(pad).filter(|&x| x < w);
                let pixel = match (source_y, source_x) {
                    (Some(y), Some(x)) => image[(y * w + x) * c + channel],
                    _ => 0,
                };
                pixels.push(f32::from(pixel) * data.a[channel] + data.b[channel]);
            }
        }
        pixels
    }

    fn assert_batches_follow_the_definition(augment: Option<AugmentSpec>) {
        let task = small_colour_task();
        let data = load(&task, None).unwrap();
        let arithmetic = FeedArithmetic::new(&task, FeedMode::PerEnv, &data, 1).unwrap();
        let mut feed = StepFeed::new(&resident(&data, augment), arithmetic, 5).unwrap();
        let samples = RunRng::new(42, Domain::DataOrder, &[0, 5, 1]).permutation(6);

        feed.begin_step(FIRST_STEP).unwrap();

        for batch in 0..2 {
            let fetched = feed.fetch(batch).unwrap();
            let labels = Vec::<i64>::try_from(&fetched.y).unwrap();
            let mut rng = RunRng::new(42, Domain::Augmentation, &[0, 5, 1, batch as u64]);
            for row in 0..3 {
                let sample = samples[batch * 3 + row] as usize;
                let (pad, crop) = match augment {
                    None => (0, Crop::default()),
                    Some(augment) => (augment.pad as usize, draw_crop(&mut rng, augment)),
                };
                let found = fetched.x.get(row as i64).contiguous().view(-1);
                assert_eq!(
                    Vec::<f32>::try_from(found).unwrap(),
                    augmented(&data, sample, pad, crop)
                );
                assert_eq!(labels[row], data.train.labels[sample]);
            }
        }
    }

    #[test]
    fn batches_equal_the_definition_bit_by_bit() {
        let augmentations = [
            None,
            Some(AugmentSpec {
                pad: 4,
                flip_p: 0.5,
            }),
            Some(AugmentSpec {
                pad: 1,
                flip_p: 0.0,
            }),
            Some(AugmentSpec {
                pad: 0,
                flip_p: 0.5,
            }),
        ];
        for augment in augmentations {
            assert_batches_follow_the_definition(augment);
        }
    }

    #[test]
    fn batches_lie_in_one_kept_channels_last_buffer() {
        let task = small_colour_task();
        let data = load(&task, None).unwrap();
        let arithmetic = FeedArithmetic::new(&task, FeedMode::PerEnv, &data, 1).unwrap();
        let mut feed = StepFeed::new(&resident(&data, None), arithmetic, 0).unwrap();
        feed.begin_step(FIRST_STEP).unwrap();

        let first = feed.fetch(0).unwrap();
        let second = feed.fetch(1).unwrap();

        assert_eq!(first.x.data_ptr(), second.x.data_ptr());
        assert_eq!(second.x.size(), [3, 3, 8, 8]);
        assert_eq!(second.x.stride(), [192, 1, 24, 3]);
        assert_eq!(feed.step_labels().size(), [6]);
    }

    #[test]
    fn batches_out_of_turn_are_refused() {
        let task = small_colour_task();
        let data = load(&task, None).unwrap();
        let arithmetic = FeedArithmetic::new(&task, FeedMode::PerEnv, &data, 1).unwrap();
        let mut feed = StepFeed::new(&resident(&data, None), arithmetic, 3).unwrap();

        assert!(feed.fetch(0).is_err(), "no step has begun");
        feed.begin_step(FIRST_STEP).unwrap();
        assert!(matches!(
            feed.fetch(1),
            Err(DataError::FeedContract {
                env: 3,
                expected: 0,
                got: 1,
                ..
            })
        ));
        feed.fetch(0).unwrap();
        feed.fetch(1).unwrap();
        assert!(feed.fetch(2).is_err(), "the step has two batches");
    }

    #[test]
    fn validation_is_the_data_in_order_with_a_short_last_batch() {
        let data = load(&digits_task(), None).unwrap();
        let val = resident(&data, None).val;

        let batches = val.batches(256, 2);

        assert_eq!(batches.iter().map(|b| b.n).collect::<Vec<_>>(), [256, 99]);
        assert_eq!(batches[1].x.size(), [99, 1, 8, 8]);
        assert_eq!(
            Vec::<i64>::try_from(&batches[1].y).unwrap(),
            data.val.labels[256..]
        );
        // A black corner pixel is -mean/std.
        let corner = f32::try_from(batches[0].x.get(0).view(-1).get(0)).unwrap();
        assert!((corner + 0.811_17).abs() < 1e-5, "{corner}");
    }
}
