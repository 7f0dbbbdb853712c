//! Validation: one pass that measures the network and every configuration of its seeds.

mod coalition;
#[cfg(test)]
mod coalition_tests;
mod coalition_tree;
mod folding;
mod plan;

pub use coalition::*;
pub use coalition_tree::*;
pub use folding::*;
pub use plan::*;
