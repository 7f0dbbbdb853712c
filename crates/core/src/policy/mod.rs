//! Policies: networks that turn observations into logits and a value, the distribution over actions that the logits stand
//! for, and what a learner needs of both.
//!
//! A network ([`ActorCritic`]) knows nothing of masks or probabilities; masking, floors, sampling, evaluation and the
//! recurrent state of the envs are the same for any network.

mod distribution;
mod layout;
mod evaluate;
mod sample;
mod trainable;
mod parameters;
mod actor_critic;
mod precision;
mod recurrent;
mod cores;
mod window;
mod trunk;
mod network;
mod nets;
#[cfg(test)]
pub(crate) mod fixtures;

pub use actor_critic::{ActorCritic, NetContext, NetOutput, NetSequence, NetSpec, PolicyInput};
pub use cores::{Lstm, NetCore, RecurrentCell, RecurrentCore};
pub(crate) use distribution::Floor;
#[cfg(test)]
pub(crate) use evaluate::HeadTerms;
pub(crate) use evaluate::{OpTables, Stored, head_terms};
pub use layout::LogitLayout;
pub use nets::{NetFactory, NetRegistry};
pub use parameters::PolicyParams;
pub(crate) use precision::PolicyPrecision;
pub use recurrent::Packing;
pub use sample::DecideMode;
pub(crate) use sample::{choose, head_uniforms};
pub use trainable::{Evaluation, ParamGroup, PolicyParam, RecurrentState, SequenceInput, TrainablePolicy};
pub use trunk::EMBEDDING_SIZE;
