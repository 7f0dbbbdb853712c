//! The rollout in checkpoints inside a round. What a policy is and how far its learner has come do not change inside one:
//! they are kept as between rounds.

use bevy_ecs::prelude::*;

use super::context::PolicyLearner;
use crate::health::Failure;
use crate::unfinished::UnfinishedRound;

/// The round with which the rollout began.
const BEGAN_WITH: &str = "rollout.began_with";

/// For a checkpoint inside the round.
pub(crate) fn save_rollout(
    policy: Option<ResMut<PolicyLearner>>,
    mut round: ResMut<UnfinishedRound>,
) -> Result<(), Failure> {
    let Some(mut policy) = policy else { return Ok(()) };
    round.put(BEGAN_WITH, &policy.began_with)?;
    Ok(policy.buffer.get().save(&mut round)?)
}

/// What [`save_rollout`] has kept.
pub(crate) fn restore_rollout(
    policy: Option<ResMut<PolicyLearner>>,
    round: Res<UnfinishedRound>,
) -> Result<(), Failure> {
    let Some(mut policy) = policy else { return Ok(()) };
    policy.began_with = round.get(BEGAN_WITH)?;
    policy.buffer.get().restore(&round)
}
