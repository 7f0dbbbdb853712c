//! The data as the envs of a device meet them: the one copy there, uploaded once, never written again, read by all; or, of
//! training images that are to lie elsewhere, the way to them.
//!
//! **Crops without arithmetic.** Training images on the device are stored with their padding, channels last, followed by mirrored
//! copies where the task flips. Every crop of every image is then `height` equally spaced runs of `width` pixels, so one
//! overlapping strided view — a window at each pixel — holds all augmented images there are, and augmenting a batch is
//! the same single row gather as fetching it.
//!
//! **Memory.** Training images stay bytes (CIFAR-10: 184 MB per device instead of 737 MB as f32) and are converted and
//! normalised per batch, which measured no slower than gathering f32. The validation part is stored normalised, 4 bytes a
//! value (12 MB for a thousand 32×32 colour images), since every env reads all of it in every step.

use std::sync::Arc;

use tch::{Device, Kind, TchError, Tensor};

use crate::scenario::AugmentSpec;
use crate::torch::{Backend, TorchError, upload};

use super::ahead::{Readers, Rows};
use super::geometry::{Geometry, per_pixel};
use super::{DataError, DataSet, Part, cutout};

/// Samples on the env's device.
#[derive(Debug)]
pub struct Batch {
    /// Images: `[n, channels, height, width]`, f32, normalised as the task says, channels-last strides. Texts:
    /// `[n, block]`, i32, tokens. On the env's device. A training batch lies in the env's kept buffer: it is valid until the env's
    /// next fetch.
    pub x: Tensor,
    /// Classes: `[n]`, i64; for texts `[n, block]`, the token after each. On the env's device.
    pub y: Tensor,
    /// Number of samples.
    pub n: usize,
}

/// Data on one device. Tensors are `Send` but not `Sync`: envs take their own handles from it (`StepFeed::new`,
/// `EvalSet::batches`), which share its storage.
#[derive(Debug)]
pub struct ResidentData {
    pub(super) backend: Backend,
    pub(super) augment: Option<AugmentSpec>,
    pub(super) geometry: Geometry,
    pub(super) train: TrainImages,
    /// Factor and offset of every value of a window, `f32 [height, width·channels]`.
    pub(super) a: Tensor,
    pub(super) b: Tensor,
    /// Squares to be blanked, `bool [places, height, width·channels]`, overlapping, where the task cuts them out.
    pub(super) masks: Option<Tensor>,
    /// `i64 [n]`.
    pub(super) train_labels: Tensor,
    /// The validation part.
    pub val: EvalSet,
    /// The test part.
    pub test: EvalSet,
}

/// The place in which feeds find training images.
#[derive(Debug)]
pub(super) enum TrainImages {
    /// On the device: `u8 [windows, height, width·channels]`, overlapping.
    Windows(Tensor),
    /// Elsewhere: what reads them, and who.
    Elsewhere(Arc<dyn Rows>, Readers),
}

/// Training images that are cut when they are asked for.
#[derive(Debug)]
struct Cuts {
    part: Arc<Part>,
    geometry: Geometry,
}

impl Rows for Cuts {
    fn read(&self, window: i64, row: &mut [u8], scratch: &mut Vec<u8>) -> Result<(), DataError> {
        let (sample, crop) = self.geometry.crop(window);
        self.geometry.cut(self.part.image(sample, scratch)?, crop, row);
        Ok(())
    }
}

impl ResidentData {
    /// Uploads the validation and test parts, and the training part unless `readers` fetch its images from where they are
    /// stored. `augment` decides how training images are padded, mirrored and cut out.
    ///
    /// # Errors
    /// A device that cannot hold the data, or the errors of reading images.
    pub fn upload(
        data: &DataSet,
        augment: Option<AugmentSpec>,
        backend: Backend,
        readers: Option<&Readers>,
    ) -> Result<Self, DataError> {
        let (geometry, device) = (Geometry::new(data, augment), backend.device);
        let train = match readers {
            Some(readers) => {
                let part = Arc::clone(&data.train);
                TrainImages::Elsewhere(Arc::new(Cuts { part, geometry }), readers.clone())
            }
            None => {
                let stored = geometry.lay_out(&data.train)?;
                let windows =
                    upload_bytes(&stored, device).and_then(|stored| geometry.windows(&stored).map_err(Into::into));
                TrainImages::Windows(windows.map_err(|cause| DataError::device(&data.name, cause))?)
            }
        };
        let constants = || -> Result<[Tensor; 3], TchError> {
            Ok([
                geometry.window_of(&data.a, device)?,
                geometry.window_of(&data.b, device)?,
                upload_labels(&data.train, device)?,
            ])
        };
        let [a, b, train_labels] = constants().map_err(|cause| DataError::device(&data.name, cause))?;
        let masks = augment
            .and_then(|augment| augment.cutout)
            .map(|side| cutout::masks(geometry.shape, side as usize, device));
        Ok(Self {
            backend,
            augment,
            geometry,
            train,
            a,
            b,
            masks: masks
                .transpose()
                .map_err(|cause| DataError::device(&data.name, cause))?,
            train_labels,
            val: EvalSet::upload(data, &data.val, device)?,
            test: EvalSet::upload(data, &data.test, device)?,
        })
    }
}

