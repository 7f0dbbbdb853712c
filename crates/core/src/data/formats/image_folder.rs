//! Folders of image files: a class is a folder, its label the place of its name in sorted order. The folder may
//! hold `train`, `val` and `test`, each with such class folders. Files that aren't read are named, with the reason.
//!
//! All headers are read before any pixel is, and the pixels are decoded, by all threads, into the one buffer that is kept.
//! Images of several sizes, and large ones, are cropped and scaled to one: each thread holds one as it was.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use image::ImageFormat::{Bmp, Gif, Jpeg, Png, WebP};
use image::ImageReader;

use super::Found;
use super::decode::{self, DEEP, Failures, Head, VALID};
use crate::data::DataError;
use crate::data::error::listed;
use crate::data::part::{Part, Pool, room_for};
use crate::data::shape::Shape;
use crate::files::listed_first;

/// Folders of the parts. Any of the names is valid, in capitals or not.
const TRAIN: &[&str] = &["train", "training", "seg_train"];
const VAL: &[&str] = &["val", "valid", "validation", "seg_val"];
const TEST: &[&str] = &["test", "testing", "seg_test"];
const READ: &[&str] = &["png", "jpg", "jpeg", "webp", "bmp", "gif"];
/// Extensions of images that can't be decoded here.
const UNREAD: &[&str] = &["tif", "tiff", "avif", "heic", "heif", "jxl"];
/// Files and folders that systems create, in addition to hidden ones.
const OF_SYSTEMS: &[&str] = &["__MACOSX", "@eaDir"];
/// The reason why a folder in that of a class is not read.
const INNER: &str =
    "folders inside that of a class (give that one if they are classes or parts; move images up into it)";

/// More bytes of pixels than a byte of a file can encode: deflate makes at most 1032 bytes of one, a PNG has 8 pixels in
/// one of those, and a pixel becomes 3 bytes. Other formats stay below that, except a WebP of one colour.
const MOST_EXPANSION: u64 = 1032 * 8 * 3;
/// Pixels that any file may claim to have.
const FEW_PIXELS: u64 = 1 << 20;
/// Rows and columns of images that have several sizes, or a large one.
const USUAL_SIZE: usize = 32;
/// Images of one size keep it if it has no more rows and columns. Photographs in their original size would fill any memory.
const LARGEST_KEPT: u32 = 512;

/// Reads a folder of class folders, or of parts. Images get `size` rows and columns, or keep the size that all have.
///
/// # Errors
/// A folder without classes or images, with a class that the training part hasn't, or with a part twice. Links that lead nowhere.
/// Images that can't be read, or that don't fit into memory.
pub fn read(path: &Path, size: Option<usize>) -> Result<Found, DataError> {
    if !path.is_dir() {
        let fault = format!("{} isn't a folder", path.display());
        return Err(DataError::new(fault, "give the folder that holds the files"));
    }
    let mut root = Entries::of(path)?;
    let train = if root.is_flat() { None } else { root.take_part(TRAIN)? };
    let (train, val, test) = match train {
        // Without a training part the others would be classes that happen to be called so.
        None => (Listing::of(path, root)?, None, None),
        Some(folder) => {
            let mut train = Listing::of(&folder, Entries::of(&folder)?)?;
            let mut part = |names: &[&str]| -> Result<Option<Listing>, DataError> {
                let folder = root.take_part(names)?;
                folder.map(|folder| Listing::next_to(&train, &folder)).transpose()
            };
            let (val, test) = (part(VAL)?, part(TEST)?);
            train.pass_over_rest(root);
            (train, val, test)
        }
    };

    let all = || [Some(&train), val.as_ref(), test.as_ref()].into_iter().flatten();
    let heads = read_heads(all().flat_map(|listing| &listing.files), size)?;
    let names = train.classes.iter().map(|name| name.to_string_lossy().into_owned());
    let mut found = Found {
        format: "image_folder".into(),
        scale: 255.0,
        classes: Some(train.classes.len()),
        class_names: names.collect(),
        notes: passed_over(all()),
        train: train.decode(heads.shape)?,
        val: val.map(|listing| listing.decode(heads.shape)).transpose()?,
        test: test.map(|listing| listing.decode(heads.shape)).transpose()?,
    };
    found.notes.extend(heads.notes);
    let largest = |pool: &Pool| pool.part.pixels().ok()?.iter().copied().max();
    // The equivalent of 4095 of 65 535 on a scale to 255.
    if heads.are_deep && found.parts().all(|(_, pool)| largest(pool) <= Some(16)) {
        let note =
            "image_folder: no value is above 16 of 255, as if files of 16 bits held 12: save 16 times the values";
        found.notes.push(note.into());
    }
    Ok(found)
}

