//! The improvement of a policy, from rollouts of many envs to parameter updates. Tensors and configurations: nothing here knows
//! the ECS, an env, or why an episode ended.
//!
//! The way of the data: [`RolloutBuffer`] (`buffer`, of `steps`) → `advantages` → `sequences` → `update` (`loss`, `optimizer`) →
//! `measurements` → [`LearnerUpdate`](crate::telemetry::LearnerUpdate). [`Learner`] (`learner`) leads it there, and holds what lasts
//! from update to update.
//!
//! The algorithm itself is `update.rs` from top to bottom. A learner knows a policy as
//! [`TrainablePolicy`](crate::policy::TrainablePolicy).

mod steps;
mod buffer;
mod advantages;
mod sequences;
mod optimizer;
mod loss;
mod measurements;
mod update;
mod learner;
#[cfg(test)]
mod tests;

pub use advantages::{Counters, LearnerState, RewardNormalizer, ValueNormalizer, ValueUnits};
pub use buffer::{BufferShape, RolloutBuffer};
pub use learner::Learner;
pub use loss::{Horizon, LearnerSchedules};
pub use steps::{BufferError, DecidedStep, LearnerError, SegmentEnd, StepOutcome, StepTensors};
