//! The learner's part of the schedule, in the order of a round.

mod context;
mod episode_ends;
mod rollbacks;
mod startup;
mod transitions;
mod updates;

pub use context::PolicyLearner;
pub(super) use episode_ends::end_segments;
pub(super) use rollbacks::credit_rollbacks;
pub(super) use startup::build_learner;
pub(super) use transitions::{remember_states, store_decisions, store_outcomes};
pub use updates::{LastUpdate, PolicyDiverged};
pub(super) use updates::{stop_if_diverged, update_policy};
