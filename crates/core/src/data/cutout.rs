//! Squares that are blanked in training images (cutout: DeVries and Taylor 2017, arXiv:1708.04552).
//!
//! One mask of nearly twice the image's size has the square in its middle. Wherever the square lies on an image, clipped at
//! the border, is a window of that mask: blanking is a gather like cropping.

use tch::{Device, TchError, Tensor};

use super::shape::Shape;
use crate::random::Draw;

/// Masks of a square of `side` pixels at every place, `bool [places, height, width·channels]`, overlapping; true where
/// the image is blanked.
pub(super) fn masks(shape: Shape, side: usize, device: Device) -> Result<Tensor, TchError> {
    let (rows, columns, channels) = (2 * shape.height - 1, 2 * shape.width - 1, shape.channels);
    let covers = |centre: usize, position: usize| (centre..centre + side).contains(&(position + side / 2));
    let mask: Vec<bool> = (0..rows)
        .flat_map(|row| (0..columns * channels).map(move |value| (row, value / channels)))
        .map(|(row, column)| covers(shape.height - 1, row) && covers(shape.width - 1, column))
        .collect();
    let row = (columns * channels) as i64;
    Tensor::f_from_slice(&mask)?.f_to_device(device)?.f_as_strided(
        [
            place(shape, 0, 0) + 1,
            shape.height as i64,
            (shape.width * channels) as i64,
        ],
        [channels as i64, row, 1],
        0,
    )
}

/// The number of the mask whose square is centred anywhere on the image, with equal probability.
pub(super) fn draw(rng: &mut impl Draw, shape: Shape) -> i64 {
    let row = rng.below(shape.height as u64) as usize;
    let column = rng.below(shape.width as u64) as usize;
    place(shape, row, column)
}

/// The farther the centre lies from the image's first pixel, the nearer the window to that of the mask.
fn place(shape: Shape, row: usize, column: usize) -> i64 {
    ((shape.height - 1 - row) * (2 * shape.width - 1) + shape.width - 1 - column) as i64
}

#[cfg(test)]
mod tests;
