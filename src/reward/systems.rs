//! The reward's part of the schedule: what a decision faced, what became of it, what it is paid (spec 06 X1, X4).

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use smallvec::SmallVec;

use super::*;
use crate::clock::RunClock;
use crate::controller::{Chosen, CommandStatus, Outcome};
use crate::env::{EnvId, Experiment, HostParams, SeedSlots, ValMetrics};
use crate::governor::RollbackVerdict;
use crate::health::{Failure, InEnv};
use crate::scenario::{EpisodeEnd, LearnerConfig};
use crate::schedule::{Act, AddWork, Assess, RoundStart, Work};
use crate::validation::{Counterfactual, ValPlan};

/// The discount of a scenario that has no learner.
pub const DEFAULT_GAMMA: f64 = 0.995;

/// What rewards take over from the learner.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct RewardHorizon {
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
pub struct BeforeAction(pub Option<SmallVec<[Option<SeedView>; 4]>>);

/// The step's raw reward; `None` if the env took no decision.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
pub struct StepReward(pub Option<RewardBreakdown>);

/// Pays every decision.
pub struct RewardPlugin;

impl Plugin for RewardPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<RewardHorizon>();
        app.register_required_components::<EnvId, BeforeAction>();
        app.register_required_components::<EnvId, RewardState>();
        app.register_required_components::<EnvId, StepReward>();
        app.register_required_components::<EnvId, EpisodeReward>();
        app.add_work(RoundStart, Work::ResetRewards, reset_rewards)
            .add_work(Assess, Work::ForgetPrunedSeeds, forget_pruned_seeds)
            .add_work(Act, Work::CaptureRewardInputs, capture_reward_inputs)
            .add_work(Act, Work::ComputeReward, compute_reward);
    }
}

fn reset_rewards(mut envs: Query<(&mut BeforeAction, &mut RewardState, &mut StepReward, &mut EpisodeReward)>) {
    for (mut before, mut state, mut reward, mut episode) in &mut envs {
        *before = BeforeAction::default();
        *state = RewardState::default();
        *reward = StepReward::default();
        *episode = EpisodeReward::default();
    }
}

/// A rollback has pruned seeds behind the back of the reward, in a step that pays nothing.
fn forget_pruned_seeds(mut envs: Query<(&RollbackVerdict, &mut RewardState)>) {
    for (verdict, mut state) in &mut envs {
        if let Some(rollback) = &verdict.0 {
            state.close(rollback.pruned.iter().copied());
        }
    }
}

