//! Rewards: one number per env and step, and the terms that it is the sum of (spec 05).
//!
//! Before the action `capture_reward_inputs` looks at the seeds; after the tick `compute_reward` compares and pays, so
//! that a reward belongs to what the command did, not to what it asked for. [`RewardFunction`] is pure: plain
//! [`RewardInputs`] in, a [`RewardBreakdown`] out, with a [`RewardState`] for what outlives a step. Attribution,
//! potentials, rent and warnings are summed over all slots; only the shaping of actions refers to the acted one.

mod attribution;
mod breakdown;
mod costs;
mod episode;
#[cfg(test)]
mod fixtures;
mod function;
mod inputs;
mod modes;
#[cfg(test)]
mod modes_tests;
mod potential;
#[cfg(test)]
mod properties;
mod report;
mod shaped;
mod state;
mod systems;
#[cfg(test)]
mod tests;

pub use breakdown::*;
pub use episode::*;
pub use function::*;
pub use inputs::*;
pub use potential::*;
pub use report::*;
pub use state::RewardState;
pub use systems::*;