/// A part in data order, without augmentation: validation, and test for the final evaluation.
#[derive(Debug)]
pub struct EvalSet {
    /// Images: `f32 [n, channels, height, width]`, normalised, with channels-last strides. Texts: `i32 [n, block]`.
    x: Tensor,
    /// `i64 [n]`, for texts `[n, block]`.
    y: Tensor,
    len: usize,
}

impl EvalSet {
    /// Samples and their targets, one row per sample.
    pub(super) fn of(x: Tensor, y: Tensor) -> Self {
        let len = x.size().first().map_or(0, |&rows| rows as usize);
        Self { x, y, len }
    }

    /// Uploads and normalises `part` of `data`.
    ///
    /// # Errors
    /// A device that cannot hold the part, or the errors of reading images.
    pub fn upload(data: &DataSet, part: &Part, device: Device) -> Result<Self, DataError> {
        let pixels = part.pixels()?;
        let tensors = || -> Result<(Tensor, Tensor), TorchError> {
            let [height, width, channels] = data.shape.dimensions();
            let x = normalised(data, &pixels, device)?.f_view([part.len() as i64, height, width, channels])?;
            Ok((x.f_permute([0, 3, 1, 2])?, upload_labels(part, device)?))
        };
        let (x, y) = tensors().map_err(|cause| DataError::device(&data.name, cause))?;
        Ok(Self { x, y, len: part.len() })
    }

    /// Returns whether the part holds no sample, as a test part may.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `count` batches of `batch_size` in data order, as views. The last one may be short.
    pub fn batches(&self, batch_size: usize, count: usize) -> Vec<Batch> {
        (0..self.len)
            .step_by(batch_size.max(1))
            .take(count)
            .map(|first| {
                let n = batch_size.min(self.len - first);
                Batch {
                    x: self.x.narrow(0, first as i64, n as i64),
                    y: self.y.narrow(0, first as i64, n as i64),
                    n,
                }
            })
            .collect()
    }
}

/// `pixels·a + b` in f32, `[images, height·width·channels]`.
fn normalised(data: &DataSet, pixels: &[u8], device: Device) -> Result<Tensor, TorchError> {
    let area = data.shape.height * data.shape.width;
    let mut x = upload_bytes(pixels, device)?
        .f_view([-1, (area * data.shape.channels) as i64])?
        .f_to_kind(Kind::Float)?;
    x = x.f_mul_(&per_pixel(&data.a, area, device)?)?;
    Ok(x.f_add_(&per_pixel(&data.b, area, device)?)?)
}

/// Bytes that go to a CUDA device at a time: pinned memory is taken for these, not for all data.
const PIECE: usize = 32 << 20;

/// `u8 [n]`.
fn upload_bytes(bytes: &[u8], device: Device) -> Result<Tensor, TorchError> {
    if !device.is_cuda() {
        return Ok(Tensor::f_from_slice(bytes)?.f_to_device(device)?);
    }
    let to = Tensor::f_empty([bytes.len() as i64], (Kind::Uint8, device))?;
    upload_pieces(&to, bytes, PIECE)?;
    Ok(to)
}

/// Uploads `piece` bytes at a time; on CUDA the next are laid out while these are on their way.
fn upload_pieces(to: &Tensor, bytes: &[u8], piece: usize) -> Result<(), TorchError> {
    for (index, bytes) in bytes.chunks(piece).enumerate() {
        let place = to.f_narrow(0, (index * piece) as i64, bytes.len() as i64)?;
        upload(&place, bytes)?;
    }
    Ok(())
}

fn upload_labels(part: &Part, device: Device) -> Result<Tensor, TchError> {
    Tensor::f_from_slice(&part.labels)?.f_to_device(device)
}

#[cfg(test)]
mod tests;
