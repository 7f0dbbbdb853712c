//! Folders of PNG and JPEG files: a class is a folder, its label the place of its name in sorted order. The folder may hold
//! `train`, `val` and `test`, each with such class folders.
//!
//! All headers are read before any pixel is, and the pixels are decoded, by all threads, into the one buffer that is kept.
//! Images of several sizes are cropped and scaled to one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use image::ImageReader;
use rayon::prelude::*;

use super::Found;
use super::decode::{self, Head};
use crate::data::DataError;
use crate::data::part::{Part, Pool, room_for};
use crate::data::shape::Shape;

/// Folders of the parts; any of the names will do.
const TRAIN: &[&str] = &["train"];
const VAL: &[&str] = &["val", "valid", "validation"];
const TEST: &[&str] = &["test"];
const EXTENSIONS: [&str; 3] = ["png", "jpg", "jpeg"];
/// More bytes of pixels than a byte of a file can encode: deflate makes at most 1032 bytes of one, a PNG has 8 pixels in
/// one of those, and a pixel becomes 3 bytes. JPEG stays below that.
const MOST_EXPANSION: u64 = 1032 * 8 * 3;
/// Rows and columns of images that have several sizes.
const USUAL_SIZE: usize = 32;

/// Reads a folder of class folders, or of parts. Images get `size` rows and columns, or keep the size that all have.
///
/// # Errors
/// `NotAFolder`, `Io`, `NoClasses`, `NoImages`, `UnknownClass`, `UnreadableImage`, `OutOfMemory`, `WorkerLost`.
pub fn read(path: &Path, size: Option<usize>) -> Result<Found, DataError> {
    if !path.is_dir() {
        return Err(DataError::NotAFolder { path: path.into() });
    }
    let part = |names: &[&str]| {
        names
            .iter()
            .map(|name| path.join(name))
            .find(|folder| has_folders(folder))
    };
    let train = part(TRAIN);
    // Without a training part these would be classes that happen to be called so.
    let (val, test) = match train {
        Some(_) => (part(VAL), part(TEST)),
        None => (None, None),
    };
    let train = Listing::of(train.as_deref().unwrap_or(path))?;
    let listed = |folder: Option<PathBuf>| folder.map(|folder| Listing::beside(&train, &folder)).transpose();
    let (val, test) = (listed(val)?, listed(test)?);

    let all = || [Some(&train), val.as_ref(), test.as_ref()].into_iter().flatten();
    let heads = read_heads(all().flat_map(|listing| &listing.files), size)?;
    let shape = heads.shape;
    Ok(Found {
        format: "image_folder".into(),
        scale: 255.0,
        classes: Some(train.classes.len()),
        class_names: train
            .classes
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect(),
        notes: notes(all(), &heads),
        train: train.decode(shape)?,
        val: val.map(|listing| listing.decode(shape)).transpose()?,
        test: test.map(|listing| listing.decode(shape)).transpose()?,
    })
}

/// Whether there is a folder with folders in it.
pub fn has_folders(folder: &Path) -> bool {
    entries(folder).is_ok_and(|entries| entries.values().any(|path| path.is_dir()))
}

/// What is in a folder, by name, without hidden files.
fn entries(folder: &Path) -> Result<BTreeMap<OsString, PathBuf>, DataError> {
    let io = |cause| DataError::io(folder, cause);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            found.insert(entry.file_name(), entry.path());
        }
    }
    Ok(found)
}

struct ImageFile {
    path: PathBuf,
    label: i64,
}

/// The files of a part, class by class, each class in the order of its file names.
struct Listing {
    classes: Vec<OsString>,
    files: Vec<ImageFile>,
    /// Files that are no images by their names.
    passed_over: Vec<PathBuf>,
}

