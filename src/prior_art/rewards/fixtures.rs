//! Rewards for the tests of this folder, in addition to the engine's steps.

use super::shaped::{CommittedAttribution, ShapedReward};
use crate::prelude::*;
pub use crate::reward::fixtures::*;

pub fn mode(reward: impl RewardMode + 'static) -> Arc<dyn RewardMode> {
    Arc::new(reward)
}

/// The shaped reward that pays growing seeds like committed ones, as in the first descriptions.
pub fn generous() -> ShapedReward {
    ShapedReward {
        contribution_weight: 1.0,
        growing_pay_steps: None,
        committed_attribution: CommittedAttribution::Frozen,
        ..ShapedReward::default()
    }
}

pub fn shaped() -> Arc<dyn RewardMode> {
    mode(generous())
}

/// The generous reward, changed.
pub fn shaped_with(change: impl FnOnce(&mut ShapedReward)) -> Arc<dyn RewardMode> {
    let mut reward = generous();
    change(&mut reward);
    mode(reward)
}
