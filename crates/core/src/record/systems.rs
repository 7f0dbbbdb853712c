//! The events of a run: systems that turn the envs' plain numbers into events and hand them to the hub.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;

use super::announce::announce;
use super::memory::{MemoryInUse, keep_memory};
use super::{Build, RunDirectory};
use crate::clock::RunClock;
use crate::controller::{DecidedEnv, SlotReports};
use crate::env::{
    EnvId, EpisodeEnding, EpisodeStats, Experiment, GradReport, KeepInRounds, LoadedData, StepStatus, TrainMetrics,
    ValMetrics, round_is_complete,
};
use crate::files::counted;
use crate::governor::Governor;
use crate::growth::Topology;
use crate::health::Failure;
use crate::learner::{LastUpdate, PolicyLearner, ValueUnits, is_between_rollouts};
use crate::reward::{EpisodeReward, RewardHorizon, StepReward, episode_rewards, round_rewards};
use crate::run::{CommandInbox, take_command};
use crate::scenario::GateConfig;
use crate::schedule::{AddWork, Paused, RoundEnd, RoundStart, Shutdown, Startup, StepEnd, Work};
use crate::seed::BlueprintRegistry;
use crate::telemetry::statistics::{MIN_RISE, Plateau};
use crate::telemetry::{
    self as events, EndReason, EnvContext, EpisodeFinished, Event, Fallbacks, GovernorCounts, GrowthCounts, LossScales,
    Note, Num, PerfRound, Phase, PhaseClock, RecordFails, RoundFinished, RoundTime, SeedRow, TelemetryHub,
    TelemetryOutbox, statistics,
};
use crate::telemetry::{MeasuredRound, measure_round};
use crate::torch::{self, device_of};
use crate::unfinished::UnfinishedRound;
use crate::validation::{MeasuredNetwork, TestResult};

/// The name in a checkpoint inside a round.
const TAKEN: &str = "taken";

/// Saves the record's state for a checkpoint inside the round.
pub(crate) fn save_record(mut phases: ResMut<PhaseClock>, mut round: ResMut<UnfinishedRound>) -> Result<(), Failure> {
    Ok(round.put(TAKEN, phases.read())?)
}

/// Restores what [`save_record`] has kept.
pub(crate) fn restore_record(mut phases: ResMut<PhaseClock>, round: Res<UnfinishedRound>) -> Result<(), Failure> {
    phases.begin(round.get(TAKEN)?);
    Ok(())
}

/// Mean final accuracy of each round so far, percent.
#[derive(Resource, Default)]
pub struct RoundHistory(pub Vec<f64>);

/// Records a run in its own directory.
pub struct RecordPlugin;

impl Plugin for RecordPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Build>()
            .init_resource::<RoundHistory>()
            .init_resource::<MeasuredRound>()
            .add_work(Startup, Work::Announce, announce)
            .add_work_if(Startup, Work::StopEarly, stop_early, resource_exists::<TelemetryHub>)
            .add_work_if(RoundEnd, Work::StopEarly, stop_early, round_is_complete)
            .add_work(RoundStart, Work::BeginRound, begin_record)
            .add_work(StepEnd, Work::EmitStep, emit_step)
            .add_work_if(
                StepEnd,
                Work::TakeCommand,
                take_command,
                resource_exists::<CommandInbox>,
            )
            .add_work_if(Paused, Work::TakeCommand, take_command, resource_exists::<CommandInbox>)
            .add_work(RoundEnd, Work::RecordEpisodes, record_episodes)
            .add_work_if(RoundEnd, Work::RoundStats, round_stats, round_is_complete)
            .add_work(RoundEnd, Work::StopIfRecordFails, stop_if_record_fails)
            .add_unordered_work(RoundEnd, Work::MeasureRound, measure_round, round_is_complete)
            .add_work_if(Shutdown, Work::KeepMemory, keep_memory, resource_exists::<RunDirectory>)
            .keep_in_rounds_by(save_record, restore_record);
    }
}

pub(crate) fn begin_record(mut phases: ResMut<PhaseClock>) {
    phases.begin(RoundTime::default());
}

