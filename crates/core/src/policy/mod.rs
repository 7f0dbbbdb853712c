//! Policies: networks that turn observations into logits and a value, the distribution over actions that the logits stand
//! for, and what a learner needs of both.
//!
//! A network ([`ActorCritic`]) knows nothing of masks or probabilities; masking, floors, sampling, evaluation and the
//! recurrent state of the envs are the same for any network.

mod layout;
mod distribution;
mod trainable;
mod actor_critic;
mod recurrent;
mod cores;
mod window;
mod network;
#[cfg(test)]
pub(crate) mod fixtures;

pub(crate) use actor_critic::PolicyPrecision;
pub use actor_critic::{ActorCritic, NetContext, NetOutput, NetSequence, NetSpec, PolicyInput};
pub use cores::{CoreOutput, Lstm, NetCore, RecurrentCell, RecurrentCore};
pub use distribution::DecideMode;
#[cfg(test)]
pub(crate) use distribution::HeadTerms;
pub(crate) use distribution::{Floor, OpTables, Stored, choose, head_terms, head_uniforms};
pub use layout::LogitLayout;
pub use network::{EMBEDDING_SIZE, NetFactory, NetRegistry};
pub use recurrent::Packing;
pub use trainable::{
    Evaluation, ParamGroup, PolicyParam, PolicyParams, RawObservations, RecurrentState, SequenceInput, TrainablePolicy,
};
