//! Survey of the data under a path: the format, how many images of which class and how bright they are, or how many tokens.
//! For people who want to know before a run does.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::dataset::check_classes;
use super::formats::arrays::{self, Stated};
use super::formats::cifar::{CIFAR10, CIFAR100, Cifar, PICKLE};
use super::formats::{Found, idx, image_folder, npy};
use super::part::Repeats;
use super::tokens::{self, TextSurvey};
use super::{DataError, locate, normalise};
use crate::scenario::{ArrayLayout, TokenFormat};

/// The beginning of a zip archive.
const ZIP: &[u8] = b"PK";
/// A tar archive says so here.
const TAR_MAGIC_AT: usize = 257;
const TAR_MAGIC: &[u8] = b"ustar";
/// Enough bytes to identify every format.
const HEAD: u64 = 1024;
/// Value that means 1.0 unless it is given.
const BYTE_SCALE: f64 = 255.0;

/// Formats of data sets on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// CIFAR-10, binary version.
    Cifar10,
    /// CIFAR-100, binary version.
    Cifar100,
    /// A pair of IDX files, or a folder with the four of MNIST.
    Idx,
    /// A folder of class folders.
    ImageFolder,
    /// A pair of NPY files.
    Npy,
    /// An NPZ archive.
    Npz,
    /// A text, a token a byte.
    Text,
    /// Tokens that another program has made of a text.
    Tokens(TokenFormat),
}

/// Properties of a data set that are known beforehand. The rest is guessed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The format of its files.
    pub format: Option<Format>,
    /// The layout of arrays.
    pub layout: Option<ArrayLayout>,
    /// Pixel value that means 1.0.
    pub scale: Option<f64>,
    /// The vocabulary of tokens: each token is below it.
    pub vocab: Option<i64>,
}

/// All about a data set of any kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Surveyed {
    /// A survey of images.
    Images(Survey),
    /// A survey of text.
    Text(TextSurvey),
}

/// All about a set of images.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survey {
    /// As a scenario calls the format.
    pub format: String,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Pixel value that means 1.0.
    pub scale: f64,
    /// In the order of training, validation and test, as far as the files bring them.
    pub parts: Vec<PartSurvey>,
    /// By label.
    pub classes: Vec<ClassSurvey>,
    /// Unusual properties that aren't errors.
    pub notes: Vec<String>,
    /// Settings of arrays that a scenario has to state, known or guessed.
    #[serde(skip)]
    pub stated: Stated,
}

/// All about a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartSurvey {
    /// train, validation or test.
    pub part: &'static str,
    /// Number of images.
    pub images: usize,
    /// Mean of each channel, in units of the scale.
    pub mean: Vec<f64>,
    /// Standard deviation of each channel, in units of the scale.
    pub std: Vec<f64>,
}

/// A class and how often it is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassSurvey {
    /// As a number.
    pub label: usize,
    /// The class's name, if the files have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// In each part.
    pub images: Vec<usize>,
}

/// Looks at the data set at `path`. `labels` is the second file of a pair. It guesses the properties that aren't given.
///
/// # Errors
/// Anything that would keep a run from loading it, except what a task decides: the number of classes, and the split.
pub fn survey(path: &Path, labels: Option<&Path>, known: Known) -> Result<Surveyed, DataError> {
    let Known {
        format, layout, scale, ..
    } = known;
    if let Some(missing) = [Some(path), labels].into_iter().flatten().find(|path| !path.exists()) {
        return Err(locate::missing(&missing.display().to_string(), &[missing.into()], None));
    }
    let format = match format {
        Some(format) => format,
        None => guess(path)?,
    };
    let pair = || -> Result<[PathBuf; 2], DataError> {
        match labels {
            Some(labels) => Ok([path.into(), labels.into()]),
            None => Err(DataError::new(
                format!("{} holds images without labels", path.display()),
                "give the file of the labels after it",
            )),
        }
    };
    check_flags(path, labels, known, format)?;
    let mut stated = Stated { layout, scale };
    let found = match format {
        Format::Cifar10 => CIFAR10.read(path)?,
        Format::Cifar100 => CIFAR100.read(path)?,
        Format::Idx if path.is_dir() => idx::read_folder(path, scale.unwrap_or(BYTE_SCALE))?,
        Format::Idx => {
            let mut stated = idx::stated(scale.unwrap_or(BYTE_SCALE));
            arrays::read_pairs("idx", idx::head, pair()?, None, &mut stated)?
        }
        Format::ImageFolder => image_folder::read(path, None)?,
        Format::Npy => arrays::read_pairs("npy", npy::head, pair()?, None, &mut stated)?,
        Format::Npz => arrays::read_archive(path, &mut stated)?,
        Format::Text => return tokens::survey(path, None, known.vocab).map(Surveyed::Text),
        Format::Tokens(written) => return tokens::survey(path, Some(written), known.vocab).map(Surveyed::Text),
    };
    Ok(Surveyed::Images(Survey { stated, ..of(&found)? }))
}

