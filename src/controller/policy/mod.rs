//! The learned controller: networks that turn observations into logits and a value, the distribution over actions that
//! the logits stand for, and the controller around both (spec 03 §4, §7, §11).
//!
//! A network ([`ActorCritic`]) knows nothing of masks or probabilities: [`ActorCriticController`] owns masking, floors,
//! sampling, evaluation and the recurrent state of its envs, for any network.

mod actor_critic;
mod controller;
mod cores;
mod distribution;
mod evaluate;
mod layers;
mod layout;
mod network;
mod parameters;
mod recurrent;
mod rollout;
mod sample;
mod storage;

pub use actor_critic::*;
pub use controller::*;
pub use distribution::*;
pub use layers::*;
pub use layout::*;
pub use network::*;
pub use parameters::*;
pub use sample::*;
pub use storage::*;