/// Returns whether there is a folder with folders in it.
pub fn has_folders(folder: &Path) -> bool {
    any_in(folder, Path::is_dir)
}

fn any_in(folder: &Path, is_it: impl Fn(&Path) -> bool) -> bool {
    let is_seen = |entry: fs::DirEntry| !is_of_system(&entry.file_name()) && is_it(&entry.path());
    fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(is_seen))
}

fn is_of_system(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") || is_one_of(name, OF_SYSTEMS)
}

fn is_one_of(name: &OsStr, names: &[&str]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The reason why a file is not read. `None` for one that is called like an image, or begins as one.
fn refusal(path: &Path) -> Option<&'static str> {
    let is = |known| is_one_of(path.extension().unwrap_or_default(), known);
    let begins = || match reader(path).map(|reader| (reader.format(), reader.into_inner())) {
        Ok((Some(Png | Jpeg | WebP | Gif), _)) => true,
        Ok((Some(Bmp), input)) => is_bmp(input),
        _ => false,
    };
    match (is(READ), is(UNREAD)) {
        (true, _) => None,
        (_, true) => Some("images of a format that is not read (save them as PNG)"),
        _ if begins() => None,
        _ => Some("not PNG, JPEG, WebP, BMP or GIF"),
    }
}

/// BMP begins with two letters, as any text may: whether there is also the length of one of its headers.
fn is_bmp(mut input: impl Read) -> bool {
    let mut head = [0; 18];
    input.read_exact(&mut head).is_ok() && matches!(head, [.., 12 | 40 | 52 | 56 | 108 | 124, 0, 0, 0])
}

/// Entries of a folder, by name, without hidden files.
#[derive(Default)]
struct Entries {
    folders: BTreeMap<OsString, PathBuf>,
    files: Vec<PathBuf>,
    /// Entries that are neither, or hold nothing to read, with the reason.
    others: Vec<(&'static str, PathBuf)>,
}

impl Entries {
    fn of(folder: &Path) -> Result<Self, DataError> {
        let io = |cause| DataError::io(folder, cause);
        let names = fs::read_dir(folder).map_err(io)?.map(|entry| Ok(entry?.file_name()));
        let mut names = names.collect::<io::Result<Vec<OsString>>>().map_err(io)?;
        names.sort_unstable();
        let mut found = Self::default();
        for name in names {
            let path = folder.join(&name);
            if is_of_system(&name) {
                found
                    .others
                    .extend(path.is_dir().then_some(("hidden, or created by a system", path)));
                continue;
            }
            match path.metadata() {
                Ok(metadata) if metadata.is_dir() => _ = found.folders.insert(name, path),
                Ok(metadata) if metadata.is_file() => found.files.push(path),
                Ok(_) => found.others.push(("neither files nor folders", path)),
                Err(cause) if path.is_symlink() => {
                    let fault = format!("{} is a link that leads nowhere ({cause})", path.display());
                    return Err(DataError::new(fault, "restore its target, or remove it"));
                }
                Err(cause) => return Err(DataError::io(&path, cause)),
            }
        }
        Ok(found)
    }

    /// Returns whether a folder called train is a class: it has images in it, as the folders next to it have.
    fn is_flat(&self) -> bool {
        let have_images = |is_asked: fn(&OsStr) -> bool| {
            let mut folders = self.folders.iter().filter(|(name, _)| is_asked(name));
            folders.any(|(_, folder)| any_in(folder, |path| path.is_file() && refusal(path).is_none()))
        };
        let is_other = |name: &OsStr| ![TRAIN, VAL, TEST].iter().any(|part| is_one_of(name, part));
        have_images(|name| is_one_of(name, TRAIN)) && have_images(is_other)
    }