impl Listing {
    fn of(folder: &Path) -> Result<Self, DataError> {
        let folders = entries(folder)?.into_iter().filter(|(_, path)| path.is_dir());
        let classes: Vec<OsString> = folders.map(|(name, _)| name).collect();
        if classes.is_empty() {
            return Err(DataError::NoClasses { folder: folder.into() });
        }
        let listing = Self::list(folder, classes)?;
        let has_images = |class: usize| listing.files.iter().any(|file| file.label == class as i64);
        match (0..listing.classes.len()).find(|&class| !has_images(class)) {
            None => Ok(listing),
            Some(class) => {
                let folder = folder.join(&listing.classes[class]);
                let advice = if has_folders(&folder) {
                    " (it holds folders: give it itself, if they are classes, or parts called train, val and test)"
                } else {
                    ""
                };
                let place = format!("{}{advice}", folder.display());
                Err(DataError::NoImages { place })
            }
        }
    }

    /// A part beside the training part: its classes are those of the training part, or some of them.
    fn beside(train: &Self, folder: &Path) -> Result<Self, DataError> {
        for (name, path) in entries(folder)? {
            if path.is_dir() && !train.classes.contains(&name) {
                return Err(DataError::UnknownClass { folder: path });
            }
        }
        let listing = Self::list(folder, train.classes.clone())?;
        if listing.files.is_empty() {
            return Err(DataError::NoImages {
                place: folder.display().to_string(),
            });
        }
        Ok(listing)
    }

    fn list(folder: &Path, classes: Vec<OsString>) -> Result<Self, DataError> {
        let (mut files, mut passed_over) = (Vec::new(), Vec::new());
        for (label, class) in classes.iter().enumerate() {
            let folder = folder.join(class);
            if !folder.is_dir() {
                continue;
            }
            for (_, path) in entries(&folder)? {
                let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
                let is_image = EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known));
                if is_image && path.is_file() {
                    let label = label as i64;
                    files.push(ImageFile { path, label });
                } else {
                    passed_over.push(path);
                }
            }
        }
        Ok(Self {
            classes,
            files,
            passed_over,
        })
    }

    fn decode(&self, shape: Shape) -> Result<Pool, DataError> {
        let size = shape.size();
        let mut images = room_for(self.files.len(), size as u128)?;
        // One, then as many more as were decoded before: headers may claim what their files do not hold.
        let mut done = 0;
        while done < self.files.len() {
            let end = self.files.len().min(2 * done + 1);
            images.resize(end * size, 0);
            let decoded: Vec<_> = images[done * size..]
                .par_chunks_exact_mut(size)
                .zip(&self.files[done..end])
                .map(|(out, file)| guarded(&file.path, || decode(&file.path, shape, out)))
                .collect();
            // In the order of the files, so that the same damage is always reported for the same file.
            decoded.into_iter().collect::<Result<(), _>>()?;
            done = end;
        }
        Ok(Pool {
            shape,
            part: Part {
                images: images.into(),
                labels: self.files.iter().map(|file| file.label).collect(),
            },
            labels_at: None,
        })
    }
}

/// What headers say of all images together.
struct Heads {
    shape: Shape,
    /// Images of more than 8 bits a channel, and one of them.
    deep: Option<(usize, PathBuf)>,
    /// Gray images among coloured ones.
    gray: usize,
    /// How many sizes there are, and the smallest and the largest of them by their pixels.
    sizes: (usize, [(u32, u32); 2]),
    /// Images that are scaled.
    scaled: usize,
}