/// Resources that every record of an env needs.
#[derive(SystemParam)]
pub struct RecordContext<'w> {
    clock: Res<'w, RunClock>,
    experiment: Res<'w, Experiment>,
    data: Res<'w, LoadedData>,
    blueprints: Res<'w, BlueprintRegistry>,
    outbox: ResMut<'w, TelemetryOutbox>,
    hub: ResMut<'w, TelemetryHub>,
    horizon: Option<Res<'w, RewardHorizon>>,
}

impl RecordContext<'_> {
    fn context(&self, id: &EnvId) -> EnvContext {
        self.experiment.context(id, &self.clock)
    }

    fn flush(&mut self) {
        self.hub.flush(&mut self.outbox);
    }
}

/// The plain data of an env that its records are made of.
#[derive(QueryData)]
pub struct RecordedEnv {
    id: &'static EnvId,
    step_status: &'static StepStatus,
    train: &'static TrainMetrics,
    val: &'static ValMetrics,
    gradients: &'static GradReport,
    stats: &'static EpisodeStats,
    network: MeasuredNetwork,
    reports: &'static SlotReports,
    decided: DecidedEnv,
    test: &'static TestResult,
    reward: Option<&'static StepReward>,
    episode_reward: Option<&'static EpisodeReward>,
}

/// Units of the values that a policy without a learner estimates.
const AS_REWARDED: ValueUnits = ValueUnits {
    mean: 0.0,
    deviation: 1.0,
};

pub(crate) fn emit_step(
    envs: Query<RecordedEnv>,
    mut learner: Option<ResMut<PolicyLearner>>,
    mut record: RecordContext,
) {
    let gates = &record.experiment.scenario.lifecycle.gates;
    let units = learner
        .as_mut()
        .map_or(AS_REWARDED, |policy| policy.learner.get().value_units());
    for env in &envs {
        if !env.step_status.is_active() {
            continue;
        }
        let context = record.context(env.id);
        let row = env_step(&env, context.step, (&record.blueprints, gates));
        record.outbox.push(Event::env(context, row));
        let paid = env.reward.and_then(|reward| Some(reward.0.as_ref()?.into()));
        let layout = &record.experiment.layout;
        let decision = env
            .decided
            .event(context, layout, &record.blueprints, |value| units.raw(value), paid);
        record.outbox.extend(decision);
        let network = &env.network;
        let measured = network.counterfactual.events(network.plan, record.clock.is_last_step());
        record
            .outbox
            .extend(measured.map(|payload| Event::env(context, payload)));
    }
    record.flush();
}

fn env_step(
    env: &RecordedEnvItem,
    step: u32,
    (blueprints, gates): (&BlueprintRegistry, &GateConfig),
) -> events::EnvStep {
    let growth = env.network.growth();
    let seeds = match env.step_status {
        // The step's reports were skipped with everything else.
        StepStatus::RolledBack => &env.network.slots.reports(blueprints, gates),
        _ => &env.reports.0,
    };
    events::EnvStep {
        train_loss: Num::short(env.train.loss),
        train_accuracy: Num::short(env.train.accuracy_percent),
        val_loss: Num::short(env.val.loss),
        val_accuracy: Num::short(env.val.accuracy_percent),
        host_grad_norm: env.gradients.host.norm().map(Num::short),
        nonfinite_batches: env.train.nonfinite_batches,
        skipped_updates: env.train.skipped_updates,
        loss_scale: env.train.loss_scale.map(Num),
        params_total: growth.total_params(),
        params_committed: growth.committed_params,
        steps_since_best: step - env.stats.best_step,
        seeds: seeds.iter().flatten().map(SeedRow::from).collect(),
    }
}

/// An env without a finished step has shown nothing.
const UNMEASURED: ValMetrics = ValMetrics {
    loss: f64::NAN,
    accuracy_percent: f64::NAN,
};