    /// Takes out the folder of a part that has folders of classes in it, or in the one folder in it, of the same name:
    /// archives have `seg_train/seg_train`.
    fn take_part(&mut self, names: &[&str]) -> Result<Option<PathBuf>, DataError> {
        let is_part = |name: &&OsString| is_one_of(name, names) && has_folders(&self.folders[*name]);
        let found: Vec<OsString> = self.folders.keys().filter(is_part).cloned().collect();
        let mut found = found.iter().filter_map(|name| self.folders.remove(name));
        match (found.next(), found.next()) {
            (Some(first), Some(second)) => {
                let (first, second) = (first.display(), second.display());
                let fault = format!("{first} and {second} name the same part");
                Err(DataError::new(fault, "join them, or rename one"))
            }
            (None, _) => Ok(None),
            (Some(folder), None) => {
                let inner = folder.join(folder.file_name().unwrap_or_default());
                let is_wrapped = has_folders(&inner) && Self::of(&folder)?.folders.len() == 1;
                Ok(Some(if is_wrapped { inner } else { folder }))
            }
        }
    }
}

struct ImageFile {
    path: PathBuf,
    label: i64,
}

/// The files of a part, class by class, each class in the order of its file names.
struct Listing {
    classes: Vec<OsString>,
    files: Vec<ImageFile>,
    /// Entries that are not read, with the reason.
    passed_over: Vec<(&'static str, PathBuf)>,
}

impl Listing {
    /// Each folder in it is a class.
    fn of(folder: &Path, mut entries: Entries) -> Result<Self, DataError> {
        let classes: Vec<OsString> = std::mem::take(&mut entries.folders).into_keys().collect();
        if classes.is_empty() {
            return Err(DataError::new(
                format!("{} has no folders of classes", folder.display()),
                "valid: CLASS/IMAGE.png, or train/CLASS/IMAGE.png next to val and test",
            ));
        }
        let listing = Self::list(folder, classes, entries)?;
        let has_images = |class: usize| listing.files.iter().any(|file| file.label == class as i64);
        match (0..listing.classes.len()).find(|&class| !has_images(class)) {
            None => Ok(listing),
            Some(class) => Err(listing.no_images(&folder.join(&listing.classes[class]))),
        }
    }

    /// Reads the validation or test part. All of its classes must be in the training part too.
    fn next_to(train: &Self, folder: &Path) -> Result<Self, DataError> {
        let mut entries = Entries::of(folder)?;
        for (name, folder) in std::mem::take(&mut entries.folders) {
            if !train.classes.contains(&name) {
                let fault = format!("{} is a class that the training part doesn't have", folder.display());
                return Err(DataError::new(fault, "remove it, or add it there"));
            }
        }
        let listing = Self::list(folder, train.classes.clone(), entries)?;
        if listing.files.is_empty() {
            return Err(listing.no_images(folder));
        }
        Ok(listing)
    }

    /// Lists all files of the classes in a folder that also has these `others`.
    fn list(folder: &Path, classes: Vec<OsString>, others: Entries) -> Result<Self, DataError> {
        let mut listing = Self {
            classes,
            files: Vec::new(),
            passed_over: Vec::new(),
        };
        for label in 0..listing.classes.len() {
            let folder = folder.join(&listing.classes[label]);
            if !folder.is_dir() {
                continue;
            }
            let label = label as i64;
            let entries = Entries::of(&folder)?;
            for path in entries.files {
                match refusal(&path) {
                    None => listing.files.push(ImageFile { path, label }),
                    Some(reason) => listing.passed_over.push((reason, path)),
                }
            }
            let inner = entries.folders.into_values().map(|folder| (INNER, folder));
            listing.passed_over.extend(inner.chain(entries.others));
        }
        listing.pass_over_rest(others);
        Ok(listing)
    }

    /// The error that there are none in a folder, and what there is.
    fn no_images(&self, folder: &Path) -> DataError {
        // A folder may hold the images. A file next to it says less.
        let below = self.passed_over.iter().filter(|(_, path)| path.starts_with(folder));
        let other = below.min_by_key(|(reason, _)| *reason != INNER);
        let why = other.map(|(reason, path)| format!(" ({} and the like are {reason})", path.display()));
        DataError::no_images(format_args!("{}{}", folder.display(), why.unwrap_or_default()))
    }

    /// Notes the entries next to the folders that are read.
    fn pass_over_rest(&mut self, entries: Entries) {
        let other = "next to the folders that are read";
        let reason = |name: &OsStr| match is_one_of(name, VAL) || is_one_of(name, TEST) {
            true => "named like a part, but without folders of classes",
            false => other,
        };
        let folders = entries.folders.into_iter();
        let folders = folders.map(|(name, folder)| (reason(&name), folder));
        let files = entries.files.into_iter().map(|file| (other, file));
        self.passed_over.extend(folders.chain(files).chain(entries.others));
    }

