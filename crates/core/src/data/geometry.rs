//! Crops of training images as numbers: every crop of every image, mirrored or not, is one window.
//!
//! Images that are laid out on a device hold all their windows at once, as a view. For other images, a window is cut
//! when it is requested. Both show the same pixels.

use tch::{Device, TchError, Tensor};

use crate::scenario::AugmentSpec;

use super::shape::Shape;
use super::{DataError, DataSet, Part};

/// The place of a training image's crop in the stored pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    count: usize,
    /// Shape of an image as networks see it.
    pub shape: Shape,
    pad: usize,
    is_mirrored: bool,
}

/// The draws of one augmented sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crop {
    pub top: usize,
    pub left: usize,
    pub is_flipped: bool,
}

impl Geometry {
    pub fn new(data: &DataSet, augment: Option<AugmentSpec>) -> Self {
        Self {
            count: data.train.len(),
            shape: data.shape,
            pad: augment.map_or(0, |augment| augment.pad as usize),
            is_mirrored: augment.is_some_and(|augment| augment.flip_p > 0.0),
        }
    }

    fn padded_height(&self) -> usize {
        self.shape.height + 2 * self.pad
    }

    fn padded_width(&self) -> usize {
        self.shape.width + 2 * self.pad
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
    pub fn window(&self, sample: usize, crop: Crop) -> i64 {
        let (image, left) = if crop.is_flipped {
            (self.count + sample, 2 * self.pad - crop.left)
        } else {
            (sample, crop.left)
        };
        (image * self.area() + crop.top * self.padded_width() + left) as i64
    }

    /// The image and the crop of it that a window shows.
    pub fn crop(&self, window: i64) -> (usize, Crop) {
        let window = window as usize;
        let (image, rest) = (window / self.area(), window % self.area());
        let (top, left) = (rest / self.padded_width(), rest % self.padded_width());
        let crop = |left, is_flipped| Crop { top, left, is_flipped };
        match image.checked_sub(self.count) {
            None => (image, crop(left, false)),
            Some(sample) => (sample, crop(2 * self.pad - left, true)),
        }
    }

    /// Writes what a crop shows of `image` into `row`, both `[height, width, channels]`; outside the image that is pixel
    /// value 0.
    pub fn cut(&self, image: &[u8], crop: Crop, row: &mut [u8]) {
        let Shape {
            channels,
            height,
            width,
        } = self.shape;
        // Columns of the crop that lie on the image, counted before it is mirrored.
        let first = self.pad.saturating_sub(crop.left).min(width);
        let end = (width + self.pad).saturating_sub(crop.left).clamp(first, width);
        row.fill(0);
        for (y, line) in row.chunks_exact_mut(width * channels).enumerate() {
            let source = (y + crop.top).checked_sub(self.pad).filter(|&y| y < height);
            let (Some(source), true) = (source, first < end) else {
                continue;
            };
            let start = (source * width + first + crop.left - self.pad) * channels;
            let shown = &image[start..start + (end - first) * channels];
            if crop.is_flipped {
                let mirrored = &mut line[(width - end) * channels..(width - first) * channels];
                let pixels = mirrored.chunks_exact_mut(channels).zip(shown.rchunks_exact(channels));
                pixels.for_each(|(pixel, stored)| pixel.copy_from_slice(stored));
            } else {
                line[first * channels..end * channels].copy_from_slice(shown);
            }
        }
    }

    /// Bytes of the layout by [`Self::lay_out`].
    pub fn stored_bytes(&self) -> u128 {
        [self.stored_images(), self.area(), self.shape.channels]
            .into_iter()
            .fold(1, |bytes, size| bytes.saturating_mul(size as u128))
    }

    /// Pads and mirrors the images of a part. Padding is pixel value 0.
    ///
    /// # Errors
    /// The errors of reading images.
    pub fn lay_out(&self, part: &Part) -> Result<Vec<u8>, DataError> {
        let Shape { channels, width, .. } = self.shape;
        let (row, padded_row) = (width * channels, self.padded_width() * channels);
        let image_size = self.area() * channels;
        let mut stored = vec![0; self.stored_images() * image_size];
        let (upright, mirrored) = stored.split_at_mut(self.count * image_size);
        let mut starts = (0..self.count).map(|sample| sample * image_size);
        part.for_each_image(|image| {
            let sample = starts.next().unwrap_or_default();
            for (y, pixels) in image.chunks_exact(row).enumerate() {
                let start = sample + (y + self.pad) * padded_row + self.pad * channels;
                upright[start..start + row].copy_from_slice(pixels);
                if self.is_mirrored {
                    let reversed = pixels.rchunks_exact(channels).flatten();
                    for (target, &pixel) in mirrored[start..].iter_mut().zip(reversed) {
                        *target = pixel;
                    }
                }
            }
        })?;
        Ok(stored)
    }

    /// The view that has a window at every pixel from which one fits into the storage.
    pub fn windows(&self, stored: &Tensor) -> Result<Tensor, TchError> {
        let [height, width, channels] = self.shape.dimensions();
        let last_window = (self.shape.height - 1) * self.padded_width() + self.shape.width;
        let count = self.stored_images() * self.area() - last_window + 1;
        stored.f_as_strided(
            [count as i64, height, width * channels],
            [channels, self.padded_width() as i64 * channels, 1],
            0,
        )
    }

    /// Channel values laid out as a window.
    pub fn window_of(&self, values: &[f32], device: Device) -> Result<Tensor, TchError> {
        let [height, width, channels] = self.shape.dimensions();
        per_pixel(values, (height * width) as usize, device)?.f_view([height, width * channels])
    }
}

/// Channel values repeated for each of `area` pixels: broadcasting over whole images keeps element-wise operations
/// vectorised, which broadcasting over three channels would not.
pub fn per_pixel(values: &[f32], area: usize, device: Device) -> Result<Tensor, TchError> {
    Tensor::f_from_slice(&values.repeat(area))?.f_to_device(device)
}

#[cfg(test)]
mod tests;
