//! Actions: the choices of a controller and their meaning.
//!
//! An action consists of eight categorical heads. Slot reports become a [`MaskSet`] of valid choices. A [`Decision`] is a choice
//! within the masks.

mod choices;
mod error;
mod heads;
mod commands;
mod masks;
mod decision;
mod action_space;
mod flat;
#[cfg(test)]
pub(crate) mod fixtures;

pub use action_space::AllowedActions;
pub use choices::Choices;
pub use commands::{choice_of, command_of, indices_of};
pub use decision::{ActionFeedback, Decision, Sample};
pub use error::{DecisionPoint, PolicyError};
pub use flat::flat_commands;
pub use heads::{HEADS, Head, HeadIndices, OPS, RELEVANCE, available, relevant};
pub use masks::{MaskRow, MaskSet};
