//! Data sets of NumPy arrays: NPY pairs, or one NPZ archive with arrays of known names.
//!
//! Images are kept in 8 bits a value, as all images are. Floats are scaled so that their `scale` becomes 255; what that
//! rounds is noted.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::Found;
use super::npy::{self, Array, Element, ElementKind};
use crate::data::DataError;
use crate::data::error::{listed, listed_first};
use crate::data::locate::{open, open_unpacked};
use crate::data::part::{Images, LabelsAt, Part, Pool};
use crate::data::records::{RecordFile, Records};
use crate::data::shape::{Shape, channels_last};
use crate::files;
use crate::scenario::ArrayLayout;

/// Names of the images and labels of a part in an NPZ archive, as Keras, MedMNIST and people write them.
type Names = [[&'static str; 2]];
const TRAIN: &Names = &[
    ["x_train", "y_train"],
    ["train_images", "train_labels"],
    ["images", "labels"],
    ["x", "y"],
];
const VAL: &Names = &[["x_val", "y_val"], ["x_valid", "y_valid"], ["val_images", "val_labels"]];
const TEST: &Names = &[["x_test", "y_test"], ["test_images", "test_labels"]];
const VALID_NAMES: &str = "x_train and y_train, train_images and train_labels, images and labels, or x and y; \
     optional: x_val and y_val, x_valid and y_valid, val_images and val_labels, x_test and y_test, test_images and test_labels";

/// Values of float images are this close to a multiple of 1/255 if they were made from bytes.
const ROUNDING: f64 = 1e-3;
const BYTE_SCALE: f64 = 255.0;

/// What arrays do not say themselves. A value that is `None` is guessed, and the guess noted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stated {
    /// Guessed: channels are the size of 1 to 4; where two are, that which leaves squares.
    pub layout: Option<ArrayLayout>,
    /// Value that means 1.0. Guessed: 1 for floats none of which is above it, 255 for bytes and for floats above 2.
    pub scale: Option<f64>,
}

/// Reads a pair of arrays, and one of the test part if there is one.
///
/// # Errors
/// `Io`; those of [`npy::read`]; `NpyType`, `NpyShape`, `UnclearScale`, `UnequalScales`, `PixelOutOfRange`, `LengthMismatch`,
/// `NoImages`.
pub fn read_pairs(train: [PathBuf; 2], test: Option<[PathBuf; 2]>, stated: &mut Stated) -> Result<Found, DataError> {
    let packed = |path: &Path| -> Result<Array, DataError> {
        let input = open(path)?;
        npy::read(&input.name, input.bytes)
    };
    let read = |[images, labels]: [PathBuf; 2]| -> Result<[Array; 2], DataError> {
        let images = match open_unpacked(&images)? {
            Some(file) => npy::open(&images.display().to_string(), file)?,
            None => packed(&images)?,
        };
        Ok([images, packed(&labels)?])
    };
    let test = test.map(read).transpose()?;
    found("npy", [Some(read(train)?), None, test], stated)
}

/// Reads an NPZ archive, as [`read_pairs`].
///
/// # Errors
/// Those of [`read_pairs`]; `MissingArray`, `Archive`, `UnknownFormat`.
pub fn read_archive(path: &Path, stated: &mut Stated) -> Result<Found, DataError> {
    let io = |cause| DataError::io(path, cause);
    let damaged = |cause: ZipError| DataError::Archive {
        file: path.display().to_string(),
        cause: cause.to_string(),
    };
    let file = BufReader::new(files::open(path).map_err(io)?);
    let mut archive = ZipArchive::new(file).map_err(damaged)?;
    let names = archive.file_names().map(|name| Ok(name?.into_owned()));
    let present = names.collect::<Result<Vec<String>, ZipError>>().map_err(damaged)?;
    if !present.is_empty() && !present.iter().any(|member| member.ends_with(".npy")) {
        let (path, named) = (path.into(), listed_first(3, &present));
        let what = format!("it is an archive of {named}; unpack it, and name the folder");
        return Err(DataError::UnknownFormat { path, what });
    }
    let mut left_out = present.clone();
    let has = |name: &str| present.iter().any(|member| member.strip_suffix(".npy") == Some(name));
    let mut array = |name: &str| -> Result<Array, DataError> {
        if !has(name) {
            return Err(DataError::MissingArray {
                file: path.into(),
                name: name.into(),
                found: present.clone(),
                valid: VALID_NAMES,
            });
        }
        let member = archive.by_name(&format!("{name}.npy")).map_err(damaged)?;
        left_out.retain(|member| member.strip_suffix(".npy") != Some(name));
        npy::read(&format!("{}: {name}.npy", path.display()), member)
    };
    let mut part = |names: &Names| -> Result<Option<[Array; 2]>, DataError> {
        let used = names.iter().find(|pair| pair.iter().any(|name| has(name)));
        used.map(|[images, labels]| Ok([array(images)?, array(labels)?]))
            .transpose()
    };
    let (train, val, test) = (part(TRAIN)?, part(VAL)?, part(TEST)?);
    if train.is_none() {
        return Err(DataError::MissingArray {
            file: path.into(),
            name: TRAIN[0][0].into(),
            found: present,
            valid: VALID_NAMES,
        });
    }
    let mut set = found("npz", [train, val, test], stated)?;
    let named = listed(left_out);
    let note = format!("npz: not read, as they are of no part or of a second pair: {named}");
    set.notes.extend((!named.is_empty()).then_some(note));
    Ok(set)
}

fn found(format: &'static str, parts: [Option<[Array; 2]>; 3], stated: &mut Stated) -> Result<Found, DataError> {
    let images = || parts.iter().flatten().map(|[images, _]| images);
    let Some(first) = images().next() else {
        return Err(DataError::NoImages { place: format.into() });
    };
    if let Some(other) = images().find(|other| other.descr != first.descr) {
        return Err(DataError::NpyType {
            file: other.file.clone(),
            what: "images",
            found: other.descr.clone(),
            valid: "the type that the images of the training part have",
        });
    }
    let scale = common_scale(images(), stated.scale)?;
    let layout = stated.layout.map_or_else(|| likely_layout(first), Ok)?;
    *stated = Stated {
        layout: Some(layout),
        scale: Some(scale),
    };
    let stored_scale = if is_float(first.element) { BYTE_SCALE } else { scale };
    let mut notes = Vec::new();
    let mut pool = |arrays: Option<[Array; 2]>| -> Result<Option<Pool>, DataError> {
        let pool = arrays.map(|[images, labels]| pool_of(images, &labels, layout, scale, &mut notes));
        pool.transpose()
    };
    let [train, val, test] = parts.map(&mut pool);
    let Some(train) = train? else {
        return Err(DataError::NoImages { place: format.into() });
    };
    Ok(Found {
        val: val?,
        test: test?,
        notes,
        ..Found::of(format, stored_scale, train)
    })
}

fn is_float(element: Element) -> bool {
    element.kind == ElementKind::Float && matches!(element.bytes, 4 | 8)
}

/// The scale of all parts: `stated`, or by the largest of all floats. Just above 1 it may be of floats up to 1 that were
/// rounded, or of others.
fn common_scale<'a>(images: impl Iterator<Item = &'a Array>, stated: Option<f64>) -> Result<f64, DataError> {
    let range = |array: &Array| {
        let values = || array.floats();
        [values().fold(f32::INFINITY, f32::min), values().fold(0.0, f32::max)]
    };
    let floats = images.filter(|array| is_float(array.element));
    let mut ranges: Vec<([f32; 2], &str)> = floats.map(|array| (range(array), &*array.file)).collect();
    ranges.sort_by(|one, other| one.0[1].total_cmp(&other.0[1]));
    let (largest, file) = ranges.last().map_or((f32::INFINITY, ""), |last| (last.0[1], last.1));
    // A part that is black at any scale fits all; values below 0 are refused where their bytes are known.
    let rounding = ROUNDING as f32;
    let is_dark = ranges.iter().any(|one| (rounding..=1.0).contains(&one.0[1]));
    let is_signed = ranges.iter().any(|one| one.0[0] < -rounding);
    let is_usual = stated.is_none_or(|scale| [1.0, BYTE_SCALE].contains(&scale));
    if is_usual && is_dark && !is_signed && largest > 2.0 {
        let told = |([least, largest], file): &([f32; 2], &str)| format!("{file} from {least} to {largest}");
        return Err(DataError::UnequalScales(listed(ranges.iter().map(told))));
    }
    let file = file.into();
    match stated {
        Some(scale) => Ok(scale),
        None if largest <= 1.0 => Ok(1.0),
        None if largest <= 2.0 && !is_signed => Err(DataError::UnclearScale { file, largest }),
        None => Ok(BYTE_SCALE),
    }
}