    fn decode(&self, shape: Shape) -> Result<Pool, DataError> {
        let count = self.files.len();
        let mut images = room_for(count, shape.bytes())?;
        let decoded = decode::all(count, shape, |index| reader(&self.files[index].path), &mut images);
        decoded.map_err(|failures| unreadable(failures, |index| self.files[index].path.as_path()))?;
        let images = images.into();
        let labels = self.files.iter().map(|file| file.label).collect();
        Ok(Pool::of(shape, Part { images, labels }))
    }
}

/// Properties of all images together, by their headers.
struct Heads {
    shape: Shape,
    /// Some have more than 8 bits a channel.
    are_deep: bool,
    /// Unusual properties.
    notes: Vec<String>,
}

fn read_heads<'a>(files: impl Iterator<Item = &'a ImageFile>, size: Option<usize>) -> Result<Heads, DataError> {
    let files: Vec<&ImageFile> = files.collect();
    let heads = decode::each(0..files.len(), |index| read_head(&files[index].path));
    let heads = heads.map_err(|failures| unreadable(failures, |index| files[index].path.as_path()))?;
    let size_of = |head: &Head| (head.width, head.height);
    let mut sizes: Vec<(u32, u32)> = heads.iter().map(size_of).collect();
    sizes.sort_unstable_by_key(|&(width, height)| (u64::from(width) * u64::from(height), width));
    sizes.dedup();
    let (Some(&smallest), Some(&largest)) = (sizes.first(), sizes.last()) else {
        return Err(DataError::no_images("the folder"));
    };
    let is_kept = sizes.len() == 1 && smallest.0.max(smallest.1) <= LARGEST_KEPT;
    let (width, height) = match size {
        None if is_kept => (smallest.0 as usize, smallest.1 as usize),
        size => (size.unwrap_or(USUAL_SIZE), size.unwrap_or(USUAL_SIZE)),
    };
    let channels = decode::channels(&heads);
    let count = |is_it: &dyn Fn(&Head) -> bool| heads.iter().filter(|head| is_it(head)).count();
    let mut notes = Vec::new();
    let deep = count(&|head| head.is_deep);
    if let Some(at) = heads.iter().position(|head| head.is_deep) {
        let first = files[at].path.display();
        notes.push(format!("image_folder: {deep} {DEEP}, the first {first}"));
    }
    let scaled = count(&|head| (head.width as usize, head.height as usize) != (width, height));
    if scaled > 0 {
        let [smallest, largest] = [smallest, largest].map(|(width, height)| format!("{width}x{height}"));
        let found = match sizes.len() {
            1 => format!("one size, {largest}"),
            sizes => format!("{sizes} sizes, from {smallest} to {largest}"),
        };
        notes.push(format!(
            "image_folder: the images have {found} (width x height); {scaled} were cropped to their central square and \
             scaled to {width}x{height}"
        ));
    }
    let gray = count(&|head| channels > 1 && !head.is_coloured);
    if gray > 0 {
        notes.push(format!(
            "image_folder: {gray} gray images among coloured ones have three equal channels"
        ));
    }
    let shape = Shape {
        channels,
        height,
        width,
    };
    Ok(Heads {
        shape,
        are_deep: deep > 0,
        notes,
    })
}

fn reader(path: &Path) -> Result<ImageReader<BufReader<File>>, String> {
    let opened = ImageReader::open(path).and_then(ImageReader::with_guessed_format);
    opened.map_err(|cause| cause.to_string())
}

fn read_head(path: &Path) -> Result<Head, String> {
    let head = decode::head(reader(path)?)?;
    let Head { width, height, .. } = head;
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    // Room for an image is made before it is decoded.
    if u64::from(width) * u64::from(height) > FEW_PIXELS.max(bytes.saturating_mul(MOST_EXPANSION) / 3) {
        return Err(format!(
            "its header claims {width}x{height} pixels, for which its {bytes} bytes are too few"
        ));
    }
    Ok(head)
}

/// Five of the images that could not be read.
fn unreadable<'a>(failures: Failures, path: impl Fn(usize) -> &'a Path) -> DataError {
    let line = |(index, cause): (usize, String)| format!("{} cannot be read ({cause})", path(index).display());
    let images = listed_first(5, failures.into_iter().map(line));
    DataError::new(format!("image {images}"), VALID)
}

/// Notes of the entries that were not read, by the reason.
fn passed_over<'a>(listings: impl Iterator<Item = &'a Listing>) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
    for (reason, path) in listings.flat_map(|listing| &listing.passed_over) {
        reasons.entry(reason).or_default().push(path);
    }
    let note = |(reason, paths): (&str, Vec<&PathBuf>)| {
        let (count, named) = (paths.len(), listed(paths.iter().map(|path| path.display())));
        format!("image_folder: {count} entries were skipped, as they are {reason}: {named}")
    };
    reasons.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests;
