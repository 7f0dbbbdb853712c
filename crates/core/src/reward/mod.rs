//! Rewards: one number per env and step, and the terms that it is the sum of.
//!
//! Before the action `capture_reward_inputs` looks at the seeds; after the tick `compute_reward` compares and pays, so
//! that a reward belongs to the effect of the command, not to its request. The payment is pure: plain
//! [`RewardInputs`] in, a [`RewardBreakdown`] out, with a [`RewardState`] for what outlives a step. It is computed by a
//! [`RewardMode`]: one file a mode, chosen by the scenario, or a custom one of an application. Attribution,
//! potentials, rent and warnings are summed over all slots; only the shaping of actions refers to the acted one.
//! `docs/reference/rewards-and-attribution.md` has the formulas.

mod breakdown;
mod inputs;
mod episode;
mod potential;
mod state;
mod mode;
mod committed;
mod audit;
mod loss;
mod sparse;
pub(crate) mod systems;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
pub mod fixtures;
#[cfg(any(test, feature = "testing"))]
#[allow(
    dead_code,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    unused_imports,
    reason = "its tests are compiled only here"
)]
pub mod properties;
#[cfg(test)]
mod tests;

use bevy_app::{App, Plugin};

#[cfg(any(test, feature = "testing"))]
pub use self::audit::tests as audited;
pub use self::audit::{Audit, AuditRow, Strategy, audit};
pub use self::breakdown::{RewardBreakdown, Term};
pub use self::committed::committed_of_parts;
pub use self::episode::{EpisodeReward, RewardedStep, episode_rewards, round_rewards};
pub use self::inputs::{EpisodeStatus, PARTS, RewardError, RewardInputs, SeedView, SlotInteraction, SlotStep};
pub use self::mode::{RewardMode, RewardModes, RewardTerm, RewardTerms};
pub use self::state::RewardState;
use self::systems::{BeforeAction, capture_reward_inputs, compute_reward, forget_pruned_seeds, reset_rewards};
pub use self::systems::{RewardHorizon, StepReward};
use crate::env::{EnvId, KeepInRounds};
use crate::schedule::{Act, AddWork, Assess, RoundStart, Work};

/// Pays every decision.
pub struct RewardPlugin;

impl Plugin for RewardPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<RewardHorizon>()
            .init_resource::<RewardModes>()
            .init_resource::<RewardTerms>();
        app.register_required_components::<EnvId, BeforeAction>();
        app.register_required_components::<EnvId, StepReward>();
        app.add_work(RoundStart, Work::ResetRewards, reset_rewards)
            .add_work(Assess, Work::ForgetPrunedSeeds, forget_pruned_seeds)
            .add_work(Act, Work::CaptureRewardInputs, capture_reward_inputs)
            .add_work(Act, Work::ComputeReward, compute_reward)
            .keep_in_rounds::<RewardState>("reward")
            .keep_in_rounds::<EpisodeReward>("paid");
    }
}