fn likely_layout(array: &Array) -> Result<ArrayLayout, DataError> {
    let [_, second, third, last] = array.shape[..] else {
        return Ok(ArrayLayout::Nhwc);
    };
    let first = (ArrayLayout::Nchw, second, third == last);
    let behind = (ArrayLayout::Nhwc, last, second == third);
    let mut likely = vec![first, behind];
    likely.retain(|(_, channels, _)| (1..=4).contains(channels));
    if likely.len() > 1 {
        likely.retain(|(.., is_square)| *is_square);
    }
    match likely[..] {
        [(layout, ..)] => Ok(layout),
        _ => Err(DataError::NpyShape {
            file: array.file.clone(),
            found: array.shape.clone(),
            valid: "1 to 4 channels, first or last; if that cannot be seen, --layout nchw or nhwc of `init` or `data check`",
        }),
    }
}

fn pool_of(
    images: Array,
    labels: &Array,
    layout: ArrayLayout,
    scale: f64,
    notes: &mut Vec<String>,
) -> Result<Pool, DataError> {
    let (count, shape) = image_shape(&images, layout)?;
    let targets = label_values(labels)?;
    if count != targets.len() {
        return Err(DataError::LengthMismatch {
            name: images.file,
            images: count,
            label_name: labels.file.clone(),
            labels: targets.len(),
        });
    }
    if count == 0 || shape.bytes() == 0 {
        return Err(DataError::NoImages { place: images.file });
    }
    Ok(Pool {
        shape,
        part: Part {
            images: image_pixels(images, (count, shape), layout, scale, notes)?,
            labels: targets,
        },
        labels_at: Some(LabelsAt {
            file: labels.file.clone(),
            first: labels.data_at,
            each: labels.element.bytes as u64,
        }),
    })
}

