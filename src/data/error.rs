//! What can go wrong with data. Every message says what was asked, what is wrong, and what to do.

use std::path::PathBuf;

use thiserror::Error;

/// Start-up errors of loading and planning, and device errors of the feed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum DataError {
    #[error(
        "data file '{name}' was not found; looked at {}. \
         Place the file there, or choose a task that needs none (digits_*, synth_*)",
        .looked_at.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    MissingFile { name: String, looked_at: Vec<PathBuf> },

    #[error("data file {}: reading failed ({cause}); check that it is a readable file", .path.display())]
    Io { path: PathBuf, cause: std::io::Error },

    #[error(
        "there is no memory for {images} synthetic images of {bytes} bytes in all; make the parts of task.data smaller"
    )]
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

    #[error("task.data is a text, no images; `TaskData::load` loads either")]
    NoImages,

    #[error("data '{name}' has {vocab} different tokens, task.classes is {classes}; make them agree")]
    Vocabulary { name: String, vocab: i64, classes: i64 },

    #[error("task.host reads {host}, but the data '{name}' is {data}; make task.{key} agree with the data")]
    TextMismatch {
        name: String,
        key: &'static str,
        host: String,
        data: String,
    },

    #[error("data file {name} is gzip-compressed; unpack it with gunzip and name the unpacked file")]
    Compressed { name: String },

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
        "data file {name} has {found} bytes, its header implies {expected}; \
         the file is cut short, or its sizes are not big-endian: fetch or convert it again"
    )]
    SizeMismatch { name: String, expected: u128, found: u64 },

    #[error("data '{name}' has {images} images but {labels} labels; give the pair that belongs together")]
    LengthMismatch { name: String, images: usize, labels: usize },

    #[error(
        "data '{name}': label {label} at index {index} is outside 0..{classes}; correct task.classes or the labels"
    )]
    LabelOutOfRange {
        name: String,
        index: usize,
        label: u64,
        classes: i64,
    },

    #[error(
        "data '{name}': class {class} has no sample in the {part} part; give more samples or a smaller split share"
    )]
    EmptyClass {
        name: String,
        class: i64,
        part: &'static str,
    },

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

    #[error("task.val_batches_per_step is {asked}; it must lie in 1..={available}")]
    BatchCount { asked: usize, available: usize },

    #[error(
        "batches_per_step: shard gives every env its own part, data.feed: common gives all envs the same; choose one"
    )]
    ShardInCommonFeed,

    #[error("data '{name}': placing it on the device failed ({cause}); free device memory or use fewer samples")]
    Device { name: String, cause: tch::TchError },

    #[error("the batch feed of env {env}: a device operation failed ({cause}); see the device's own message")]
    FeedDevice { env: u64, cause: crate::torch::TorchError },
}
