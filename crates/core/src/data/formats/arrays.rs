//! Data sets of arrays: pairs of NPY or IDX files, or one NPZ archive with arrays of known names.
//!
//! Images are kept in 8 bits a value, as all images are. Floats are scaled so that their `scale` becomes 255; what that
//! rounds is noted.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::array::{Array, Element, ElementKind, ReadHead};
use super::{Found, npy, out_of_range};
use crate::data::DataError;
use crate::data::error::listed;
use crate::data::locate::open;
use crate::data::part::{Images, LabelsAt, Part, Pool};
use crate::data::records::{RecordFile, Records, Source};
use crate::data::shape::Shape;
use crate::files::{self, listed_first};
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

/// Properties that arrays do not state themselves. A value that is `None` is guessed, and the guess noted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stated {
    /// Guessed: channels are the size of 1 to 4; where two are, that which leaves squares.
    pub layout: Option<ArrayLayout>,
    /// Value that means 1.0. Guessed: 1 for floats none of which is above it, 255 for bytes and for floats above 2.
    pub scale: Option<f64>,
}

/// Reads a pair of arrays whose headers are read by `head`, and one of the test part if there is one.
///
/// # Errors
/// Those of [`Array::read`]; types and sizes that images or labels cannot have, scales that differ or are unclear, pixels out of
/// range, more or fewer labels than images.
pub fn read_pairs(
    format: &str,
    head: ReadHead,
    train: [PathBuf; 2],
    test: Option<[PathBuf; 2]>,
    stated: &mut Stated,
) -> Result<Found, DataError> {
    let read = |[images, labels]: [PathBuf; 2]| -> Result<[Array; 2], DataError> {
        let images = Array::open(&images, head)?;
        let labels = open(&labels)?;
        Ok([images, Array::read(&labels.name, labels.bytes, head)?])
    };
    let (train, test) = (read(train)?, test.map(read).transpose()?);
    found(format, [Some(train), None, test], stated)
}

/// Reads an NPZ archive, as [`read_pairs`].
///
/// # Errors
/// The errors of [`read_pairs`], or an archive that is damaged, or has no arrays of known names.
pub fn read_archive(path: &Path, stated: &mut Stated) -> Result<Found, DataError> {
    let place = path.display();
    let damaged = |cause: ZipError| {
        let fault = format!("data file {place} isn't a zip archive that can be read ({cause})");
        DataError::new(fault, "save it again with numpy.savez")
    };
    let file = files::open(path).map_err(|cause| DataError::io(path, cause))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    let names = archive.file_names().map(|name| Ok(name?.into_owned()));
    let present = names.collect::<Result<Vec<String>, ZipError>>().map_err(damaged)?;
    if !present.is_empty() && !present.iter().any(|member| member.ends_with(".npy")) {
        let named = listed_first(3, &present);
        let fault = format!("{place} isn't a data set of a known format: it is an archive of {named}");
        return Err(DataError::new(fault, "unpack it, and give the folder"));
    }
    let missing = |name: &str| {
        let all = match present.is_empty() {
            true => "nothing at all".into(),
            false => listed(&present),
        };
        let fault = format!("data file {place} has no array '{name}', but {all}");
        DataError::new(fault, format!("valid names: {VALID_NAMES}"))
    };
    let mut left_out = present.clone();
    let has = |name: &str| present.iter().any(|member| member.strip_suffix(".npy") == Some(name));
    let mut array = |name: &str| -> Result<Array, DataError> {
        if !has(name) {
            return Err(missing(name));
        }
        let member = archive.by_name(&format!("{name}.npy")).map_err(damaged)?;
        left_out.retain(|member| member.strip_suffix(".npy") != Some(name));
        Array::read(&format!("{place}: {name}.npy"), member, npy::head)
    };
    let mut part = |names: &Names| -> Result<Option<[Array; 2]>, DataError> {
        let used = names.iter().find(|pair| pair.iter().any(|name| has(name)));
        used.map(|[images, labels]| Ok([array(images)?, array(labels)?]))
            .transpose()
    };
    let (train, val, test) = (part(TRAIN)?, part(VAL)?, part(TEST)?);
    if train.is_none() {
        return Err(missing(TRAIN[0][0]));
    }
    let mut set = found("npz", [train, val, test], stated)?;
    let named = listed(left_out);
    let note = format!("npz: arrays of no part or of a second pair were not read: {named}");
    set.notes.extend((!named.is_empty()).then_some(note));
    Ok(set)
}

