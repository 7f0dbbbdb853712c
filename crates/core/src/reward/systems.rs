//! The reward's part of the schedule: the seeds before a decision, its effects, and its reward.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use smallvec::SmallVec;

use super::breakdown::RewardBreakdown;
use super::episode::{EpisodeReward, RewardedStep};
use super::inputs::{EpisodeStatus, RewardInputs, SeedView, take_auto_pruned};
use super::mode::{RewardModes, RewardTerms};
use super::state::RewardState;
use crate::clock::RunClock;
use crate::controller::{Chosen, CommandOutcome};
use crate::env::{EnvId, Experiment, HostParams, SeedSlots, ValMetrics};
use crate::governor::RollbackVerdict;
use crate::health::{Failure, InEnv};
use crate::scenario::{EpisodeEnd, LearnerConfig};
use crate::validation::{Counterfactual, ValPlan};

/// The discount of a scenario that has no learner.
const DEFAULT_GAMMA: f64 = 0.995;

/// The learner's settings that rewards use.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct RewardHorizon {
    /// Discount per step.
    pub gamma: f64,
    /// The end of an episode that reaches its last step.
    pub last_step: EpisodeStatus,
}

impl Default for RewardHorizon {
    fn default() -> Self {
        Self {
            gamma: DEFAULT_GAMMA,
            last_step: EpisodeStatus::Truncated,
        }
    }
}

impl From<&LearnerConfig> for RewardHorizon {
    fn from(config: &LearnerConfig) -> Self {
        Self {
            gamma: config.gamma,
            last_step: match config.episode_end {
                EpisodeEnd::Truncated => EpisodeStatus::Truncated,
                EpisodeEnd::Terminal => EpisodeStatus::Terminated,
            },
        }
    }
}

/// The env's seeds as the decision found them, in slot order; `None` outside of a step that is rewarded.
#[derive(Component, Default)]
pub(crate) struct BeforeAction(Option<SmallVec<[Option<SeedView>; 4]>>);

/// The step's raw reward; `None` if the env took no decision.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
pub struct StepReward(pub Option<RewardBreakdown>);

/// An episode starts without a past.
pub(crate) fn reset_rewards(
    mut envs: Query<(&mut BeforeAction, &mut RewardState, &mut StepReward, &mut EpisodeReward)>,
) {
    for (mut before, mut state, mut reward, mut episode) in &mut envs {
        *before = BeforeAction::default();
        *state = RewardState::default();
        *reward = StepReward::default();
        *episode = EpisodeReward::default();
    }
}

/// A rollback prunes seeds in a step that pays nothing.
pub(crate) fn forget_pruned_seeds(mut envs: Query<(&RollbackVerdict, &mut RewardState)>) {
    for (verdict, mut state) in &mut envs {
        if verdict.0.is_some() {
            state.roll_back();
        }
    }
}

/// Looks at every env that has decided.
pub(crate) fn capture_reward_inputs(mut envs: Query<(&Chosen, &SeedSlots, &mut BeforeAction, &mut StepReward)>) {
    for (chosen, slots, mut before, mut reward) in &mut envs {
        let views = || {
            slots
                .records()
                .map(|record| record.map(SeedView::before_action))
                .collect()
        };
        before.0 = chosen.0.is_some().then(views);
        reward.0 = None;
    }
}

/// The state that an env's reward reads and writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub(crate) struct RewardedEnv {
    id: &'static EnvId,
    host: &'static HostParams,
    val: &'static ValMetrics,
    plan: &'static ValPlan,
    counterfactual: &'static Counterfactual,
    outcome: &'static CommandOutcome,
    slots: &'static mut SeedSlots,
    before: &'static mut BeforeAction,
    state: &'static mut RewardState,
    reward: &'static mut StepReward,
    episode: &'static mut EpisodeReward,
}

/// Pays every env whose seeds were recorded before the action, according to their state after the tick.
pub(crate) fn compute_reward(
    mut envs: Query<RewardedEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    horizon: Res<RewardHorizon>,
    modes: Res<RewardModes>,
    terms: Res<RewardTerms>,
) -> Result<(), Failure> {
    let mode = modes.of(&experiment.scenario.reward)?;
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        let Some(before) = env.before.0.take() else { continue };
        let inputs = reward_inputs(&mut env, before, &clock, experiment.task.max_steps, *horizon);
        let mut breakdown = mode.compute(&inputs, &mut env.state).in_env(env.id.index)?;
        terms.pay(&inputs, &mut breakdown).in_env(env.id.index)?;
        for (index, slot) in env.slots.0.iter_mut().enumerate() {
            if let Some(seed) = &mut slot.record {
                seed.account = env.state.account(index);
            }
        }
        env.reward.0 = Some(breakdown);
        env.episode.steps.push(RewardedStep::of(&inputs, breakdown));
    }
    Ok(())
}

fn reward_inputs(
    env: &mut RewardedEnvItem,
    before: SmallVec<[Option<SeedView>; 4]>,
    clock: &RunClock,
    max_steps: u32,
    horizon: RewardHorizon,
) -> RewardInputs {
    let auto_pruned = take_auto_pruned(env.slots.0.iter_mut().filter_map(|slot| slot.record.as_mut()));
    let after: SmallVec<[_; 4]> = env.slots.records().collect();
    let network = (env.val.accuracy_percent, env.val.loss);
    let is_final = clock.is_last_step();
    RewardInputs {
        step: clock.step(),
        max_steps,
        gamma: horizon.gamma,
        is_final,
        status: if is_final {
            horizon.last_step
        } else {
            EpisodeStatus::Running
        },
        op: env.outcome.effective_op,
        slot: env.outcome.slot,
        host_params: env.host.0,
        auto_pruned,
        ..RewardInputs::of_seeds(env.plan, env.counterfactual, (before, &after), network)
    }
}

#[cfg(test)]
mod tests;
