//! Seeds: what can grow in a slot, and the life it leads there.

mod blend;
mod blueprint;
mod gate_network;
mod instance;
#[cfg(test)]
mod instance_tests;
mod kinds;
mod modules;
mod report;

pub use blend::*;
pub use blueprint::*;
pub use gate_network::*;
pub use instance::*;
pub use kinds::*;
pub use modules::CnnBlueprint;
pub use report::*;
