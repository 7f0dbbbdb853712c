//! Failures of tensor work: C++ exceptions, tch's errors and its panics, sorted by their remedies.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tch::TchError;

/// An error in libtorch, classified by message: a C++ exception, an error of tch or a panic. The remedy depends on the
/// class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TorchError {
    /// Fewer rows at a time, smaller batches, shorter episodes or fewer envs may help.
    #[error(
        "no memory is left: {0}; split batches into more parts (if the run has a checkpoint: `simic-engine resume RUN \
         --allow training.micro_batches --set training.micro_batches=N`), or lower task.batch_size or the envs per \
         device; if a rollout was too large, lower run.max_steps or run.n_envs"
    )]
    OutOfMemory(String),
    /// The process's device state is lost, and the device can't be used any more. Start the process again, and resume the run
    /// from its last checkpoint.
    #[error("the device failed: {0}")]
    DeviceFault(String),
    /// Tensors that do not fit together: a mistake in a host, a seed module or a data set.
    #[error("tensor shapes do not fit: {0}")]
    Shape(String),
    /// Anything else, in the words of libtorch.
    #[error("{0}")]
    Other(String),
}

const OUT_OF_MEMORY: &[&str] = &[
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "bad_alloc",
    // The words of an error of this type that was wrapped into another one.
    "no memory is left",
];
const DEVICE_FAULT: &[&str] = &[
    "device-side assert",
    "illegal memory access",
    "illegal instruction",
    "misaligned address",
    "launch failure",
    "launch timed out",
    "uncorrectable ecc",
    "cuda error",
    "cudnn_status_execution_failed",
    "cublas_status_execution_failed",
];
/// Phrases of libtorch about sizes; single words such as `shape` stand in messages of other kinds too.
const SHAPE: &[&str] = &[
    "shapes cannot be multiplied",
    "must match the size",
    "must match the existing size",
    "sizes of tensors must match",
    "size mismatch",
    "inconsistent tensor size",
    "is invalid for input of size",
    "must be the same as input size",
    "expected input",
    "expected weight",
    "expected size for",
    "dimension out of range",
];

impl TorchError {
    /// Sorts a message of libtorch into its class. Memory is looked for before device faults, because an allocation that
    /// fails on CUDA reports itself as a CUDA error too.
    pub fn classify(message: impl AsRef<str>) -> Self {
        let message = without_stack(message.as_ref());
        let lower = message.to_lowercase();
        let names_one_of = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        if names_one_of(OUT_OF_MEMORY) {
            Self::OutOfMemory(without_allocator(message).into())
        } else if names_one_of(DEVICE_FAULT) {
            Self::DeviceFault(message.into())
        } else if names_one_of(SHAPE) {
            Self::Shape(message.into())
        } else {
            Self::Other(message.into())
        }
    }

    /// The error of a panic: one of tch's carries libtorch's message; any other is taken unchanged.
    fn of_panic(text: String) -> Self {
        Self::classify(torch_message(&text).unwrap_or(text))
    }
}

impl From<TchError> for TorchError {
    fn from(error: TchError) -> Self {
        match error {
            TchError::Torch(message) => Self::classify(message),
            TchError::Shape(message) => Self::Shape(message),
            TchError::SafeTensorError { path, err } => Self::Other(format!("{path}: {}", plain(&err.to_string()))),
            other => Self::classify(other.to_string()),
        }
    }
}

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is inside [`catch`]: a panic becomes an error, which is reported as one.
pub fn is_catching() -> bool {
    CATCHING.get()
}

/// Runs `body` and turns a panic into an error: tch's convenience methods panic on every C++ exception.
///
/// Guards created inside `body` are dropped by the unwinding, so the thread's modes are as before. State that `body`
/// was about to change may be half changed: the caller discards or resets it.
pub fn catch<T>(body: impl FnOnce() -> T) -> Result<T, TorchError> {
    let is_inner = CATCHING.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(is_inner);
    outcome.map_err(|payload| TorchError::of_panic(text_of(&*payload)))
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_string()
    } else {
        "a panic without a message".to_string()
    }
}

/// Plain text of an error of tch's safetensors, which is in debug form with the operating system's words inside.
fn plain(error: &str) -> String {
    let quoted = error
        .split_once("message: \"")
        .and_then(|(_, rest)| rest.split_once('"'));
    quoted.map_or_else(
        || format!("this isn't a valid safetensors file ({error})"),
        |(message, _)| message.into(),
    )
}

/// The message inside a panic of tch, which carries its error in debug form: ``called `Result::unwrap()` on an `Err`
/// value: Torch("…")``.
fn torch_message(panic: &str) -> Option<String> {
    let (_, quoted) = panic.split_once("Torch(\"")?;
    let quoted = quoted.rsplit_once("\")").map_or(quoted, |(quoted, _)| quoted);
    let mut message = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => message.push('\n'),
                Some('t') => message.push('\t'),
                Some(other) => message.push(other),
                None => {}
            },
            other => message.push(other),
        }
    }
    Some(message)
}

/// The message without libtorch's C++ stack, which begins with one of two lines.
fn without_stack(message: &str) -> &str {
    let ends = ["\nException raised from", "\nframe #"];
    let end = ends.iter().filter_map(|end| message.find(end)).min();
    message[..end.unwrap_or(message.len())].trim_end()
}

/// The message without the place in libtorch at which a CPU's allocator failed.
fn without_allocator(message: &str) -> &str {
    message
        .split_once("DefaultCPUAllocator: ")
        .map_or(message, |(_, message)| message)
}

#[cfg(test)]
mod tests;
