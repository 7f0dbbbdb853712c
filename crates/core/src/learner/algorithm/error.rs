//! What can go wrong between a decision and an update.

use crate::actions::{Head, PolicyError};
use crate::torch::TorchError;

/// A mistake in the use of the buffer, or data that must not enter it: what a custom loop around a learner has to correct.
/// Steps are columns of the env's row.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum BufferError {
    /// A row has no room for another step: learn from it and clear it, or make it with more steps.
    #[error("env {env}: its row of {capacity} steps is full")]
    RowFull { env: usize, capacity: usize },
    /// The last step has no outcome yet: complete it before the next begins and before the buffer is used.
    #[error("env {env}, step {step}: the last step has no outcome yet")]
    PendingStep { env: usize, step: usize },
    /// No step waits for an outcome: begin a step before it is completed.
    #[error("env {env}: an outcome was reported, but no step waits for one")]
    NoPendingStep { env: usize },
    /// The buffer has no such row.
    #[error("env {env} is unknown; the buffer has {envs} rows")]
    UnknownEnv { env: usize, envs: usize },
    /// A number is NaN or infinite.
    #[error("env {env}, step {step}: {field} is not finite")]
    NonFinite {
        env: usize,
        step: usize,
        field: &'static str,
    },
    /// There is no open segment to close.
    #[error("env {env}: no segment is open")]
    SegmentClosed { env: usize },
    /// A head has nothing to choose from.
    #[error("env {env}, step {step}: the masks allow no {head}")]
    EmptyMask { env: usize, step: usize, head: Head },
    /// A head chose what its mask excludes.
    #[error("env {env}, step {step}: the {head} chosen is not allowed by its own mask")]
    IllegalAction { env: usize, step: usize, head: Head },
    /// A field does not fit the buffer's shape.
    #[error("{field}: expected {expected}, found {found}")]
    ShapeMismatch {
        field: &'static str,
        expected: String,
        found: String,
    },
    /// A segment has steps and no end: end all segments before the learner learns.
    #[error("env {env}: the segment from step {start} on has not ended")]
    OpenSegment { env: usize, start: usize },
    /// A device error.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

/// # Errors
/// `NonFinite` for a step's `field` unless it is.
pub(super) fn require_finite(is_finite: bool, env: usize, step: usize, field: &'static str) -> Result<(), BufferError> {
    if is_finite {
        Ok(())
    } else {
        Err(BufferError::NonFinite { env, step, field })
    }
}

/// Why a learner cannot continue. What spoils only one update is reported by that update instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LearnerError {
    /// A mistake in the use of the buffer.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The policy refused its own rollout: the masks or states in the buffer are not those that it acted on.
    #[error("the policy could not evaluate its own rollout: {0}")]
    Policy(#[from] PolicyError),
    /// Every problem of the parameters: each must be listed once and require a gradient.
    #[error("the policy cannot be trained: {}", .0.join("; "))]
    Parameters(Vec<String>),
    /// Every difference from what was saved, by name; nothing has changed.
    #[error("the saved learner does not fit this run: {}", .0.join("; "))]
    Incompatible(Vec<String>),
    /// A device error.
    #[error(transparent)]
    Torch(#[from] TorchError),
}
