//! The learned controller: networks that turn observations into logits and a value, the distribution over actions that
//! the logits stand for, and the controller around both (spec 03 §4, §7, §11).
//!
//! A network ([`ActorCritic`]) knows nothing of masks or probabilities: [`ActorCriticController`] owns masking, floors,
//! sampling, evaluation and the recurrent state of its envs, for any network.

mod actor_critic;
mod controller;
#[cfg(test)]
mod controller_tests;
mod cores;
mod distribution;
mod evaluate;
#[cfg(test)]
mod fixtures;
mod layers;
mod layout;
mod network;
#[cfg(test)]
mod network_tests;
mod parameters;
mod recurrent;
mod rollout;
mod sample;
mod storage;
#[cfg(test)]
mod storage_tests;

pub use actor_critic::*;
pub use controller::*;
pub use distribution::*;
pub use layers::*;
pub use layout::*;
pub use network::*;
pub use parameters::*;
pub use sample::*;
pub use storage::*;
