//! Actions: what may be chosen, what it means, and how it is carried out.
//!
//! Eight categorical heads make an action; slot reports become a [`MaskSet`] of valid choices; a [`Decision`] within the
//! masks becomes a changed slot, or a reason why not.

mod action_space;
mod choices;
mod commands;
mod decision;
pub(crate) mod execution;
mod heads;
mod masks;

pub use action_space::AllowedActions;
pub use choices::Choices;
pub use commands::{ActionFeedback, command_of, indices_of};
pub use decision::{Decision, Sample};
pub use execution::{Chosen, CommandOutcome, execute_action};
pub use heads::{HEADS, Head, HeadIndices, OPS, RELEVANCE, available, relevant};
pub use masks::{MaskRow, MaskSet};
