//! Data sets of IDX files, packed or not: two zero bytes, a type byte, the number of dimensions, big-endian u32 sizes, bytes in
//! row-major order; as pairs that a scenario names, or in a folder with the four files that MNIST and its kin (LeCun, Cortes and
//! Burges 1998; Xiao, Rasul and Vollgraf 2017) are published as.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::Found;
use super::array::{Element, Head};
use super::arrays::{Stated, read_pairs};
use crate::data::DataError;
use crate::data::locate::up_to;
use crate::scenario::ArrayLayout;

/// The addresses at which the sets with these names are published.
pub const ORIGIN: &str = "https://github.com/zalandoresearch/fashion-mnist for Fashion-MNIST, or any mirror of MNIST";

const TRAIN: [&str; 2] = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"];
const TEST: [&str; 2] = ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];

const UNSIGNED_BYTE: u8 = 0x08;
const MAGIC: u64 = 4;
const MOST_DIMENSIONS: u8 = 4;

/// The beginning of a file of unsigned bytes.
pub const START: [u8; 3] = [0, 0, UNSIGNED_BYTE];

/// Reads a header.
///
/// # Errors
/// A file of another format, or one that ends in its header.
pub fn head(file: &str, input: &mut dyn Read) -> Result<Head, DataError> {
    let found = up_to(file, input, MAGIC, 0)?;
    let [0, 0, UNSIGNED_BYTE, dimensions @ 1..=MOST_DIMENSIONS] = found[..] else {
        return Err(DataError::new(
            format!("data file {file} is not an IDX file of unsigned bytes: it starts with {found:02x?}"),
            "expected 00 00 08 and the number of dimensions: convert it to IDX type 0x08",
        ));
    };
    let data_at = MAGIC + 4 * u64::from(dimensions);
    let sizes = up_to(file, input, data_at - MAGIC, MAGIC)?;
    let found = MAGIC + sizes.len() as u64;
    if found < data_at {
        return Err(DataError::length(file, data_at.into(), found));
    }
    let size = |size: &[u8]| size.iter().fold(0, |size: usize, &byte| size << 8 | usize::from(byte));
    Ok(Head {
        descr: "|u1".into(),
        element: Element::BYTE,
        shape: sizes.chunks_exact(4).map(size).collect(),
        data_at,
    })
}

/// Properties that these files do not state.
pub fn stated(scale: f64) -> Stated {
    Stated {
        layout: Some(ArrayLayout::Nchw),
        scale: Some(scale),
    }
}

/// Reads the four files by the names and in the folders that they are published under, each with or without `.gz`.
///
/// # Errors
/// A training file that is missing, or one test file without the other, or the errors of [`read_pairs`].
pub fn read_folder(folder: &Path, scale: f64) -> Result<Found, DataError> {
    let both = |names: [&str; 2]| -> Result<[PathBuf; 2], DataError> {
        let missing = |name| DataError::missing_member(folder, name, "idx_folder", ORIGIN);
        let [images, labels] = names.map(|name| published(folder, name).ok_or_else(|| missing(name)));
        Ok([images?, labels?])
    };
    let has_test = TEST.iter().any(|name| published(folder, name).is_some());
    let test = has_test.then(|| both(TEST)).transpose()?;
    let (place, absent) = (folder.display(), TEST[0]);
    let note = format!("idx_folder: {place} has no {absent}; the test part is drawn from the training files");
    let notes = test.is_none().then_some(note).into_iter().collect();
    let found = read_pairs("idx_folder", head, both(TRAIN)?, test, &mut stated(scale))?;
    Ok(Found { notes, ..found })
}

/// Returns whether a folder has any of the four files.
pub fn is_in(folder: &Path) -> bool {
    TRAIN.iter().chain(&TEST).any(|name| published(folder, name).is_some())
}

/// The images of the training part, if the folder has them.
pub fn training_images(folder: &Path) -> Option<PathBuf> {
    published(folder, TRAIN[0])
}

fn published(folder: &Path, name: &str) -> Option<PathBuf> {
    // Mirrors have a dot in the names, or a folder around each file; torchvision has folders around all.
    let names = [name, &name.replace("-idx", ".idx")];
    let names = names.map(|name| [name.into(), format!("{name}.gz"), format!("{name}/{name}")]);
    let in_places = |name: &String| ["", "raw", "MNIST/raw"].map(|place| folder.join(place).join(name));
    names.iter().flatten().flat_map(in_places).find(|path| path.is_file())
}

#[cfg(test)]
mod tests;
