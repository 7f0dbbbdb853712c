//! Seeds: what can grow in a slot, and the life it leads there.
//!
//! Two halves that meet only in an env's slots: plain data (stages, alpha, gates, legality, lifecycle) and tensors
//! (blueprints, modules, gate networks, blend operators).

mod alpha;
mod blend;
mod blueprint;
mod change;
#[cfg(test)]
mod fixtures;
mod gate_network;
mod gates;
mod instance;
#[cfg(test)]
mod instance_tests;
mod invariants;
mod legality;
mod lifecycle;
mod modules;
#[cfg(test)]
mod properties;
mod record;
mod report;
mod stages;
mod statistics;

pub use alpha::*;
pub use blend::*;
pub use blueprint::*;
pub use change::*;
pub use gate_network::*;
pub use gates::*;
pub use instance::*;
pub use invariants::*;
pub use legality::*;
pub use lifecycle::*;
pub use modules::CnnBlueprint;
pub use record::*;
pub use report::*;
pub use stages::*;
pub use statistics::*;
