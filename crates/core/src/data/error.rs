//! What can go wrong with data. Every message says what was asked, what is wrong, and what to do.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::schema::NameError;
use crate::torch::TorchError;

/// Start-up errors of loading and planning, and device errors of the feed. Those of start-up name the file and the place in it
/// that is wrong, and nothing was trained; those of the feed end the env's episode, or the run, as `run.on_env_error` says.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum DataError {
    #[error(
        "data file '{name}' was not found; looked at {}. \
         Place the file there{}, or choose a task that needs none (digits_*, synth_*)",
        listed(.looked_at.iter().map(|path| path.display())),
        .origin.map(|origin| format!(" (published at {origin})")).unwrap_or_default()
    )]
    MissingFile {
        name: String,
        looked_at: Vec<PathBuf>,
        origin: Option<&'static str>,
    },

    #[error("data file {}: reading failed ({cause}); check that it is a readable file", .path.display())]
    Io { path: PathBuf, cause: std::io::Error },

    #[error(
        "data file {file}: reading failed at byte {byte} ({cause}); \
         the file is damaged or cut short: fetch or copy it again"
    )]
    Unreadable {
        file: String,
        byte: u64,
        cause: std::io::Error,
    },

    #[error("there is no memory for {images} images of {bytes} bytes in all; make the parts of task.data smaller")]
    OutOfMemory { images: usize, bytes: u128 },

    #[error(
        "there is no memory for texts of {bytes} bytes in all ({texts} of them); make the parts of task.data smaller"
    )]
    OutOfMemoryForTexts { texts: u128, bytes: u128 },

    #[error(
        "data file '{name}' has {bytes} bytes, which are {windows} windows of {block} tokens: too few for a training and a \
         validation part ({val_permille} ‰ of the windows); give a longer text, a smaller task.data.block or another \
         task.split"
    )]
    ShortText {
        name: String,
        bytes: usize,
        block: usize,
        windows: usize,
        val_permille: u64,
    },

    #[error(
        "data file {} has {tokens} tokens, which are {windows} windows of {block}: too few for {parts} part; give a longer \
         file, a smaller task.data.block or another task.split",
        .file.display()
    )]
    FewTokens {
        file: PathBuf,
        tokens: usize,
        windows: usize,
        block: usize,
        parts: &'static str,
    },

    #[error(
        "data file {file} has no header of llm.c: it has {length} bytes and starts with {found:02x?}; valid: 1024 bytes, \
         first the magic number 20240520 and version 1 for tokens of 16 bits, or 20240801 and 7 for 32, little-endian"
    )]
    TokenHeader {
        file: String,
        length: usize,
        found: Vec<u8>,
    },

    #[error(
        "data file {file} has {bytes} bytes of tokens, no multiple of the {each} of a token; \
         the file is cut short, or task.data.format is another"
    )]
    HalfAToken { file: String, bytes: usize, each: usize },

    #[error(
        "data file {file}: token {index} at byte {byte} is {token}, outside 0..{vocab}; correct task.data.vocab (and \
         task.classes), or task.data.format"
    )]
    TokenOutOfRange {
        file: String,
        index: usize,
        byte: u64,
        token: u32,
        vocab: i64,
    },

    #[error(
        "table {file} cannot be read ({cause}); it is no Parquet file, damaged, or packed in a way that is not known here"
    )]
    Table { file: String, cause: String },

    /// `task.data.parquet` names a column that the table does not have, or that holds neither images nor labels.
    #[error("table {file}: column '{column}' {fault}")]
    TableColumn {
        file: String,
        column: String,
        fault: String,
    },

    /// A value of a table is no image or no label: correct it, or leave its row out.
    #[error("table {file}: row {row} of row group {group}, column '{column}', {fault}")]
    TableCell {
        file: String,
        column: String,
        group: usize,
        row: usize,
        fault: String,
    },

    /// `task.data` names a data set that is not registered: add the plugin that registers it.
    #[error(transparent)]
    Name(#[from] NameError),

    #[error("data '{name}': the application could not provide it ({cause}); see task.data.settings")]
    CustomData {
        name: String,
        cause: Box<dyn std::error::Error + Send + Sync>,
    },

    #[error("data '{name}' of the application: the {part} part has {fault}; correct what it returns")]
    CustomImages {
        name: String,
        part: &'static str,
        fault: String,
    },

    /// Each byte of a text is a token: those of a packed file, of a document or of UTF-16 are none.
    #[error("data file {file} {fault}")]
    NotText { file: String, fault: &'static str },

    /// The host reads images: choose `transformer` as `task.host`, or images as `task.data`.
    #[error("task.data is a text where images are needed")]
    TextForImages,

    #[error("data '{name}' has {vocab} different tokens, task.classes is {classes}; make them agree")]
    Vocabulary { name: String, vocab: i64, classes: i64 },

    #[error("task.host reads {host}, but the data '{name}' is {data}; make task.{key} agree with the data")]
    TextMismatch {
        name: String,
        key: &'static str,
        host: String,
        data: String,
    },

    #[error(
        "data file {name} is not an IDX file of unsigned bytes: it starts with {found:02x?}, expected 00 00 08 and the \
         number of dimensions; convert it to IDX type 0x08"
    )]
    BadMagic { name: String, found: Vec<u8> },

    #[error(
        "data file {name} has {found} dimensions, {what} need {expected}; check that images and labels are not swapped"
    )]
    Dimensions {
        name: String,
        what: &'static str,
        expected: &'static str,
        found: usize,
    },

    #[error(
        "data file {name} {} bytes; \
         the file is damaged, or its sizes are not written as the format says: fetch or convert it again",
        if u128::from(*.found) > *.expected {
            format!("continues after the {expected} that its header implies, found {found} or more")
        } else {
            format!("has {found} bytes, its header implies {expected}")
        }
    )]
    SizeMismatch { name: String, expected: u128, found: u64 },

    #[error(
        "data file {name} has {images} images, {label_name} has {labels} labels; give the pair that belongs together"
    )]
    LengthMismatch {
        name: String,
        images: usize,
        label_name: String,
        labels: usize,
    },

    /// A scenario gives the images of a test part without its labels, or the reverse.
    #[error("task.data.{missing} is missing: images and labels of the test part go together, give both or neither")]
    HalfAPair { missing: &'static str },

    #[error(
        "data '{name}': label {label} of sample {index}{} is outside 0..{classes}; correct task.classes or the labels",
        .byte.map(|byte| format!(" (byte {byte})")).unwrap_or_default()
    )]
    LabelOutOfRange {
        name: String,
        index: usize,
        byte: Option<u64>,
        label: i64,
        classes: i64,
    },

    #[error(
        "data '{name}' has {found} classes, task.classes is {classes}; write `classes: {found}` beside `data` in the task, or \
         give `--set task.classes={found}`"
    )]
    ClassCount { name: String, found: usize, classes: i64 },

    #[error("data '{name}': the {part} part has {found}, the training part {expected}; all parts need the same")]
    UnequalParts {
        name: String,
        part: &'static str,
        found: String,
        expected: String,
    },

    #[error(
        "data '{name}': images are {height}x{width} pixels, and hosts read squares; cut or pad them (of arrays: is their \
         layout another?), or bring a folder of image files, which are cropped when they are read"
    )]
    NotSquare { name: String, height: usize, width: usize },

    #[error("{place} holds no image; valid: at least one for every class")]
    NoImages { place: String },

    #[error(
        "data file {file}: record {record} at byte {byte} has {found} of {expected} bytes; \
         the file is cut short, or its records are of another format: fetch it again"
    )]
    TruncatedRecord {
        file: String,
        record: usize,
        byte: u64,
        found: usize,
        expected: usize,
    },

    #[error(
        "{} has no file {member}, which {format} needs; fetch the set again from {origin}",
        .path.display()
    )]
    MissingMember {
        path: PathBuf,
        member: &'static str,
        format: &'static str,
        origin: &'static str,
    },

    #[error("{file} is there twice; keep one")]
    MemberTwice { file: String },

    #[error(
        "{} is the {format} set in its version with Python pickles, which can run any program and are not read; \
         fetch the binary version, {archive}, from {origin}",
        .path.display()
    )]
    Pickle {
        path: PathBuf,
        format: &'static str,
        archive: &'static str,
        origin: &'static str,
    },

    #[error("{} is no folder; give the folder that holds the files", .path.display())]
    NotAFolder { path: PathBuf },

    #[error(
        "{} has no folders of classes; valid: CLASS/IMAGE.png, or train/CLASS/IMAGE.png beside val and test",
        .folder.display()
    )]
    NoClasses { folder: PathBuf },

    #[error("{} is a class that is missing in the training part; remove it, or add it there", .folder.display())]
    UnknownClass { folder: PathBuf },

    #[error("{} and {} are the same part by their names; join them, or rename one", .first.display(), .second.display())]
    PartTwice { first: PathBuf, second: PathBuf },

    #[error("{} is a link that leads nowhere ({cause}); bring what it links to, or remove it", .path.display())]
    BrokenLink { path: PathBuf, cause: std::io::Error },

    /// Images that are damaged or of another format: save them again, or remove them.
    #[error("image {images}; valid: PNG, JPEG, WebP, BMP and GIF files")]
    UnreadableImages { images: String },

    /// A file that `task.data` names as NPY is something else, or of a version that is not known here: save it again with `numpy.save`.
    #[error("data file {file} is no NPY file that can be read: at byte {byte} expected {expected}")]
    NpyHeader {
        file: String,
        byte: u64,
        expected: &'static str,
    },

    #[error("data file {file} has elements of type '{found}', which {what} cannot have; valid: {valid}")]
    NpyType {
        file: String,
        what: &'static str,
        found: String,
        valid: &'static str,
    },

    #[error("data file {file} has the sizes [{}]; valid: {valid}", listed(.found))]
    NpyShape {
        file: String,
        found: Vec<usize>,
        valid: &'static str,
    },

    /// `place` is a byte of a file, or a part.
    #[error(
        "data {place}: the value {value} is outside 0..={scale}; {}",
        if *.value < 0.0 { "no scale makes it a pixel: undo the normalisation" } else { "correct it or task.data.scale" }
    )]
    PixelOutOfRange { place: String, value: f64, scale: f64 },

    #[error("the parts have floats of several scales ({0}), and one is read; save all with the same")]
    UnequalScales(String),

    #[error(
        "data file {file}: the largest of its floats is {largest}, from which the value that means 1.0 cannot be seen; give it \
         to `init` or `data check`: --scale 1 if rounding alone has made values larger than 1, --scale 255 for bytes"
    )]
    UnclearScale { file: String, largest: f32 },

    #[error("data file {file} is no zip archive that can be read ({cause}); save it again with numpy.savez")]
    Archive { file: String, cause: String },

    #[error(
        "data file {} has no array '{name}', but {}; valid names: {valid}",
        .file.display(), if .found.is_empty() { "nothing at all".into() } else { listed(.found) }
    )]
    MissingArray {
        file: PathBuf,
        name: String,
        found: Vec<String>,
        valid: &'static str,
    },

    #[error("{} is no data set of a known format: {what}", .path.display())]
    UnknownFormat { path: PathBuf, what: String },

    #[error("{}: {flag} says nothing of data in its format; leave it out, or name another with --format", .path.display())]
    FlagWithoutUse { path: PathBuf, flag: &'static str },

    #[error("{} holds images without labels; name the file of the labels after it", .path.display())]
    LabelsNotNamed { path: PathBuf },

    #[error(
        "data '{name}': class {classes} has no sample in the {part} part; {}give more samples of it, or another split",
        if *.is_named { "" } else { "number the labels from 0 without a gap, " }
    )]
    EmptyClass {
        name: String,
        classes: String,
        part: &'static str,
        is_named: bool,
    },

    #[error("data '{name}' has images of one class; valid: at least two")]
    OneClass { name: String },

    #[error("data '{name}': the {part} part is empty; give more samples or change task.split")]
    EmptyPart { name: String, part: &'static str },

    #[error(
        "task.normalise: {what} has {found} values, the data '{name}' has {channels} channels; give one value a channel"
    )]
    NormaliseChannels {
        name: String,
        what: &'static str,
        found: usize,
        channels: usize,
    },

    #[error(
        "task.normalise: the standard deviation of channel {channel} of '{name}' is {std}; \
         it must be finite and at least 1e-6: drop the constant channel or give constants"
    )]
    FlatChannel { name: String, channel: usize, std: f64 },

    #[error("task.host expects {host} but the data '{name}' has {data}; make task.host.{key} agree with the data")]
    ShapeMismatch {
        name: String,
        key: &'static str,
        host: String,
        data: String,
    },

    #[error(
        "task.batch_size {batch} with batches_per_step {mode} and {envs} envs leaves no training batch of \
         {n_train} samples; the largest legal batch_size is {max_batch}"
    )]
    TooSmall {
        n_train: usize,
        batch: usize,
        envs: usize,
        mode: &'static str,
        max_batch: usize,
    },

    #[error("task.val_batches_per_step is {asked}; it must be in 1..={available}")]
    BatchCount { asked: usize, available: usize },

    #[error("data '{name}': placing it on the device failed ({cause}); free device memory or use fewer samples")]
    Device { name: String, cause: TorchError },

    #[error(
        "data.residency: stream is not possible, as the training part of '{name}' cannot be read from its files as it is \
         needed: they are of another format; valid: unpacked IDX files, NPY arrays of bytes, the folder of a CIFAR archive, token files, a \
         text; or data.residency: auto, device or host"
    )]
    CannotStream { name: String },

    #[error(
        "data.residency: stream is not possible, as {file} is packed: no part of it can be read without all before it; \
         unpack it, or write data.residency: auto, device or host"
    )]
    PackedStream { file: PathBuf },

    #[error("the threads that gather batches could not be started ({0}); see data.workers")]
    NoReaders(String),

    #[error("the batch feed of env {env}: the thread that gathered the batch was lost ({cause}); resume the run")]
    ReaderLost { env: u64, cause: String },

    #[error(
        "the batch feed of env {env}: a batch was not read within {seconds} s; \
         check the storage of the data, or raise data.stall_timeout_s"
    )]
    FeedStalled { env: u64, seconds: f64 },

    #[error("the batch feed of env {env}: a device operation failed ({cause}); see the device's own message")]
    FeedDevice { env: u64, cause: TorchError },
}

/// The first of a list, and how many more there are: a message fits on a screen.
pub(super) fn listed<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    listed_first(10, items)
}

/// The first `count` of a list, and how many more there are.
pub(super) fn listed_first<T: Display>(count: usize, items: impl IntoIterator<Item = T>) -> String {
    let mut items = items.into_iter();
    let named: Vec<String> = items.by_ref().take(count).map(|item| item.to_string()).collect();
    let named = named.join(", ");
    match items.count() {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

impl DataError {
    pub(super) fn io(path: &Path, cause: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            cause,
        }
    }

    pub(super) fn unreadable(file: &str, byte: u64, cause: std::io::Error) -> Self {
        Self::Unreadable {
            file: file.into(),
            byte,
            cause,
        }
    }

    pub(super) fn device(name: &str, cause: impl Into<TorchError>) -> Self {
        let (name, cause) = (name.into(), cause.into());
        Self::Device { name, cause }
    }

    pub(super) fn feed_device(env: u64, cause: impl Into<TorchError>) -> Self {
        let cause = cause.into();
        Self::FeedDevice { env, cause }
    }
}
