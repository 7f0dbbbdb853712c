//! The learner's part of the schedule, in the order of a round.

mod context;
pub(crate) mod episode_ends;
mod refill;
mod kept;
pub(crate) mod recordings;
pub(crate) mod rollbacks;
pub(crate) mod startup;
pub(crate) mod transitions;
pub(crate) mod unfinished;
pub(crate) mod updates;

pub use context::PolicyLearner;
pub use kept::KeptRollouts;
pub use recordings::RecordingsError;
pub use updates::{LastUpdate, PolicyDiverged, is_between_rollouts, rollout_rounds};
