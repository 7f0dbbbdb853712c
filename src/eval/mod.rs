//! A trained policy against opponents on the same episodes, none of which it was trained on. Rules and a policy that cannot see
//! measure the value of the policy. A wider host, the grown architectures from scratch and the best of many drawn schedules
//! answer the first question of reviewers of work on growing networks: would something simpler have done as well?
//!
//! All play in the loop of every run (`compare::episodes`). In: a frozen policy and its scenario ([`Study`]). Out: a
//! [`PlayedRow`] for each, which [`Comparison`](crate::compare::Comparison) judges with the episode as the unit: it is about
//! this one training.

mod blind;
mod opponents;
mod search;
mod equal;
mod study;
mod evaluation;

pub use blind::Blind;
pub use equal::{equal_steps, wider};
pub use evaluation::{Evaluation, PlayedCheckpoint, PolicyCommits, Subject};
pub use opponents::Opponent;
pub use search::{Search, Spent};
pub use study::{Cost, PlayEvent, PlayedRow, Report, Study, StudyError};
