//! The one copy of the data on a device: uploaded once, never written again, read by all envs there.
//!
//! **Crops without arithmetic.** Training images are stored with their padding, channels last, followed by mirrored
//! copies where the task flips. Every crop of every image is then `height` equally spaced runs of `width` pixels, so one
//! overlapping strided view — a window at each pixel — holds all augmented images there are, and augmenting a batch is
//! the same single row gather as fetching it.
//!
//! **Memory.** Training images stay bytes (CIFAR-10: 184 MB per device instead of 737 MB as f32) and are converted and
//! normalised per batch, which measured no slower than gathering f32. The validation part is stored normalised, 4 bytes a
//! value (12 MB for a thousand 32×32 colour images), since every env reads all of it in every step.

use tch::{Device, Kind, TchError, Tensor};

use crate::scenario::AugmentSpec;
use crate::torch::Backend;

use super::part::Shape;
use super::{DataError, DataSet, Part, cutout};

/// Samples on the env's device.
#[derive(Debug)]
pub struct Batch {
    /// Images: `f32 [n, channels, height, width]`, normalised, channels-last strides. Texts: `i32 [n, block]`. A training
    /// batch lies in the env's kept buffer: it is valid until the env's next fetch.
    pub x: Tensor,
    /// `i64 [n]`; of texts `[n, block]`, the token behind each.
    pub y: Tensor,
    /// Number of samples.
    pub n: usize,
}

/// Data on one device. Tensors are `Send` but not `Sync`: envs take handles of their own from it (`StepFeed::new`,
/// `EvalSet::batches`), which share its storage.
#[derive(Debug)]
pub struct ResidentData {
    pub(super) backend: Backend,
    pub(super) augment: Option<AugmentSpec>,
    pub(super) geometry: Geometry,
    /// `u8 [windows, height, width·channels]`, overlapping.
    pub(super) windows: Tensor,
    /// Factor and offset of every value of a window, `f32 [height, width·channels]`.
    pub(super) a: Tensor,
    pub(super) b: Tensor,
    /// Squares to be blanked, `bool [places, height, width·channels]`, overlapping, where the task cuts them out.
    pub(super) masks: Option<Tensor>,
    /// `i64 [n]`.
    pub(super) train_labels: Tensor,
    /// The validation part.
    pub val: EvalSet,
}

impl ResidentData {
    /// Uploads training and validation parts; `augment` decides how training images are padded, mirrored and cut out.
    ///
    /// # Errors
    /// `Device` when the device cannot hold the data.
    pub fn upload(data: &DataSet, augment: Option<AugmentSpec>, backend: Backend) -> Result<Self, DataError> {
        let (geometry, device) = (Geometry::new(data, augment), backend.device);
        let train = || -> Result<[Tensor; 4], TchError> {
            let stored = upload_bytes(&geometry.lay_out(&data.train.images), device)?;
            Ok([
                geometry.windows(&stored)?,
                geometry.window_of(&data.a, device)?,
                geometry.window_of(&data.b, device)?,
                upload_labels(&data.train, device)?,
            ])
        };
        let [windows, a, b, train_labels] = train().map_err(|cause| device_error(data, cause))?;
        let masks = augment
            .and_then(|augment| augment.cutout)
            .map(|side| cutout::masks(geometry.shape(), side as usize, device));
        Ok(Self {
            backend,
            augment,
            geometry,
            windows,
            a,
            b,
            masks: masks.transpose().map_err(|cause| device_error(data, cause))?,
            train_labels,
            val: EvalSet::upload(data, &data.val, device)?,
        })
    }
}

fn device_error(data: &DataSet, cause: TchError) -> DataError {
    let name = data.name.clone();
    DataError::Device { name, cause }
}

/// A part in data order, without augmentation: validation, and test for the final evaluation.
#[derive(Debug)]
pub struct EvalSet {
    /// Images: `f32 [n, channels, height, width]`, normalised, with channels-last strides. Texts: `i32 [n, block]`.
    x: Tensor,
    /// `i64 [n]`, of texts `[n, block]`.
    y: Tensor,
    len: usize,
}

impl EvalSet {
    /// Samples and what is to be predicted of them, a row a sample.
    pub(super) fn of(x: Tensor, y: Tensor) -> Self {
        let len = x.size().first().map_or(0, |&rows| rows as usize);
        Self { x, y, len }
    }

    /// Uploads and normalises `part` of `data`.
    ///
    /// # Errors
    /// `Device` when the device cannot hold the part.
    pub fn upload(data: &DataSet, part: &Part, device: Device) -> Result<Self, DataError> {
        let tensors = || -> Result<(Tensor, Tensor), TchError> {
            let x = normalised(data, &part.images, device)?.f_view([
                part.len() as i64,
                data.height as i64,
                data.width as i64,
                data.channels as i64,
            ])?;
            Ok((x.f_permute([0, 3, 1, 2])?, upload_labels(part, device)?))
        };
        let (x, y) = tensors().map_err(|cause| device_error(data, cause))?;
        Ok(Self { x, y, len: part.len() })
    }

