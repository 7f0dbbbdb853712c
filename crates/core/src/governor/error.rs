//! What ends a run in the governor's name.

use crate::growth::SlotId;

/// Mistakes of the engine or of a host, never of training: those are what the governor is for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum GovernorError {
    #[error(
        "the env cannot be restored, its network is not the captured one: missing {}, unexpected {}; nothing was written",
        list(.missing),
        list(.unexpected)
    )]
    /// The network is another one than was captured.
    SnapshotMismatch {
        /// Captured, but not there any more.
        missing: Vec<String>,
        /// There, but not captured.
        unexpected: Vec<String>,
    },
    /// Nothing was captured yet.
    #[error("the env is to be restored, but nothing was captured; the episode must begin with a capture")]
    NoSnapshot,
    #[error(
        "{count} values of the state captured at step {step} are no finite numbers, and it is the only one known good"
    )]
    /// The state that a rollback would restore is broken.
    NonFiniteState { step: u32, count: u64 },
    /// The lifecycle refused to prune a live seed.
    #[error("the seed in slot {slot} could not be pruned by a rollback: {reason}")]
    PruneFailed { slot: SlotId, reason: String },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "nothing".into()
    } else {
        names.join(", ")
    }
}