fn read_heads<'a>(files: impl Iterator<Item = &'a ImageFile>, size: Option<usize>) -> Result<Heads, DataError> {
    let files: Vec<&ImageFile> = files.collect();
    let heads: Vec<_> = files
        .par_iter()
        .map(|file| guarded(&file.path, || read_head(&file.path)))
        .collect();
    let heads = heads.into_iter().collect::<Result<Vec<Head>, _>>()?;
    let size_of = |head: &Head| (head.width, head.height);
    let mut sizes: Vec<(u32, u32)> = heads.iter().map(size_of).collect();
    sizes.sort_unstable_by_key(|&(width, height)| (u64::from(width) * u64::from(height), width));
    sizes.dedup();
    let (Some(&smallest), Some(&largest)) = (sizes.first(), sizes.last()) else {
        return Err(DataError::NoImages { place: String::new() });
    };
    let target = match size {
        None if sizes.len() == 1 => (smallest.0 as usize, smallest.1 as usize),
        size => (size.unwrap_or(USUAL_SIZE), size.unwrap_or(USUAL_SIZE)),
    };
    let is_coloured = heads.iter().any(|head| head.is_coloured);
    let deep = || files.iter().zip(&heads).filter(|(_, head)| head.is_deep);
    Ok(Heads {
        shape: Shape {
            channels: if is_coloured { 3 } else { 1 },
            height: target.1,
            width: target.0,
        },
        sizes: (sizes.len(), [smallest, largest]),
        scaled: heads
            .iter()
            .filter(|head| (head.width as usize, head.height as usize) != target)
            .count(),
        deep: deep().next().map(|(file, _)| (deep().count(), file.path.clone())),
        gray: if is_coloured {
            heads.iter().filter(|head| !head.is_coloured).count()
        } else {
            0
        },
    })
}

fn reader(path: &Path) -> Result<ImageReader<BufReader<File>>, DataError> {
    let io = |cause| DataError::io(path, cause);
    ImageReader::open(path).map_err(io)?.with_guessed_format().map_err(io)
}

fn unreadable(path: &Path, cause: String) -> DataError {
    DataError::UnreadableImage {
        file: path.into(),
        cause,
    }
}

fn read_head(path: &Path) -> Result<Head, DataError> {
    let head = decode::head(reader(path)?).map_err(|cause| unreadable(path, cause))?;
    let Head { width, height, .. } = head;
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    // Room for an image is made before it is decoded.
    if u64::from(width) * u64::from(height) > bytes.saturating_mul(MOST_EXPANSION) / 3 {
        let claim = format!("its header claims {width}x{height} pixels, for which its {bytes} bytes are too few");
        return Err(unreadable(path, claim));
    }
    Ok(head)
}

fn decode(path: &Path, shape: Shape, out: &mut [u8]) -> Result<(), DataError> {
    decode::pixels(reader(path)?, shape, out).map_err(|cause| unreadable(path, cause))
}

/// A panic of a decoder as an error.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, DataError>) -> Result<T, DataError> {
    decode::guarded(work).unwrap_or_else(|cause| {
        Err(DataError::WorkerLost {
            file: path.into(),
            cause,
        })
    })
}

fn notes<'a>(listings: impl Iterator<Item = &'a Listing>, heads: &Heads) -> Vec<String> {
    let mut notes = Vec::new();
    let passed_over: Vec<&PathBuf> = listings.flat_map(|listing| &listing.passed_over).collect();
    if let Some(first) = passed_over.first() {
        let (count, first) = (passed_over.len(), first.display());
        notes.push(format!(
            "image_folder: {count} entries are no PNG or JPEG by their names and were passed over, the first {first}"
        ));
    }
    if let Some((count, first)) = &heads.deep {
        let first = first.display();
        notes.push(format!(
            "image_folder: {count} images of more than 8 bits a channel are kept in 8, the first {first}"
        ));
    }
    if heads.scaled > 0 {
        let (scaled, Shape { height, width, .. }) = (heads.scaled, heads.shape);
        let (sizes, [smallest, largest]) = heads.sizes;
        let found = if sizes == 1 {
            format!("one size, {}x{}", smallest.0, smallest.1)
        } else {
            format!(
                "{sizes} sizes, from {}x{} to {}x{}",
                smallest.0, smallest.1, largest.0, largest.1
            )
        };
        notes.push(format!(
            "image_folder: the images have {found} (width x height); {scaled} were cropped to their central square and \
             scaled to {width}x{height}"
        ));
    }
    if heads.gray > 0 {
        let gray = heads.gray;
        notes.push(format!(
            "image_folder: {gray} gray images among coloured ones have three equal channels"
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
