//! Charging the step's rollbacks to the decisions before them.

use bevy_ecs::prelude::*;

use super::context::LearnerContext;
use crate::env::EnvId;
use crate::governor::RollbackVerdict;
use crate::health::Failure;
use crate::reward::EpisodeReward;

/// Charges every rollback of the step that is blamed on the controller to the transitions of its env, at once: no decision
/// of this step can be credited with the state after it. Without blame, segment and recurrent state continue.
pub(crate) fn credit_rollbacks(
    mut envs: Query<(&EnvId, &mut RollbackVerdict, Option<&mut EpisodeReward>)>,
    mut context: LearnerContext,
) -> Result<(), Failure> {
    for (id, mut verdict, rewards) in &mut envs {
        let Some(rollback) = verdict.0.as_mut().filter(|rollback| rollback.blamed) else {
            continue;
        };
        let penalty = context.policy.learner.get().clamp_penalty(rollback.raw_penalty);
        let row = id.index;
        let buffer = context.policy.buffer.get();
        if let Some(steps_forfeited) = buffer.rollback(row, penalty, rollback.snapshot_step)? {
            rollback.is_charged = true;
            if let Some(mut rewards) = rewards {
                rewards.charge_rollback(steps_forfeited, rollback.raw_penalty);
            }
        }
        context.reset_rows(&[row]);
    }
    Ok(())
}
