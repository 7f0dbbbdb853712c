//! The reward's part of the schedule: the seeds before a decision, what the decision changed, what it is paid.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use smallvec::SmallVec;

use super::breakdown::RewardBreakdown;
use super::costs::standard_rent;
use super::episode::{EpisodeReward, RewardedStep};
use super::extension::RewardTerms;
use super::function::RewardFunction;
use super::inputs::{EpisodeStatus, RewardInputs, SeedView, SlotInteraction, SlotStep};
use super::mode::RewardModes;
use super::state::RewardState;
use crate::clock::RunClock;
use crate::controller::{Chosen, CommandOutcome};
use crate::env::{EnvId, Experiment, HostParams, SeedSlots, ValMetrics};
use crate::governor::RollbackVerdict;
use crate::growth::SeedStage;
use crate::health::{Failure, InEnv};
use crate::scenario::{EpisodeEnd, LearnerConfig};
use crate::seed::SeedRecord;
use crate::validation::{Counterfactual, ValPlan};

/// The discount of a scenario that has no learner.
const DEFAULT_GAMMA: f64 = 0.995;

/// What rewards take over from the learner.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct RewardHorizon {
    /// Discount per step.
    pub gamma: f64,
    /// How an episode that reaches its last step ends.
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
        if let Some(rollback) = &verdict.0 {
            state.roll_back(rollback.pruned.iter().copied());
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

/// What the reward of an env reads and writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub(crate) struct RewardedEnv {
    id: &'static EnvId,
    host: &'static HostParams,
    val: &'static ValMetrics,
    plan: &'static ValPlan,
    counterfactual: &'static Counterfactual,
    chosen: &'static Chosen,
    outcome: &'static CommandOutcome,
    slots: &'static mut SeedSlots,
    before: &'static mut BeforeAction,
    state: &'static mut RewardState,
    reward: &'static mut StepReward,
    episode: &'static mut EpisodeReward,
}

/// Pays every env whose seeds were looked at before the action, by what they are after the tick.
pub(crate) fn compute_reward(
    mut envs: Query<RewardedEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    horizon: Res<RewardHorizon>,
    modes: Res<RewardModes>,
    terms: Res<RewardTerms>,
) -> Result<(), Failure> {
    let function = RewardFunction::new(modes.of(&experiment.scenario.reward)?, horizon.gamma);
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        let Some(before) = env.before.0.take() else { continue };
        let inputs = reward_inputs(&mut env, before, &clock, experiment.task.max_steps, *horizon);
        let mut breakdown = function.compute(&inputs, &mut env.state).in_env(env.id.index)?;
        terms.pay(&inputs, &mut breakdown).in_env(env.id.index)?;
        for (index, slot) in env.slots.0.iter_mut().enumerate() {
            if let Some(seed) = &mut slot.record {
                seed.account = env.state.account(index);
            }
        }
        env.reward.0 = Some(breakdown);
        env.episode.steps.push(RewardedStep {
            step: inputs.step,
            accuracy: inputs.accuracy,
            rent: standard_rent(&inputs),
            breakdown,
        });
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
    let auto_pruned = take_auto_pruned(&mut env.slots);
    let after = env.slots.records().map(|record| record.map(SeedView::after_tick));
    let slots = before.into_iter().zip(after);
    let is_final = clock.is_last_step();
    let refused = env.outcome.refusal.is_some();
    let ordered = env.chosen.0.as_ref().map(|decision| decision.command.op());
    let network = (env.val.accuracy_percent, env.val.loss);
    let with_seeds =
        |stays: fn(&SeedRecord) -> bool| env.counterfactual.with_seeds(env.plan, &env.slots, network, stays);
    let committed = with_seeds(|seed| seed.stage == SeedStage::Fossilized);
    let kept = with_seeds(|seed| seed.bears_on_network() && !seed.is_fading());
    RewardInputs {
        step: clock.step(),
        max_steps,
        is_final,
        status: if is_final {
            horizon.last_step
        } else {
            EpisodeStatus::Running
        },
        op: env.outcome.effective_op,
        slot: env.outcome.slot,
        rejected: ordered.filter(|_| refused),
        accuracy: env.val.accuracy_percent,
        loss: env.val.loss,
        host_params: env.host.0,
        slots: slots.map(|(before, after)| SlotStep { before, after }).collect(),
        interactions: interactions(env),
        delta_cf: delta_cf(env),
        committed_accuracy: committed.map(|(accuracy, _)| accuracy),
        committed_loss: committed.map(|(_, loss)| loss),
        kept_accuracy: kept.map(|(accuracy, _)| accuracy),
        fossil_gain: fossil_gain(env),
        auto_pruned,
    }
}

/// Counts and clears the marks of seeds that something other than the controller removed. A rollback that was charged to
/// a decision has cleared those of the seeds that it pruned.
fn take_auto_pruned(slots: &mut SeedSlots) -> u32 {
    let records = slots.0.iter_mut().filter_map(|slot| slot.record.as_mut());
    records
        .filter_map(|record| record.take_auto_pruned().then_some(()))
        .count() as u32
}

fn delta_cf(env: &RewardedEnvItem) -> Option<f64> {
    match &env.counterfactual.attribution {
        Some(attribution) => attribution.delta_cf,
        None => env.plan.has_no_players().then_some(0.0),
    }
}

/// What the seeds add together that were committed when the step was measured, if they were players.
fn fossil_gain(env: &RewardedEnvItem) -> Option<f64> {
    let (plan, matrix) = (env.plan.plan.as_ref()?, env.counterfactual.matrix.as_ref()?);
    let with = (plan.fossilized != 0).then(|| matrix.accuracy(plan.fossilized))??;
    Some(with - matrix.accuracy(0)?)
}

fn interactions(env: &RewardedEnvItem) -> Vec<SlotInteraction> {
    let (Some(plan), Some(attribution)) = (&env.plan.plan, &env.counterfactual.attribution) else {
        return Vec::new();
    };
    let players = &plan.coalitions.players;
    let synergies = attribution.synergies.iter();
    synergies
        .map(|synergy| SlotInteraction {
            slots: (players[synergy.players.0], players[synergy.players.1]),
            points: synergy.points,
        })
        .collect()
}

#[cfg(test)]
mod tests;
