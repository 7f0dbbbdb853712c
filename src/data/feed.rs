//! The batches of one env (spec 02 §5.2, §5.3): once a step the order and the augmentation of all its batches are drawn
//! on the host and uploaded as one integer tensor; per batch one gather fills the env's kept input buffer.
//!
//! There is no cursor or iterator that survives a step: order and augmentation are functions of (seed, round, env, step),
//! so nothing needs saving, and no env depends on another.

use tch::{Kind, TchError, Tensor};

use super::plan::{FeedPlan, StepKey};
use super::{DataError, FeedArithmetic, ResidentData};

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
    /// Allocates the feed of env `env` (its index within its group) on the resident data's device; to be called inside the
    /// stream guard of the env, so that the buffers belong to its stream.
    ///
    /// # Errors
    /// `FeedDevice` when the device cannot hold the buffers.
    pub fn new(resident: &ResidentData, arithmetic: FeedArithmetic, env: u64) -> Result<Self, DataError> {
        let plan = FeedPlan::new(resident, arithmetic, env);
        Self::allocate(resident, plan).map_err(|cause| DataError::FeedDevice { env, cause })
    }

    fn allocate(resident: &ResidentData, plan: FeedPlan) -> Result<Self, TchError> {
        let (device, geometry) = (resident.device, resident.geometry);
        let (height, width, channels) = (geometry.height as i64, geometry.width as i64, geometry.channels as i64);
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
            let _ = feed
                .train_labels
                .f_index_select_out(&feed.labels, 0, &feed.sample_positions)?;
            Ok(())
        };
        let result = upload(self);
        self.plan.keep(positions);
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
        self.gather(batch).map_err(|cause| self.device_error(cause))?;
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
        let _ = self.windows.f_index_select_out(&self.pixels, 0, positions)?;
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

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;
    use crate::data::dataset::tests::{digits_task, small_colour_task};
    use crate::data::plan::draw_crop;
    use crate::data::resident::Crop;
    use crate::data::{DataSet, load};
    use crate::random::{Domain, Draw, RunRng};
    use crate::scenario::{AugmentSpec, FeedMode};

    const FIRST_STEP: StepKey = StepKey {
        seed: 42,
        round: 0,
        step: 1,
    };

    fn resident(data: &DataSet, augment: Option<AugmentSpec>) -> ResidentData {
        ResidentData::upload(data, augment, Device::Cpu).unwrap()
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
            Some(AugmentSpec { pad: 4, flip_p: 0.5 }),
            Some(AugmentSpec { pad: 1, flip_p: 0.0 }),
            Some(AugmentSpec { pad: 0, flip_p: 0.5 }),
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
        assert_eq!(Vec::<i64>::try_from(&batches[1].y).unwrap(), data.val.labels[256..]);
        // A black corner pixel is -mean/std.
        let corner = f32::try_from(batches[0].x.get(0).view(-1).get(0)).unwrap();
        assert!((corner + 0.811_17).abs() < 1e-5, "{corner}");
    }
}
