//! The learner's part of the schedule, in the order of a round.

mod context;
pub(crate) mod episode_ends;
pub(crate) mod rollbacks;
pub(crate) mod startup;
pub(crate) mod transitions;
pub(crate) mod updates;

pub use context::PolicyLearner;
pub(super) use episode_ends::end_segments;
pub(super) use rollbacks::credit_rollbacks;
pub(super) use startup::build_learner;
pub(super) use transitions::{remember_states, store_decisions, store_outcomes};
pub use updates::{LastUpdate, PolicyDiverged};
pub(super) use updates::{stop_if_diverged, update_policy};
