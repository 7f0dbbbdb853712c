//! How a policy improves: rollouts of many envs in, parameter updates out. Tensors and configurations; nothing in here knows
//! the ECS, an env, or why an episode ended.
//!
//! The way of the data: [`RolloutBuffer`] (`steps` and `segments` in it, filled by `writing`, edited by `rollback`) →
//! `finalize` (`reward_norm`, `targets` with `gae`, `value_norm`, `sequences`) → `update` (`loss`, `optimizer`,
//! `measurements`) → `guards` and `metrics` →
//! [`LearnerUpdate`](crate::telemetry::LearnerUpdate). [`Learner`] holds what lasts from update to update, `state` is what
//! a checkpoint keeps of it, `schedules` what changes in its course.
//!
//! The algorithm itself stands in `update.rs` from top to bottom. A learner knows a policy as
//! [`TrainablePolicy`](crate::controller::TrainablePolicy).

mod buffer;
mod error;
mod finalize;
mod gae;
mod guards;
mod learner;
mod loss;
mod measurements;
mod metrics;
mod optimizer;
mod reward_norm;
mod rollback;
mod schedules;
mod segments;
mod sequences;
mod state;
mod steps;
mod targets;
#[cfg(test)]
mod tests;
mod unfinished;
mod update;
mod value_norm;
mod writing;

pub use buffer::{BufferShape, RolloutBuffer};
pub use error::{BufferError, LearnerError};
pub use learner::Learner;
pub use reward_norm::RewardNormalizer;
pub use schedules::{Horizon, LearnerSchedules};
pub use segments::SegmentEnd;
pub use state::{Counters, LearnerState};
pub use steps::{DecidedStep, StepOutcome, StepTensors};
pub use value_norm::{ValueNormalizer, ValueUnits};
