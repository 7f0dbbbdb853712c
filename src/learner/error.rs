//! What can go wrong between a decision and an update (spec 04 §3.2, §10, §15).

use crate::controller::{Head, PolicyError};
use crate::torch::TorchError;

/// A mistake in the use of the buffer, or data that must not enter it. Steps are columns of the env's row.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BufferError {
    #[error("env {env}: its row of {capacity} steps is full")]
    RowFull { env: usize, capacity: usize },
    #[error("env {env}, step {step}: the last step has no outcome yet")]
    PendingStep { env: usize, step: usize },
    #[error("env {env}: an outcome was reported, but no step waits for one")]
    NoPendingStep { env: usize },
    #[error("env {env} is unknown; the buffer has {envs} rows")]
    UnknownEnv { env: usize, envs: usize },
    #[error("env {env}, step {step}: {field} is not finite")]
    NonFinite {
        env: usize,
        step: usize,
        field: &'static str,
    },
    #[error("env {env}: no segment is open")]
    SegmentClosed { env: usize },
    #[error("env {env}, step {step}: the masks allow no {head}")]
    EmptyMask { env: usize, step: usize, head: Head },
    #[error("env {env}, step {step}: the {head} chosen is not allowed by its own mask")]
    IllegalAction { env: usize, step: usize, head: Head },
    #[error("{field}: expected {expected}, found {found}")]
    ShapeMismatch {
        field: &'static str,
        expected: String,
        found: String,
    },
    #[error("env {env}: the segment from step {start} on has neither ended nor been cut")]
    OpenSegment { env: usize, start: usize },
    #[error("the rollout holds no step")]
    EmptyRollout,
    #[error(transparent)]
    Torch(#[from] TorchError),
}

/// Why a learner cannot go on. What merely spoils one update is reported by the update instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LearnerError {
    #[error(transparent)]
    Buffer(#[from] BufferError),
    #[error("the policy could not evaluate its own rollout: {0}")]
    Policy(#[from] PolicyError),
    #[error("the policy cannot be trained: {}", .0.join("; "))]
    Parameters(Vec<String>),
    #[error("the saved learner does not fit this run: {}", .0.join("; "))]
    Incompatible(Vec<String>),
    #[error(transparent)]
    Torch(#[from] TorchError),
}
