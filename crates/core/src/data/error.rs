//! Errors of data.

use std::fmt::Display;
use std::io;
use std::path::Path;

use thiserror::Error;

use crate::files::{counted, listed_first};
use crate::torch::TorchError;

/// The reason why data cannot be used. Errors of start-up name the file and the place in it that is wrong, and nothing was
/// trained; those of the feed end the env's episode, or the run, as `run.on_env_error` says.
#[derive(Debug, Error)]
#[error("{fault}; {remedy}")]
pub struct DataError {
    /// The place of the error, and the fault there.
    fault: String,
    /// The correction, or the valid values.
    remedy: String,
}

/// Remedy where a file is not as long as it says.
const DAMAGED: &str = "the file is damaged, or its sizes are not written as the format says: fetch or convert it again";

impl DataError {
    pub(crate) fn new(fault: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (fault, remedy) = (fault.into(), remedy.into());
        Self { fault, remedy }
    }

    pub(super) fn io(path: &Path, cause: io::Error) -> Self {
        let fault = format!("data file {}: reading failed ({cause})", path.display());
        Self::new(fault, "check that it is a readable file")
    }

    pub(super) fn unreadable(file: &str, byte: u64, cause: io::Error) -> Self {
        let fault = format!("data file {file}: reading failed at byte {byte} ({cause})");
        Self::new(fault, "the file is damaged or cut short: fetch or copy it again")
    }

    /// A file that should have `expected` bytes, and has `found`, or more.
    pub(super) fn length(file: &str, expected: u128, found: u64) -> Self {
        let fault = if u128::from(found) > expected {
            format!("continues after the {expected} that its header implies, found {found} or more bytes")
        } else {
            format!("has {found} bytes, its header implies {expected} bytes")
        };
        Self::new(format!("data file {file} {fault}"), DAMAGED)
    }

    /// A record that its file ends in, or before.
    pub(super) fn truncated(file: &str, record: usize, byte: u64, [found, expected]: [usize; 2]) -> Self {
        Self::new(
            format!("data file {file}: record {record} at byte {byte} has {found} of {expected} bytes"),
            "the file is cut short, or its records are of another format: fetch it again",
        )
    }

    /// Label of sample `index` that no class has. It is at `byte` of its file, if it is in one.
    pub(super) fn label(name: &str, index: usize, byte: Option<u64>, label: i64, classes: i64) -> Self {
        let at = byte.map(|byte| format!(" (byte {byte})")).unwrap_or_default();
        let fault = format!("data '{name}': label {label} of sample {index}{at} is outside 0..{classes}");
        Self::new(fault, "correct task.classes or the labels")
    }

    pub(super) fn no_images(place: impl Display) -> Self {
        Self::new(format!("{place} holds no image"), "valid: at least one for every class")
    }

    /// `count` of `one` take `bytes`.
    pub(super) fn memory(count: usize, one: &str, bytes: u128) -> Self {
        let fault = format!("there is no memory for {} of {bytes} bytes in all", counted(count, one));
        Self::new(fault, "make the parts of task.data smaller")
    }

    /// A missing file of those that a published set has.
    pub(super) fn missing_member(folder: &Path, member: &str, format: &str, origin: &str) -> Self {
        let fault = format!("{} has no file {member}, which {format} needs", folder.display());
        Self::new(fault, format!("fetch the set again from {origin}"))
    }

    /// A host that can't read the data. `key` is the field of the task to change.
    pub(super) fn host(key: &str, host: impl Display, name: &str, data: impl Display) -> Self {
        let fault = format!("task.host reads {host}, but the data '{name}' is {data}");
        Self::new(fault, format!("make task.{key} agree with the data"))
    }

    pub(super) fn empty_part(name: &str, part: &str) -> Self {
        let fault = format!("data '{name}': the {part} part is empty");
        Self::new(fault, "give more samples or change task.split")
    }

    pub(crate) fn device(name: &str, cause: impl Into<TorchError>) -> Self {
        let fault = format!("data '{name}': placing it on the device failed ({})", cause.into());
        Self::new(fault, "free device memory or use fewer samples")
    }

    /// A failure of the feed of an env.
    pub(super) fn feed(env: u64, fault: impl Display, remedy: impl Into<String>) -> Self {
        Self::new(format!("the batch feed of env {env}: {fault}"), remedy)
    }

    pub(super) fn feed_device(env: u64, cause: impl Into<TorchError>) -> Self {
        let fault = format!("a device operation failed ({})", cause.into());
        Self::feed(env, fault, "see the device's own message")
    }

    /// The thread that gathered a batch panicked or ended.
    pub(super) fn reader_lost(env: u64, cause: impl Display) -> Self {
        let fault = format!("the thread that gathered the batch was lost ({cause})");
        Self::feed(env, fault, "resume the run")
    }
}

/// The first of a list, and how many more there are: a message fits on a screen.
pub(super) fn listed<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    listed_first(10, items)
}
