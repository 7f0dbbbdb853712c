//! The shape of images, and the conversion of images that are stored plane by plane into rows of pixels.

use crate::files::counted;

/// The shape that all images of a set have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Values of a pixel.
    pub channels: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl Shape {
    /// Bytes of an image.
    pub fn size(self) -> usize {
        self.channels * self.height * self.width
    }

    /// Height, width and channels, as the values of an image lie in memory.
    pub fn dimensions(self) -> [i64; 3] {
        [self.height, self.width, self.channels].map(|size| size as i64)
    }

    /// [`Self::size`] for sizes that have not been checked.
    pub fn bytes(self) -> u128 {
        let sizes = [self.channels, self.height, self.width];
        sizes
            .into_iter()
            .fold(1, |bytes, size| bytes.saturating_mul(size as u128))
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            channels,
            height,
            width,
        } = self;
        write!(f, "{height}x{width} images of {}", counted(channels, "channel"))
    }
}

/// Writes one image that is stored plane by plane with the channels of a pixel side by side.
pub fn interleave(image: &[u8], plane: usize, pixels: &mut [u8]) {
    let channels = image.len() / plane.max(1);
    for (position, pixel) in pixels.chunks_exact_mut(channels.max(1)).enumerate() {
        for (value, stored) in pixel.iter_mut().zip(image.iter().skip(position).step_by(plane)) {
            *value = *stored;
        }
    }
}
