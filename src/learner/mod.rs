//! How a policy improves: rollouts of many envs in, parameter updates out (spec 04).
//!
//! The way of the data: [`RolloutBuffer`] (`buffer`, written by `record`, edited by `rollback`) → `finalize`
//! (`reward_norm`, `gae`, `diagnostics`, `value_norm`, `advantages`, `sequences`) → `update` (`loss`, `optimizer`, flags
//! and numbers in `readings`) → `guards` → [`UpdateRecord`] (`metrics`). [`Learner`] (`ppo`) holds what lasts from update
//! to update, `state` is what a checkpoint keeps of it, `schedules` what changes in its course.
//!
//! The systems that feed it stand in the order of a round in `systems` (start-up, rollbacks), `transitions` (steps),
//! `episode_ends` and `rollout_ends`.
//!
//! A learner knows a policy as [`TrainablePolicy`](crate::controller::TrainablePolicy) and nothing of envs.

mod advantages;
mod buffer;
mod diagnostics;
mod episode_ends;
mod error;
mod finalize;
mod gae;
mod guards;
mod loss;
mod metrics;
mod optimizer;
mod ppo;
mod readings;
mod record;
mod recurrent;
mod reward_norm;
mod rollback;
mod rollout_ends;
mod schedules;
mod segments;
mod sequences;
mod state;
mod systems;
#[cfg(test)]
mod tests;
mod transitions;
mod update;
mod value_norm;

pub use buffer::{BufferShape, RolloutBuffer};
pub use diagnostics::RolloutDiagnostics;
pub use error::{BufferError, LearnerError};
pub use gae::{Advantages, gae};
pub use metrics::*;
pub use ppo::{Learner, LearnerStream};
pub use record::{DecidedStep, StepOutcome, StepTensors};
pub use recurrent::StateHealth;
pub use reward_norm::RewardNormalizer;
pub use rollout_ends::{LastUpdate, PolicyDiverged};
pub use schedules::{Horizon, Schedules};
pub use segments::*;
pub use state::{Counters, LearnerState};
pub use systems::{LearnerPlugin, PolicyLearner};
pub use value_norm::{ValueNormalizer, ValueUnits};
