//! Data sets of IDX files, packed or not: the pairs that a scenario names, or a folder with the four files that MNIST and
//! its kin (LeCun, Cortes and Burges 1998; Xiao, Rasul and Vollgraf 2017) are published as.

use std::path::{Path, PathBuf};

use super::Found;
use crate::data::DataError;
use crate::data::idx::{labelled, open_images, read_images};
use crate::data::locate::{open, open_unpacked};
use crate::data::part::Pool;

/// Where the sets with these names are published.
pub const ORIGIN: &str = "https://github.com/zalandoresearch/fashion-mnist for Fashion-MNIST, or any mirror of MNIST";

const TRAIN: [&str; 2] = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"];
const TEST: [&str; 2] = ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];

/// Reads a pair of images and labels, and one of the test part if there is one.
///
/// # Errors
/// `Io`, and those of [`open_images`] and [`labelled`].
pub fn read_pairs(train: [PathBuf; 2], test: Option<[PathBuf; 2]>, scale: f64) -> Result<Found, DataError> {
    let train = pool(&train)?;
    Ok(Found {
        test: test.map(|pair| pool(&pair)).transpose()?,
        ..Found::of("idx", scale, train)
    })
}

/// Reads the four files by the names and in the folders that they are published under, each with or without `.gz`.
///
/// # Errors
/// `MissingMember` for a training file, or for one test file without the other; `Io`, and those of [`open_images`] and [`labelled`].
pub fn read_folder(folder: &Path, scale: f64) -> Result<Found, DataError> {
    let missing = |member| DataError::MissingMember {
        path: folder.into(),
        member,
        format: "idx_folder",
        origin: ORIGIN,
    };
    let both = |names: [&'static str; 2]| -> Result<[PathBuf; 2], DataError> {
        let [images, labels] = names.map(|name| published(folder, name).ok_or_else(|| missing(name)));
        Ok([images?, labels?])
    };
    let has_test = TEST.iter().any(|name| published(folder, name).is_some());
    let test = has_test.then(|| both(TEST)).transpose()?;
    let mut notes = Vec::new();
    if test.is_none() {
        let place = folder.display();
        notes.push(format!(
            "idx_folder: {place} has no {}; the test part is drawn from the training files",
            TEST[0]
        ));
    }
    Ok(Found {
        format: "idx_folder".into(),
        notes,
        ..read_pairs(both(TRAIN)?, test, scale)?
    })
}

/// Whether a folder has any of the four files.
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

fn pool([images, labels]: &[PathBuf; 2]) -> Result<Pool, DataError> {
    let images = match open_unpacked(images)? {
        Some(file) => open_images(&images.display().to_string(), file)?,
        None => {
            let packed = open(images)?;
            read_images(&packed.name, packed.bytes)?
        }
    };
    let labels = open(labels)?;
    labelled(images, (&labels.name, labels.bytes))
}

#[cfg(test)]
mod tests;