/// A set of the arrays of its parts.
///
/// # Errors
/// The errors of [`read_pairs`].
pub fn found(format: &str, parts: [Option<[Array; 2]>; 3], stated: &mut Stated) -> Result<Found, DataError> {
    let images = || parts.iter().flatten().map(|[images, _]| images);
    let Some(first) = images().next() else {
        return Err(DataError::no_images(format));
    };
    if let Some(other) = images().find(|other| other.head.descr != first.head.descr) {
        return Err(other.wrong_type("images", "the type that the images of the training part have"));
    }
    let scale = common_scale(images(), stated.scale)?;
    let layout = stated.layout.map_or_else(|| likely_layout(first), Ok)?;
    *stated = Stated {
        layout: Some(layout),
        scale: Some(scale),
    };
    let stored_scale = if is_float(first.head.element) {
        BYTE_SCALE
    } else {
        scale
    };
    let mut notes = Vec::new();
    let mut pool = |arrays: Option<[Array; 2]>| -> Result<Option<Pool>, DataError> {
        let pool = arrays.map(|[images, labels]| pool_of(images, labels, layout, scale, &mut notes));
        pool.transpose()
    };
    let [train, val, test] = parts.map(&mut pool);
    let Some(train) = train? else {
        return Err(DataError::no_images(format));
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
    let floats = images.filter(|array| is_float(array.head.element));
    let mut ranges: Vec<([f32; 2], &str)> = floats.map(|array| (range(array), &*array.file)).collect();
    ranges.sort_by(|one, other| one.0[1].total_cmp(&other.0[1]));
    let (largest, file) = ranges.last().map_or((f32::INFINITY, ""), |last| (last.0[1], last.1));
    // A part that is black at any scale fits all; values below 0 are refused where their bytes are known.
    let rounding = ROUNDING as f32;
    let is_dark = ranges.iter().any(|one| (rounding..=1.0).contains(&one.0[1]));
    let is_signed = ranges.iter().any(|one| one.0[0] < -rounding);
    let is_usual = stated.is_none_or(|scale| [1.0, BYTE_SCALE].contains(&scale));
    if is_usual && is_dark && !is_signed && largest > 2.0 {
        let text = |([least, largest], file): &([f32; 2], &str)| format!("{file} from {least} to {largest}");
        let ranges = listed(ranges.iter().map(text));
        let fault = format!("the floats of the parts have different scales ({ranges})");
        return Err(DataError::new(fault, "save all parts with the same scale"));
    }
    match stated {
        Some(scale) => Ok(scale),
        None if largest <= 1.0 => Ok(1.0),
        None if largest <= 2.0 && !is_signed => Err(DataError::new(
            format!("data file {file}: its largest float is {largest}, which doesn't show the value that means 1.0"),
            "give it to `init` or `data check`: --scale 1 if only rounding made values exceed 1, --scale 255 for bytes",
        )),
        None => Ok(BYTE_SCALE),
    }
}

fn likely_layout(array: &Array) -> Result<ArrayLayout, DataError> {
    let [_, second, third, last] = array.head.shape[..] else {
        return Ok(ArrayLayout::Nhwc);
    };
    let first = (ArrayLayout::Nchw, second, third == last);
    let trailing = (ArrayLayout::Nhwc, last, second == third);
    let mut likely = vec![first, trailing];
    likely.retain(|(_, channels, _)| (1..=4).contains(channels));
    if likely.len() > 1 {
        likely.retain(|(.., is_square)| *is_square);
    }
    match likely[..] {
        [(layout, ..)] => Ok(layout),
        _ => Err(array.wrong_shape(
            "1 to 4 channels, first or last; if both fit, give --layout nchw or nhwc to `init` or `data check`",
        )),
    }
}

fn pool_of(
    images: Array,
    labels: Array,
    layout: ArrayLayout,
    scale: f64,
    notes: &mut Vec<String>,
) -> Result<Pool, DataError> {
    let (count, channels, height, width) = match (&images.head.shape[..], layout) {
        (&[n, height, width], _) => (n, 1, height, width),
        (&[n, height, width, channels], ArrayLayout::Nhwc) => (n, channels, height, width),
        (&[n, channels, height, width], ArrayLayout::Nchw) => (n, channels, height, width),
        _ => return Err(images.wrong_shape("n,H,W, or four sizes as the layout says: n,H,W,C or n,C,H,W")),
    };
    let shape = Shape {
        channels,
        height,
        width,
    };
    if !matches!(labels.head.shape[..], [_] | [_, 1]) {
        return Err(labels.wrong_shape("one label an image: n or n,1"));
    }
    let targets = labels.integers()?;
    if count != targets.len() {
        let (of_images, found) = (&images.file, targets.len());
        let fault = format!(
            "data file {of_images} has {count} images, {} has {found} labels",
            labels.file
        );
        return Err(DataError::new(fault, "give images and labels that belong together"));
    }
    // Without any bytes the sizes may be anything, and their products need not fit.
    if count == 0 || shape.bytes() == 0 {
        return Err(DataError::no_images(images.file));
    }
    Ok(Pool {
        shape,
        part: Part {
            images: image_records(images, shape, layout, scale, notes)?,
            labels: targets,
        },
        labels_at: Some(LabelsAt {
            file: labels.file,
            first: labels.head.data_at,
            each: labels.head.element.bytes as u64,
        }),
    })
}

/// Bytes stay unchanged, floats become bytes.
fn image_records(
    images: Array,
    shape: Shape,
    layout: ArrayLayout,
    scale: f64,
    notes: &mut Vec<String>,
) -> Result<Images, DataError> {
    let is_planar = layout == ArrayLayout::Nchw && images.head.shape.len() == 4;
    let count = images.head.shape[0];
    let (source, first) = match images.unread {
        Some(file) => (Source::File(file), images.head.data_at),
        None if images.head.element.is_byte() => (Source::Memory(images.data), 0),
        None if is_float(images.head.element) => {
            let (pixels, is_rounded) = in_bytes(&images, scale)?;
            let note = "floats between the 256 levels of a byte were rounded to the nearest";
            notes.extend(is_rounded.then(|| format!("{}: {note}", images.file)));
            (Source::Memory(pixels), 0)
        }
        None => return Err(images.wrong_type("images", "|u1 (bytes), <f4 or <f8 (floats)")),
    };
    let file = RecordFile {
        name: images.file,
        source,
        first,
        each: shape.size() as u64,
        count,
    };
    Ok(Images::Files(Records::new(vec![file], shape, is_planar)))
}

/// Floats from 0 to `scale` as bytes, and whether any lay between two of them. Values outside by no more than rounding
/// are taken.
fn in_bytes(array: &Array, scale: f64) -> Result<(Vec<u8>, bool), DataError> {
    let mut is_rounded = false;
    let mut pixels = Vec::with_capacity(array.data.len() / array.head.element.bytes);
    for (index, value) in array.floats().enumerate() {
        let value = f64::from(value);
        let level = value * BYTE_SCALE / scale;
        if !(-ROUNDING..=BYTE_SCALE + ROUNDING).contains(&level) {
            let byte = array.head.data_at + (index * array.head.element.bytes) as u64;
            let place = format!("file {} at byte {byte}", array.file);
            return Err(out_of_range(&place, value, scale));
        }
        is_rounded |= (level - level.round()).abs() > ROUNDING;
        pixels.push(level.round() as u8);
    }
    Ok((pixels, is_rounded))
}

#[cfg(test)]
mod tests;
