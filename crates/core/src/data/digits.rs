//! The digits in the binary: 1797 handwritten 8×8 images, values 0..16, so that a run needs no file.
//! Source and licence (CC BY 4.0): `assets/digits/LICENSE.md`.

/// Pixel value that means 1.0.
pub const SCALE: f64 = 16.0;

/// IDX file of the images.
pub const IMAGES: &[u8] = include_bytes!("../../../../assets/digits/optdigits-images-idx3-ubyte");

/// IDX file of the labels.
pub const LABELS: &[u8] = include_bytes!("../../../../assets/digits/optdigits-labels-idx1-ubyte");

#[cfg(test)]
mod tests;