/// Bytes stay where they are, floats become bytes.
fn image_pixels(
    images: Array,
    (count, shape): (usize, Shape),
    layout: ArrayLayout,
    scale: f64,
    notes: &mut Vec<String>,
) -> Result<Images, DataError> {
    let is_planar = layout == ArrayLayout::Nchw && images.shape.len() == 4;
    if let Some(file) = images.unread {
        let file = RecordFile {
            name: images.file,
            file,
            first: images.data_at,
            each: shape.size() as u64,
            count,
        };
        return Ok(Images::Files(Records::new(vec![file], shape, is_planar)));
    }
    let pixels = match images.element {
        element if element.is_byte() => images.data,
        element if is_float(element) => {
            let (pixels, is_rounded) = in_bytes(&images, scale)?;
            if is_rounded {
                notes.push(format!(
                    "{}: floats between the 256 levels of a byte were rounded to the nearest",
                    images.file
                ));
            }
            pixels
        }
        _ => {
            return Err(DataError::NpyType {
                file: images.file,
                what: "images",
                found: images.descr,
                valid: "|u1 (bytes), <f4 or <f8 (floats)",
            });
        }
    };
    Ok(if is_planar {
        channels_last(pixels, shape.channels, shape.height * shape.width).into()
    } else {
        pixels.into()
    })
}

fn image_shape(array: &Array, layout: ArrayLayout) -> Result<(usize, Shape), DataError> {
    let (count, channels, height, width) = match (&array.shape[..], layout) {
        (&[n, height, width], _) => (n, 1, height, width),
        (&[n, height, width, channels], ArrayLayout::Nhwc) => (n, channels, height, width),
        (&[n, channels, height, width], ArrayLayout::Nchw) => (n, channels, height, width),
        _ => {
            return Err(DataError::NpyShape {
                file: array.file.clone(),
                found: array.shape.clone(),
                valid: "n,H,W, or four sizes as the layout says: n,H,W,C or n,C,H,W",
            });
        }
    };
    let shape = Shape {
        channels,
        height,
        width,
    };
    Ok((count, shape))
}

fn label_values(array: &Array) -> Result<Vec<i64>, DataError> {
    match array.shape[..] {
        [_] | [_, 1] => array.integers(),
        _ => Err(DataError::NpyShape {
            file: array.file.clone(),
            found: array.shape.clone(),
            valid: "one label an image: n or n,1",
        }),
    }
}

/// Floats from 0 to `scale` as bytes, and whether any lay between two of them. What lies outside by no more than rounding
/// does is taken.
fn in_bytes(array: &Array, scale: f64) -> Result<(Vec<u8>, bool), DataError> {
    let mut is_rounded = false;
    let mut pixels = Vec::with_capacity(array.data.len() / array.element.bytes);
    for (index, value) in array.floats().enumerate() {
        let value = f64::from(value);
        let level = value * BYTE_SCALE / scale;
        if !(-ROUNDING..=BYTE_SCALE + ROUNDING).contains(&level) {
            let byte = array.data_at + (index * array.element.bytes) as u64;
            let place = format!("file {} at byte {byte}", array.file);
            return Err(DataError::PixelOutOfRange { place, value, scale });
        }
        is_rounded |= (level - level.round()).abs() > ROUNDING;
        pixels.push(level.round() as u8);
    }
    Ok((pixels, is_rounded))
}

#[cfg(test)]
mod tests;
