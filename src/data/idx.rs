//! IDX files: two zero bytes, a type byte, the number of dimensions, big-endian u32 sizes, row-major data.

use super::DataError;

const UNSIGNED_BYTE: u8 = 0x08;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A parsed file: sizes per dimension and the bytes, borrowed.
#[derive(Debug, PartialEq, Eq)]
pub struct IdxBytes<'a> {
    pub shape: Vec<usize>,
    pub data: &'a [u8],
}

/// Images `u8 [n, H, W, C]`, channels last.
#[derive(Debug, PartialEq, Eq)]
pub struct IdxImages {
    pub count: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub pixels: Vec<u8>,
}

/// Parses an IDX file of unsigned bytes. `name` is what errors call the file.
///
/// # Errors
/// `Compressed`, `BadMagic`, or `SizeMismatch` when the length is not exactly what the header implies; the sizes are
/// compared in u128, so a hostile header neither overflows nor allocates.
pub fn parse<'a>(name: &str, bytes: &'a [u8]) -> Result<IdxBytes<'a>, DataError> {
    if bytes.starts_with(&GZIP_MAGIC) {
        return Err(DataError::Compressed { name: name.into() });
    }
    let dimensions = match bytes {
        [0, 0, UNSIGNED_BYTE, dimensions @ 1..=4, ..] => usize::from(*dimensions),
        _ => {
            return Err(DataError::BadMagic {
                name: name.into(),
                found: bytes.iter().take(4).copied().collect(),
            });
        }
    };
    let header = 4 + 4 * dimensions;
    let size_mismatch = |expected: u128| DataError::SizeMismatch {
        name: name.into(),
        expected,
        found: bytes.len() as u64,
    };
    let Some((head, data)) = bytes.split_at_checked(header) else {
        return Err(size_mismatch(header as u128));
    };
    let sizes = head[4..]
        .chunks_exact(4)
        .map(|size| u32::from_be_bytes([size[0], size[1], size[2], size[3]]));
    let elements: u128 = sizes.clone().map(u128::from).product();
    if elements != data.len() as u128 {
        return Err(size_mismatch(header as u128 + elements));
    }
    Ok(IdxBytes {
        shape: sizes.map(|size| size as usize).collect(),
        data,
    })
}

/// Parses images of shape `n,H,W` or `n,C,H,W` into channels-last bytes.
///
/// # Errors
/// Those of [`parse`], and `Dimensions`.
pub fn parse_images(name: &str, bytes: &[u8]) -> Result<IdxImages, DataError> {
    let IdxBytes { shape, data } = parse(name, bytes)?;
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
    Ok(IdxImages {
        count,
        channels,
        height,
        width,
        pixels: channels_last(data, channels, height * width),
    })
}

/// Parses labels of shape `n`.
///
/// # Errors
/// Those of [`parse`], and `Dimensions`.
pub fn parse_labels(name: &str, bytes: &[u8]) -> Result<Vec<i64>, DataError> {
    let IdxBytes { shape, data } = parse(name, bytes)?;
    if shape.len() != 1 {
        return Err(DataError::Dimensions {
            name: name.into(),
            what: "labels",
            expected: "1 (n)",
            found: shape.len(),
        });
    }
    Ok(data.iter().copied().map(i64::from).collect())
}

fn channels_last(planes: &[u8], channels: usize, plane: usize) -> Vec<u8> {
    if channels == 1 || plane == 0 {
        return planes.to_vec();
    }
    let mut pixels = Vec::with_capacity(planes.len());
    for image in planes.chunks_exact((channels * plane).max(1)) {
        for position in 0..plane {
            pixels.extend((0..channels).map(|channel| image[channel * plane + position]));
        }
    }
    pixels
}

#[cfg(test)]
mod tests;