/// Looks at every env that has decided.
fn capture_reward_inputs(mut envs: Query<(&Chosen, &SeedSlots, &mut BeforeAction, &mut StepReward)>) {
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
struct RewardedEnv {
    id: &'static EnvId,
    host: &'static HostParams,
    val: &'static ValMetrics,
    plan: &'static ValPlan,
    counterfactual: &'static Counterfactual,
    chosen: &'static Chosen,
    outcome: &'static Outcome,
    slots: &'static mut SeedSlots,
    before: &'static mut BeforeAction,
    state: &'static mut RewardState,
    reward: &'static mut StepReward,
    episode: &'static mut EpisodeReward,
}

/// Pays every env whose seeds were looked at before the action, by what they are after the tick.
fn compute_reward(
    mut envs: Query<RewardedEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    horizon: Res<RewardHorizon>,
) -> Result<(), Failure> {
    let function = RewardFunction::resolve(&experiment.scenario.reward, horizon.gamma);
    let mut envs: Vec<_> = envs.iter_mut().collect();
    envs.sort_unstable_by_key(|env| env.id.index);
    for env in &mut envs {
        let Some(before) = env.before.0.take() else { continue };
        let inputs = reward_inputs(env, before, &clock, *horizon);
        let breakdown = function.compute(&inputs, &mut env.state).in_env(env.id.index)?;
        env.reward.0 = Some(breakdown);
        env.episode.steps.push(RewardedStep {
            step: inputs.step,
            accuracy: inputs.accuracy,
            breakdown,
        });
    }
    Ok(())
}

fn reward_inputs(
    env: &mut RewardedEnvItem,
    before: SmallVec<[Option<SeedView>; 4]>,
    clock: &RunClock,
    horizon: RewardHorizon,
) -> RewardInputs {
    let auto_pruned = take_auto_pruned(&mut env.slots);
    let after = env.slots.records().map(|record| record.map(SeedView::after_tick));
    let slots = before.into_iter().zip(after);
    let is_final = clock.is_last_step();
    let refused = matches!(env.outcome.status, CommandStatus::Rejected(_));
    let ordered = env.chosen.0.as_ref().map(|decision| decision.command.op());
    RewardInputs {
        step: clock.step(),
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
        committed_accuracy: env
            .counterfactual
            .committed_accuracy(env.plan, &env.slots, env.val.accuracy_percent),
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
mod tests {
    use super::*;
    use crate::governor::{Alarm, Credit, Rollback};
    use crate::growth::SeedStage;
    use crate::reward::fixtures::{Step, seed};
    use crate::scenario::RewardConfig;
    use crate::schedule::SchedulePlugin;
    use crate::telemetry::AlarmKind;

    /// Spec 05 C21: an env starts every episode like a fresh one.
    #[test]
    fn a_round_starts_with_empty_accounts() {
        let mut app = App::new();
        app.add_plugins((SchedulePlugin, RewardPlugin));
        let mut state = RewardState::default();
        let inputs = Step::new(3).slot(seed(SeedStage::Training, 2), seed(SeedStage::Training, 3));
        let config = RewardConfig::default();
        let breakdown = RewardFunction::resolve(&config, DEFAULT_GAMMA)
            .compute(&inputs.build(), &mut state)
            .unwrap();
        assert_ne!(state, RewardState::default());
        let env = EnvId {
            index: 0,
            group: 0,
            index_in_group: 0,
        };
        let used = (env, state, StepReward(Some(breakdown)));
        let entity = app.world_mut().spawn(used).id();

        app.world_mut().run_schedule(RoundStart);

        let env = app.world().entity(entity);
        assert_eq!(env.get::<RewardState>(), Some(&RewardState::default()));
        assert_eq!(env.get::<StepReward>(), Some(&StepReward::default()));
    }

    /// Spec 02 §8.6.6: a new seed in the slot inherits nothing.
    #[test]
    fn a_rollback_closes_the_accounts_of_the_seeds_that_it_prunes_and_of_no_others() {
        let mut app = App::new();
        app.add_plugins((SchedulePlugin, RewardPlugin));
        let mut state = RewardState::default();
        let inputs = Step::new(3)
            .slot(seed(SeedStage::Training, 2), seed(SeedStage::Training, 3))
            .slot(seed(SeedStage::Training, 2), seed(SeedStage::Training, 3));
        RewardFunction::resolve(&RewardConfig::default(), DEFAULT_GAMMA)
            .compute(&inputs.build(), &mut state)
            .unwrap();
        let alarm = Alarm {
            kind: AlarmKind::NonFinite,
            loss: f64::NAN,
            threshold: None,
            healthy: None,
            consecutive: 0,
        };
        let rollback = Rollback {
            alarm,
            raw_penalty: -10.0,
            snapshot_step: 2,
            steps_lost: 2,
            pruned: smallvec::smallvec![1],
            last_action_step: Some(3),
            ends_episode: false,
            credit: Credit::Unattributed,
        };
        let env = EnvId {
            index: 0,
            group: 0,
            index_in_group: 0,
        };
        let entity = app
            .world_mut()
            .spawn((env, state, RollbackVerdict(Some(rollback))))
            .id();

        app.world_mut().run_schedule(Assess);

        let state = app.world().get::<RewardState>(entity).unwrap();
        assert!(state.slots[0].is_some());
        assert_eq!(state.slots[1], None);
    }
}
