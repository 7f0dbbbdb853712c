//! The learner's part of the schedule: what every step adds to the rollout (`transitions`), what is learnt from in its place
//! (`refill`, `recordings`), and the learner's beginning and its updates (`updates`).

pub(crate) mod context;
pub(crate) mod transitions;
mod refill;
mod recordings;
pub(crate) mod updates;

pub use context::PolicyLearner;
pub use recordings::RecordingsError;
pub(crate) use updates::RolloutSource;
pub use updates::{LastUpdate, PolicyDiverged, is_between_rollouts};