    /// Whether the part holds no sample, as a test part may.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `count` batches of `batch_size` in data order, as views; the last one may be short.
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

/// Where a crop of a training image lies in the stored pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    count: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
    pad: usize,
    is_mirrored: bool,
}

/// The draws of one augmented sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crop {
    pub(super) top: usize,
    pub(super) left: usize,
    pub(super) is_flipped: bool,
}

impl Geometry {
    fn new(data: &DataSet, augment: Option<AugmentSpec>) -> Self {
        Self {
            count: data.train.len(),
            height: data.height,
            width: data.width,
            channels: data.channels,
            pad: augment.map_or(0, |augment| augment.pad as usize),
            is_mirrored: augment.is_some_and(|augment| augment.flip_p > 0.0),
        }
    }

    /// Of an image as networks see it.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            channels: self.channels,
            height: self.height,
            width: self.width,
        }
    }

    fn padded_height(&self) -> usize {
        self.height + 2 * self.pad
    }

    fn padded_width(&self) -> usize {
        self.width + 2 * self.pad
    }

    /// Pixels of one stored image.
    fn area(&self) -> usize {
        self.padded_height() * self.padded_width()
    }

    fn stored_images(&self) -> usize {
        self.count * (1 + usize::from(self.is_mirrored))
    }

    /// The number of the window that shows `crop` of image `sample`. A flipped crop is the crop of the mirrored image
    /// that lies as far from the right as the original lies from the left.
    pub(super) fn window(&self, sample: usize, crop: Crop) -> i64 {
        let (image, left) = if crop.is_flipped {
            (self.count + sample, 2 * self.pad - crop.left)
        } else {
            (sample, crop.left)
        };
        (image * self.area() + crop.top * self.padded_width() + left) as i64
    }

    /// Pads and mirrors `images` (`[n, height, width, channels]`); padding is pixel value 0.
    fn lay_out(&self, images: &[u8]) -> Vec<u8> {
        if self.pad == 0 && !self.is_mirrored {
            return images.to_vec();
        }
        let (row, padded_row) = (self.width * self.channels, self.padded_width() * self.channels);
        let image_size = self.area() * self.channels;
        let mut stored = vec![0; self.stored_images() * image_size];
        let (upright, mirrored) = stored.split_at_mut(self.count * image_size);
        for (sample, image) in images.chunks_exact(self.height * row).enumerate() {
            for (y, pixels) in image.chunks_exact(row).enumerate() {
                let start = sample * image_size + (y + self.pad) * padded_row + self.pad * self.channels;
                upright[start..start + row].copy_from_slice(pixels);
                if self.is_mirrored {
                    let reversed = pixels.rchunks_exact(self.channels).flatten();
                    for (target, &pixel) in mirrored[start..].iter_mut().zip(reversed) {
                        *target = pixel;
                    }
                }
            }
        }
        stored
    }

    /// The view that has a window at every pixel from which one fits into the storage.
    fn windows(&self, stored: &Tensor) -> Result<Tensor, TchError> {
        let last_window = (self.height - 1) * self.padded_width() + self.width;
        let count = self.stored_images() * self.area() - last_window + 1;
        let channels = self.channels as i64;
        stored.f_as_strided(
            [count as i64, self.height as i64, (self.width * self.channels) as i64],
            [channels, self.padded_width() as i64 * channels, 1],
            0,
        )
    }

    /// Channel values laid out as a window.
    fn window_of(&self, values: &[f32], device: Device) -> Result<Tensor, TchError> {
        per_pixel(values, self.height * self.width, device)?
            .f_view([self.height as i64, (self.width * self.channels) as i64])
    }
}

/// `pixels·a + b` in f32, `[images, height·width·channels]`.
fn normalised(data: &DataSet, pixels: &[u8], device: Device) -> Result<Tensor, TchError> {
    let area = data.height * data.width;
    let mut x = upload_bytes(pixels, device)?
        .f_view([-1, (area * data.channels) as i64])?
        .f_to_kind(Kind::Float)?;
    x = x.f_mul_(&per_pixel(&data.a, area, device)?)?;
    x.f_add_(&per_pixel(&data.b, area, device)?)
}

/// Channel values repeated for each of `area` pixels: broadcasting over whole images keeps element-wise operations
/// vectorised, which broadcasting over three channels would not.
fn per_pixel(values: &[f32], area: usize, device: Device) -> Result<Tensor, TchError> {
    Tensor::f_from_slice(&values.repeat(area))?.f_to_device(device)
}

fn upload_bytes(bytes: &[u8], device: Device) -> Result<Tensor, TchError> {
    Tensor::f_from_slice(bytes)?.f_to_device(device)
}

fn upload_labels(part: &Part, device: Device) -> Result<Tensor, TchError> {
    Tensor::f_from_slice(&part.labels)?.f_to_device(device)
}

#[cfg(test)]
mod tests;
