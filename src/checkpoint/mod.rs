//! What lasts from round to round: checkpoints on disk, and runs that go on from them.

mod checksums;
mod frozen;
mod resume;
mod saved_learner;
mod shelf;
pub(crate) mod systems;

pub use checksums::ChecksumError;
pub use frozen::{FrozenPolicy, FrozenPolicyError, PolicyOrigin};
pub use resume::{PastRun, ResumeError, ResumePoint};
pub use shelf::{BestCheckpoint, CheckpointError, CheckpointName, Checkpoints, Progress};
pub use systems::{CheckpointPlugin, CheckpointState, RunDirectoryLost};
