//! IDX files: two zero bytes, a type byte, the number of dimensions, big-endian u32 sizes, row-major data.

use std::fs::File;
use std::io::Read;

use super::DataError;
use super::locate::{check_length, fill, rest};
use super::part::{Images, LabelsAt, Part, Pool};
use super::records::{RecordFile, Records};
use super::shape::{Shape, channels_last};

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

/// Images, channels last.
#[derive(Debug, PartialEq)]
pub struct IdxImages {
    /// The file, as errors name it.
    pub name: String,
    pub count: usize,
    pub shape: Shape,
    pub images: Images,
}

/// What a header says.
struct Header {
    shape: Vec<usize>,
    /// Product of the sizes, each of them below 2^32.
    elements: u128,
    /// Bytes of the header itself.
    length: usize,
}

impl Header {
    fn read(name: &str, input: &mut impl Read) -> Result<Self, DataError> {
        let mut magic = [0; MAGIC];
        let found = fill(name, input, &mut magic, 0)?;
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
        let length = MAGIC + sizes.len();
        let found = fill(name, input, &mut sizes, MAGIC as u64)?;
        if found < sizes.len() {
            return Err(DataError::SizeMismatch {
                name: name.into(),
                expected: length as u128,
                found: (MAGIC + found) as u64,
            });
        }
        let sizes = sizes
            .chunks_exact(4)
            .map(|size| u32::from_be_bytes([size[0], size[1], size[2], size[3]]));
        Ok(Self {
            elements: sizes.clone().map(u128::from).product(),
            shape: sizes.map(|size| size as usize).collect(),
            length,
        })
    }

    /// Number and shape of images: `n,H,W` or `n,C,H,W`.
    fn images(&self, name: &str) -> Result<(usize, Shape), DataError> {
        let (count, channels, height, width) = match self.shape[..] {
            [n, h, w] => (n, 1, h, w),
            [n, c, h, w] => (n, c, h, w),
            _ => {
                return Err(DataError::Dimensions {
                    name: name.into(),
                    what: "images",
                    expected: "3 (n,H,W) or 4 (n,C,H,W)",
                    found: self.shape.len(),
                });
            }
        };
        // With no byte behind them the sizes may be anything, and their products need not fit.
        if self.elements == 0 {
            return Err(DataError::NoImages { place: name.into() });
        }
        let shape = Shape {
            channels,
            height,
            width,
        };
        Ok((count, shape))
    }
}

/// Reads an IDX file of unsigned bytes to its end. `name` is what errors call the file.
///
/// # Errors
/// `BadMagic`, `Unreadable`, or `SizeMismatch` when the length is not exactly what the header implies; the sizes are
/// compared in u128 and memory grows with what is read, so a hostile header neither overflows nor allocates.
pub fn read(name: &str, mut input: impl Read) -> Result<IdxBytes, DataError> {
    let header = Header::read(name, &mut input)?;
    Ok(IdxBytes {
        data: rest(name, &mut input, header.elements, header.length as u64)?,
        shape: header.shape,
    })
}

/// Reads images of shape `n,H,W` or `n,C,H,W` into channels-last bytes.
///
/// # Errors
/// Those of [`read`], `Dimensions` and `NoImages`.
pub fn read_images(name: &str, mut input: impl Read) -> Result<IdxImages, DataError> {
    let header = Header::read(name, &mut input)?;
    let data = rest(name, &mut input, header.elements, header.length as u64)?;
    let (count, shape) = header.images(name)?;
    Ok(IdxImages {
        name: name.into(),
        count,
        shape,
        images: channels_last(data, shape.channels, shape.height * shape.width).into(),
    })
}

/// The same images, which stay in their file.
///
/// # Errors
/// Those of [`read_images`].
pub fn open_images(name: &str, file: File) -> Result<IdxImages, DataError> {
    let header = Header::read(name, &mut &file)?;
    check_length(name, &file, header.elements.saturating_add(header.length as u128))?;
    let (count, shape) = header.images(name)?;
    let file = RecordFile {
        name: name.into(),
        file,
        first: header.length as u64,
        each: shape.size() as u64,
        count,
    };
    Ok(IdxImages {
        name: name.into(),
        count,
        shape,
        images: Images::Files(Records::new(vec![file], shape, true)),
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

/// Images with the file of their labels, by the name that errors call it.
///
/// # Errors
/// Those of [`read_labels`]; `LengthMismatch`.
pub fn labelled(images: IdxImages, (label_name, labels): (&str, impl Read)) -> Result<Pool, DataError> {
    let targets = read_labels(label_name, labels)?;
    if images.count != targets.len() {
        return Err(DataError::LengthMismatch {
            name: images.name,
            images: images.count,
            label_name: label_name.into(),
            labels: targets.len(),
        });
    }
    Ok(Pool {
        shape: images.shape,
        part: Part {
            images: images.images,
            labels: targets,
        },
        labels_at: Some(LabelsAt {
            file: label_name.into(),
            first: (MAGIC + 4) as u64,
            each: 1,
        }),
    })
}

#[cfg(test)]
mod tests;
