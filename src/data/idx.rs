//! IDX files: two zero bytes, a type byte, the number of dimensions, big-endian u32 sizes, row-major data.

use std::io::Read;

use super::DataError;
use super::locate::{fill, rest};
use super::part::{LabelsAt, Part, Pool, Shape, channels_last};

const UNSIGNED_BYTE: u8 = 0x08;
const MAGIC: usize = 4;
const MOST_DIMENSIONS: u8 = 4;

/// How a file of unsigned bytes begins.
pub const START: [u8; 3] = [0, 0, UNSIGNED_BYTE];

/// A parsed file: sizes per dimension and the bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct IdxBytes {
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

/// Images `u8 [n, H, W, C]`, channels last.
#[derive(Debug, PartialEq, Eq)]
pub struct IdxImages {
    pub count: usize,
    pub shape: Shape,
    pub pixels: Vec<u8>,
}

/// Reads an IDX file of unsigned bytes to its end. `name` is what errors call the file.
///
/// # Errors
/// `BadMagic`, `Unreadable`, or `SizeMismatch` when the length is not exactly what the header implies; the sizes are
/// compared in u128 and memory grows with what is read, so a hostile header neither overflows nor allocates.
pub fn read(name: &str, mut input: impl Read) -> Result<IdxBytes, DataError> {
    let mut magic = [0; MAGIC];
    let found = fill(name, &mut input, &mut magic, 0)?;
    let dimensions = match magic[..found] {
        [0, 0, UNSIGNED_BYTE, dimensions @ 1..=MOST_DIMENSIONS] => usize::from(dimensions),
        _ => {
            return Err(DataError::BadMagic {
                name: name.into(),
                found: magic[..found].to_vec(),
            });
        }
    };
    let mut sizes = vec![0; 4 * dimensions];
    let header = MAGIC + sizes.len();
    let found = fill(name, &mut input, &mut sizes, MAGIC as u64)?;
    if found < sizes.len() {
        return Err(DataError::SizeMismatch {
            name: name.into(),
            expected: header as u128,
            found: (MAGIC + found) as u64,
        });
    }
    let sizes = sizes
        .chunks_exact(4)
        .map(|size| u32::from_be_bytes([size[0], size[1], size[2], size[3]]));
    let elements: u128 = sizes.clone().map(u128::from).product();
    Ok(IdxBytes {
        shape: sizes.map(|size| size as usize).collect(),
        data: rest(name, &mut input, elements, header as u64)?,
    })
}

/// Reads images of shape `n,H,W` or `n,C,H,W` into channels-last bytes.
///
/// # Errors
/// Those of [`read`], `Dimensions` and `NoImages`.
pub fn read_images(name: &str, input: impl Read) -> Result<IdxImages, DataError> {
    let IdxBytes { shape, data } = read(name, input)?;
    let (count, channels, height, width) = match shape[..] {
        [n, h, w] => (n, 1, h, w),
        [n, c, h, w] => (n, c, h, w),
        _ => {
            return Err(DataError::Dimensions {
                name: name.into(),
                what: "images",
                expected: "3 (n,H,W) or 4 (n,C,H,W)",
                found: shape.len(),
            });
        }
    };
    // With no byte behind them the sizes may be anything, and their products need not fit.
    if data.is_empty() {
        return Err(DataError::NoImages { place: name.into() });
    }
    Ok(IdxImages {
        count,
        shape: Shape {
            channels,
            height,
            width,
        },
        pixels: channels_last(data, channels, height * width),
    })
}

/// Reads labels of shape `n`.
///
/// # Errors
/// Those of [`read`], and `Dimensions`.
pub fn read_labels(name: &str, input: impl Read) -> Result<Vec<i64>, DataError> {
    let IdxBytes { shape, data } = read(name, input)?;
    if shape.len() != 1 {
        return Err(DataError::Dimensions {
            name: name.into(),
            what: "labels",
            expected: "1 (n)",
            found: shape.len(),
        });
    }
    Ok(data.into_iter().map(i64::from).collect())
}

/// Reads a file of images and the one of their labels, each by the name that errors call it.
///
/// # Errors
/// Those of [`read_images`] and [`read_labels`]; `LengthMismatch`.
pub fn read_pair<I: Read, L: Read>(images: (&str, I), labels: (&str, L)) -> Result<Pool, DataError> {
    let pool = read_images(images.0, images.1)?;
    let targets = read_labels(labels.0, labels.1)?;
    if pool.count != targets.len() {
        return Err(DataError::LengthMismatch {
            name: images.0.into(),
            images: pool.count,
            label_name: labels.0.into(),
            labels: targets.len(),
        });
    }
    Ok(Pool {
        shape: pool.shape,
        part: Part {
            images: pool.pixels,
            labels: targets,
        },
        labels_at: Some(LabelsAt {
            file: labels.0.into(),
            first: (MAGIC + 4) as u64,
            each: 1,
        }),
    })
}

#[cfg(test)]
mod tests;