pub(crate) fn record_episodes(envs: Query<RecordedEnv>, mut phases: ResMut<PhaseClock>, mut record: RecordContext) {
    phases.enter(Phase::Record);
    let success = record.experiment.task.success_accuracy;
    for env in &envs {
        let growth = env.network.growth();
        let shown = env.stats.last_val.unwrap_or(UNMEASURED);
        let final_accuracy = shown.accuracy_percent;
        let end = env.stats.end.unwrap_or(EpisodeEnding {
            reason: EndReason::Stopped,
            step: record.clock.step(),
        });
        let payload = EpisodeFinished {
            final_accuracy: Num(final_accuracy),
            committed_accuracy: env
                .network
                .committed_accuracy(final_accuracy)
                .filter(|accuracy| accuracy.is_finite())
                .map(Num),
            final_loss: Num(shown.loss),
            best_accuracy: Num(env.stats.best_accuracy_percent),
            best_step: env.stats.best_step,
            test_accuracy: env.test.0.map(|(accuracy, _)| Num(accuracy)),
            test_loss: env.test.0.map(|(_, loss)| Num(loss)),
            length: end.steps_played(),
            end: end.reason,
            error: env.stats.error.clone(),
            outcome: if final_accuracy >= success {
                events::Outcome::Success
            } else {
                events::Outcome::Timeout
            },
            paid: record
                .horizon
                .as_ref()
                .zip(env.episode_reward)
                .map(|(horizon, episode)| episode_rewards(episode, horizon.gamma)),
            compute: env.stats.compute,
            param_ratio: Num(growth.parameter_ratio()),
            committed_ratio: Num(growth.growth_ratio()),
            contributing: env.stats.contributing,
            rollbacks: env.stats.rollbacks,
            growth: env.stats.growth,
        };
        let context = record.context(env.id);
        record.outbox.push(Event::env(context, payload));
    }
    record.flush();
}

/// An env's part of the record of a round.
#[derive(QueryData)]
pub struct RoundOfEnv {
    id: &'static EnvId,
    stats: &'static EpisodeStats,
    train: &'static TrainMetrics,
    watchdog: Option<&'static Governor>,
    reward: Option<&'static EpisodeReward>,
}

pub(crate) fn round_stats(
    envs: Query<RoundOfEnv>,
    mut history: ResMut<RoundHistory>,
    mut phases: ResMut<PhaseClock>,
    update: Option<Res<LastUpdate>>,
    measured: Res<MeasuredRound>,
    mut record: RecordContext,
) {
    let round = record.clock.round();
    let mut fallbacks = Fallbacks::default();
    if let Some(update) = update.as_ref().and_then(|update| update.0.as_ref()) {
        fallbacks.kernel = update.kernel_fallbacks;
        record.outbox.push(Event::round(round, update.clone()));
    }
    let mut envs: Vec<_> = envs.iter().collect();
    envs.sort_unstable_by_key(|env| env.id.index);
    let accuracies: Vec<f64> = envs
        .iter()
        .map(|env| env.stats.last_val.unwrap_or(UNMEASURED).accuracy_percent)
        .collect();
    let has_failed = |stats: &EpisodeStats| stats.end.is_some_and(|end| end.reason == EndReason::Failed);
    let whole = envs.iter().zip(&accuracies).filter(|(env, _)| !has_failed(env.stats));
    let whole: Vec<f64> = whole.map(|(_, &accuracy)| accuracy).collect();
    // A round in which every env has failed is not complete.
    let (mean, std) = statistics::mean_and_std(&whole).unwrap_or((f64::NAN, f64::NAN));
    history.0.push(mean);
    let mut growth = GrowthCounts::default();
    let mut governor = GovernorCounts::default();
    let mut env_steps = 0;
    let rewards: Vec<_> = envs.iter().filter_map(|env| env.reward).collect();
    for env in &envs {
        growth += env.stats.growth;
        fallbacks += env.stats.fallbacks;
        governor += env.watchdog.map(|watchdog| watchdog.counts).unwrap_or_default();
        env_steps += u64::from(env.stats.end.map_or(record.clock.step(), |end| end.steps_played()));
    }
    let is_text = record.experiment.task.data.topology() == Topology::Tokens;
    let last_losses = envs.iter().filter(|env| !has_failed(env.stats));
    let last_losses: Vec<f64> = last_losses
        .map(|env| env.stats.last_val.unwrap_or(UNMEASURED).loss)
        .collect();
    let perplexity = statistics::mean_and_std(&last_losses).map(|(loss, _)| Num(loss.exp()));
    let perf = round_perf(env_steps, phases.read(), &record);
    let payload = RoundFinished {
        accuracy_mean: Num(mean),
        accuracy_std: Num(std),
        accuracy_best: Num(envs
            .iter()
            .map(|env| env.stats.best_accuracy_percent)
            .fold(0.0, f64::max)),
        episodes_failed: (accuracies.len() - whole.len()) as u32,
        accuracy_env: accuracies.into_iter().map(Num).collect(),
        rolling_accuracy: statistics::rolling_mean(&history.0).map(Num),
        perplexity: perplexity.filter(|_| is_text),
        paid: round_rewards(&rewards),
        growth,
        governor,
        amp: loss_scales(&envs),
        fallbacks: fallbacks.any(),
        metrics: measured.0.clone(),
        perf,
    };
    record.outbox.push(Event::round(round, payload));
    record.flush();
}

