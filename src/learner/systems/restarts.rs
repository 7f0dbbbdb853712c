//! A round that begins anew leaves no trace in the rollout.

use bevy_ecs::prelude::*;

use super::context::PolicyLearner;

/// Before the first step of every round.
pub(crate) fn mark_rollout(mut policy: ResMut<PolicyLearner>) {
    policy.buffer.get().mark();
}

/// The rollout is as the round found it.
pub(crate) fn rewind_rollout(mut policy: ResMut<PolicyLearner>) {
    policy.buffer.get().rewind();
}
