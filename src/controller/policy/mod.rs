//! Policies: networks that turn observations into logits and a value, the distribution over actions that the logits stand
//! for, and what a learner needs of both.
//!
//! A network ([`ActorCritic`]) knows nothing of masks or probabilities; masking, floors, sampling, evaluation and the
//! recurrent state of the envs are the same for any network.

mod actor_critic;
mod cores;
mod distribution;
mod evaluate;
mod layers;
mod layout;
mod learning;
mod nets;
mod network;
mod parameters;
mod precision;
mod recurrent;
mod rollout;
mod sample;
mod storage;
mod trainable;
mod trunk;

pub use actor_critic::{ActorCritic, NetContext, NetSequence, NetSpec, PolicyInput, SequenceOutput, StepOutput};
pub use distribution::Floor;
#[cfg(test)]
pub use evaluate::HeadTerms;
pub use evaluate::{OpTables, Stored, head_terms};
pub use layers::{HIDDEN_GAIN, Linear, Stack};
pub use layout::LogitLayout;
pub use learning::LearningPolicy;
pub use nets::{NetFactory, NetRegistry};
pub use parameters::PolicyParams;
pub use precision::PolicyPrecision;
pub use rollout::Rollout;
pub use sample::{DecideMode, choose, head_uniforms};
pub use storage::{
    FORMAT, MANIFEST_FILE, PolicyManifest, VALUE_HEAD, WEIGHTS_FILE, action_space_hash, load_policy, save_policy,
};
pub use trainable::{Evaluation, ParamGroup, PolicyParam, RecurrentState, SequenceInput, TrainablePolicy, ValueOutput};