/// The speed of a round of `env_steps` steps of all envs, and the memory in use; the peaks of the next round begin.
fn round_perf(env_steps: u64, taken: &RoundTime, record: &RecordContext) -> PerfRound {
    let wall_s = taken.time.as_secs_f64();
    let samples = env_steps * record.data.feed.train_samples() as u64;
    let scenario = &record.experiment.scenario;
    let memory = MemoryInUse::now(scenario);
    let devices = scenario.devices().into_iter().map(device_of);
    devices.for_each(torch::reset_peak_memory);
    PerfRound {
        round_wall_s: Num(wall_s),
        env_steps_per_s: Num(env_steps as f64 / wall_s),
        samples_per_s: Num(samples as f64 / wall_s),
        samples,
        phases_ms: taken.phases(),
        copy_ms: taken.copy_ms(),
        memory_bytes: memory.memory_bytes,
        memory_limit_bytes: memory.memory_limit_bytes,
        device_memory_bytes: memory.device_memory_bytes,
    }
}

/// `None` where no env scales its loss.
fn loss_scales(envs: &[RoundOfEnvItem]) -> Option<LossScales> {
    let scalers = envs
        .iter()
        .map(|env| Some((env.stats.skipped_updates, Num(env.train.loss_scale?))));
    let (skipped, scale) = scalers.collect::<Option<_>>()?;
    Some(LossScales { skipped, scale })
}

/// Plays no further round once the rolling accuracy has stopped rising; neither does a run that is resumed after that
/// point. A rollout that was begun is completed: only then has the policy learnt from it.
pub(crate) fn stop_early(
    history: Res<RoundHistory>,
    experiment: Res<Experiment>,
    learner: Option<Res<PolicyLearner>>,
    mut clock: ResMut<RunClock>,
    mut outbox: ResMut<TelemetryOutbox>,
    mut hub: ResMut<TelemetryHub>,
) {
    let Some(patience) = experiment.scenario.run.run_early_stop else {
        return;
    };
    let mut plateau = Plateau::default();
    let rolling = (1..=history.0.len()).filter_map(|rounds| statistics::rolling_mean(&history.0[..rounds]));
    rolling.for_each(|accuracy| plateau.note(accuracy));
    let rounds = history.0.len() as u32;
    let is_learnt_from = is_between_rollouts(learner.as_deref(), &experiment, &clock);
    let is_over = rounds >= experiment.rounds.end;
    if plateau.length() < patience || !is_learnt_from || is_over {
        return;
    }
    clock.end_run();
    let text = format!(
        "the run ends after {}: its rolling accuracy has not risen by more than {MIN_RISE} points for {} \
         (run.run_early_stop)",
        counted(rounds, "round"),
        counted(plateau.length(), "round")
    );
    outbox.push(Event::run(Note::of_engine(text)));
    hub.flush(&mut outbox);
}

/// Ends a run once its record fails: `Shutdown` writes its last boundary.
pub(crate) fn stop_if_record_fails(mut hub: ResMut<TelemetryHub>) -> Result<(), RecordFails> {
    hub.failing().map_or(Ok(()), |gap| Err(RecordFails(gap)))
}