/// Checks that each flag given with the path applies to the format, because nothing is ignored in silence.
fn check_flags(path: &Path, labels: Option<&Path>, known: Known, format: Format) -> Result<(), DataError> {
    let is_array = matches!(format, Format::Npy | Format::Npz);
    let is_text = matches!(format, Format::Text | Format::Tokens(_));
    let is_pair = format == Format::Npy || (format == Format::Idx && !path.is_dir());
    let given = [
        ("a second file", labels.is_some() && !is_pair),
        ("--layout", known.layout.is_some() && !is_array),
        ("--scale", known.scale.is_some() && !is_array && format != Format::Idx),
        ("--vocab", known.vocab.is_some() && !is_text),
    ];
    let Some((flag, _)) = given.into_iter().find(|(_, is_unused)| *is_unused) else {
        return Ok(());
    };
    Err(DataError::new(
        format!("{}: {flag} doesn't apply to its format", path.display()),
        "leave it out, or give another format with --format",
    ))
}

/// All about what was found.
///
/// # Errors
/// Parts of several shapes, labels that no task can have, or images that cannot be read.
pub(super) fn of(found: &Found) -> Result<Survey, DataError> {
    found.check_images()?;
    // Without a task any label from 0 will do; the classes are as many as the largest asks for.
    let labels = || found.parts().flat_map(|(_, pool)| &pool.part.labels);
    let largest = labels().copied().max().unwrap_or_default();
    let classes = found.classes.unwrap_or(0).max(seen_classes(largest));
    found
        .parts()
        .try_for_each(|(_, pool)| pool.check_labels(&found.format, classes as i64))?;

    let histograms: Vec<Vec<usize>> = found.parts().map(|(_, pool)| pool.part.histogram(classes)).collect();
    check_classes(&found.format, "train", &histograms[0], &found.class_names)?;
    if classes < 2 {
        let fault = format!("data '{}' has images of one class", found.format);
        return Err(DataError::new(fault, "valid: at least two"));
    }
    let classes: Vec<ClassSurvey> = (0..classes)
        .map(|label| ClassSurvey {
            label,
            name: found.class_names.get(label).cloned(),
            images: histograms.iter().map(|histogram| histogram[label]).collect(),
        })
        .collect();
    let mut notes = found.notes.clone();
    notes.extend(repeated(found)?);
    let shape = found.train.shape;
    let parts = found.parts().map(|(part, pool)| {
        let moments = normalise::measure(&pool.part, shape.channels, found.scale)?;
        Ok(PartSurvey {
            part,
            images: pool.part.len(),
            mean: moments.mean,
            std: moments.std,
        })
    });
    Ok(Survey {
        format: found.format.clone(),
        height: shape.height,
        width: shape.width,
        channels: shape.channels,
        scale: found.scale,
        parts: parts.collect::<Result<_, DataError>>()?,
        classes,
        notes,
        stated: Stated::default(),
    })
}

/// Most classes that a task may have.
const MOST_CLASSES: usize = 65_536;

/// Classes of labels up to `largest`. A larger label than any task may have is out of range.
fn seen_classes(largest: i64) -> usize {
    usize::try_from(largest).map_or(1, |largest| largest.saturating_add(1).min(MOST_CLASSES))
}

