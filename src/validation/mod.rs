//! Validation: one pass that measures the network and every configuration of its seeds, and what follows from it.

mod attribution;
mod plan;
mod shapley;

pub use attribution::*;
pub use plan::*;
pub use shapley::*;
