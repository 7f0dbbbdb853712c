//! Failures of tensor work: C++ exceptions, tch's errors and its panics, sorted by what can be done about them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tch::TchError;

/// What went wrong in libtorch, classified by message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TorchError {
    /// Fewer rows at a time, smaller batches or fewer envs per device may help.
    #[error(
        "the device ran out of memory: {0}; what helps: twice the training.micro_batches, a smaller task.batch_size, \
         fewer envs per device"
    )]
    OutOfMemory(String),
    /// The process's device state is lost; nothing more may be asked of the device.
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
const SHAPE: &[&str] = &[
    "shape",
    "size mismatch",
    "sizes",
    "dimension",
    "must match the size",
    "expected input",
    "expected weight",
    "invalid for input of size",
    "cannot be multiplied",
    "channels",
    "out of bounds",
];

impl TorchError {
    /// Sorts a message of libtorch, tch or a panic into its class. Memory is looked for before device faults, because
    /// an allocation that fails on CUDA reports itself as a CUDA error too.
    pub fn classify(message: impl Into<String>) -> Self {
        let message = first_lines(&message.into());
        let lower = message.to_lowercase();
        let names_one_of = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        if names_one_of(OUT_OF_MEMORY) {
            Self::OutOfMemory(message)
        } else if names_one_of(DEVICE_FAULT) {
            Self::DeviceFault(message)
        } else if names_one_of(SHAPE) {
            Self::Shape(message)
        } else {
            Self::Other(message)
        }
    }
}

impl From<TchError> for TorchError {
    fn from(error: TchError) -> Self {
        match error {
            TchError::Torch(message) => Self::classify(message),
            TchError::Shape(message) => Self::Shape(message),
            other => Self::classify(other.to_string()),
        }
    }
}

/// Runs `body` and turns a panic into an error: tch's convenience methods panic on every C++ exception.
///
/// Guards created inside `body` are dropped by the unwinding, so the thread's modes are as before. State that `body`
/// was about to change may be half changed: the caller discards or resets it.
pub fn catch<T>(body: impl FnOnce() -> T) -> Result<T, TorchError> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| TorchError::classify(text_of(&*payload)))
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

/// The message without libtorch's C++ backtrace. Panics carry errors in debug form, where line ends are escaped.
fn first_lines(message: &str) -> String {
    let unescaped = message.replace("\\n", "\n");
    let end = unescaped.find("\nException raised from").unwrap_or(unescaped.len());
    unescaped[..end].trim_end().to_string()
}

#[cfg(test)]
mod tests;