/// Says how many images of a part are in an earlier one as well, or may be once the training part has been divided.
fn repeated(found: &Found) -> Result<Vec<String>, DataError> {
    let (mut repeats, mut notes) = (Repeats::default(), Vec::new());
    for (part, pool) in found.parts() {
        let mut labels = pool.part.labels.iter();
        pool.part
            .for_each_image(|image| repeats.see(part, labels.next(), image))?;
        let is_divided = part == "train" && found.val.is_none();
        notes.extend(repeats.end(&found.format, part, pool.part.len(), is_divided));
    }
    Ok(notes)
}

/// The format by the names in a folder, or by the first bytes of a file.
fn guess(path: &Path) -> Result<Format, DataError> {
    let unknown = |why: &str, remedy: String| {
        let fault = format!("{} isn't a data set of a known format: {why}", path.display());
        DataError::new(fault, remedy)
    };
    let published = |folder: &Path| {
        let of_cifar = |set: &Cifar, format| set.is_in(folder).then_some(format);
        of_cifar(&CIFAR10, Format::Cifar10)
            .or_else(|| idx::is_in(folder).then_some(Format::Idx))
            .or_else(|| of_cifar(&CIFAR100, Format::Cifar100))
    };
    if path.is_dir() {
        let entries = path.read_dir().into_iter().flatten().flatten();
        let mut folders = entries.map(|entry| entry.path()).filter(|inner| inner.is_dir());
        return match (published(path), folders.find(|inner| published(inner).is_some())) {
            (Some(format), _) => Ok(format),
            (None, Some(inner)) => Err(unknown("the data are in a folder inside it", format!("give {inner:?}"))),
            (None, None) if image_folder::has_folders(path) => Ok(Format::ImageFolder),
            (None, None) => {
                let remedy = "put the images of each class into a folder of their own, as in photos/cats/1.jpg and \
                              photos/dogs/1.jpg; for text or tokens, give the file";
                let why = "the folder has neither files of CIFAR or MNIST nor folders of classes";
                Err(unknown(why, remedy.into()))
            }
        };
    }
    let mut input = locate::open(path)?;
    let head = locate::up_to(&input.name, &mut input.bytes, HEAD, 0)?;
    let name = path.file_name().unwrap_or_default();
    let is_text = path.extension().unwrap_or_default().eq_ignore_ascii_case("txt");
    let pickled = [&CIFAR10, &CIFAR100]
        .into_iter()
        .find(|set| set.pickles().any(|pickle| pickle == name));
    if head.starts_with(&npy::MAGIC) {
        Ok(Format::Npy)
    } else if head.starts_with(&idx::START) {
        Ok(Format::Idx)
    } else if head.starts_with(ZIP) && !is_text {
        Ok(Format::Npz)
    } else if head.get(TAR_MAGIC_AT..).is_some_and(|tail| tail.starts_with(TAR_MAGIC)) {
        let of_neither = || {
            let remedy = "unpack any other archive, and give the folder";
            unknown("the archive has no file of CIFAR-10 or CIFAR-100", remedy.into())
        };
        guess_archive(path)?.ok_or_else(of_neither)
    } else if let (true, Some(set)) = (head.starts_with(&PICKLE), pickled) {
        Err(set.refusal(path))
    } else if tokens::has_header(&head) {
        Ok(Format::Tokens(TokenFormat::LlmC))
    } else if is_text {
        Ok(Format::Text)
    } else {
        let why = "its first bytes are not those of an IDX, NPY, NPZ or tar file nor of llm.c's tokens, and its name does not end \
                   in .txt";
        Err(unknown(why, "give the format with --format".into()))
    }
}

/// The one of the two sets that an archive holds, by the first file that belongs to one of them.
fn guess_archive(path: &Path) -> Result<Option<Format>, DataError> {
    let input = locate::open(path)?;
    let count = input.bytes.count();
    let damaged = |cause| DataError::unreadable(&input.name, count.get(), cause);
    let mut archive = tar::Archive::new(input.bytes);
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let entry = entry.map_err(damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let base = name.rsplit('/').next().unwrap_or_default();
        if CIFAR10.owns(base, entry.size()) {
            return Ok(Some(Format::Cifar10));
        }
        if CIFAR100.owns(base, entry.size()) {
            return Ok(Some(Format::Cifar100));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
