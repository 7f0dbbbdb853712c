//! How a policy improves: rollouts of many envs in, parameter updates out. Tensors and configurations; nothing in here knows
//! the ECS, an env, or why an episode ended.
//!
//! The way of the data: [`RolloutBuffer`] (`buffer`, of `steps`, filled and edited by `writing`) → `finalize` (`normalise`,
//! `advantages`, `sequences`) → `update` (`loss`, `optimizer`, `measurements`) → `metrics` →
//! [`LearnerUpdate`](crate::telemetry::LearnerUpdate). [`Learner`] holds what lasts from update to update, `state` is what
//! a checkpoint keeps of it, `schedules` what changes in its course.
//!
//! The algorithm itself is `update.rs` from top to bottom. A learner knows a policy as
//! [`TrainablePolicy`](crate::policy::TrainablePolicy).

mod error;
mod optimizer;
mod schedules;
mod steps;
mod buffer;
mod normalise;
mod advantages;
mod sequences;
mod loss;
mod measurements;
mod recorded;
mod state;
mod update;
mod metrics;
mod finalize;
mod learner;
mod writing;
mod reevaluation;
#[cfg(test)]
mod tests;

pub use buffer::{BufferShape, RolloutBuffer};
pub use error::{BufferError, LearnerError};
pub use learner::Learner;
pub use normalise::{RewardNormalizer, ValueNormalizer, ValueUnits};
pub use schedules::{Horizon, LearnerSchedules};
pub use state::{Counters, LearnerState};
pub use steps::{DecidedStep, SegmentEnd, StepOutcome, StepTensors};
