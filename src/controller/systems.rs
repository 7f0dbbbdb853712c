//! The controller's part of the schedule: signals and reports, masks, the decision, its execution (spec 06 §4.7-4.9).

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_platform::cell::SyncCell;
use smallvec::SmallVec;

use super::execute::execute_action;
use super::*;
use crate::clock::RunClock;
use crate::env::{Devices, EnvId, Experiment, SeedSlots, StepStatus, TrainMetrics, ValMetrics, participating};
use crate::growth::{FailureReason, GateResult, LifecycleOp};
use crate::health::{Failure, InEnv};
use crate::scenario::TrackerConfig;
use crate::schedule::{Act, AddWork, Assess, Decide, RoundEnd, RoundStart, Startup, Work};
use crate::seed::{BlueprintRegistry, SeedReport};
use crate::telemetry::{Event, HostStabilized, Num, TelemetryOutbox};
use crate::torch::HostSyncCounter;

/// The run's controller.
#[derive(Resource)]
pub struct ActiveController(pub SyncCell<Box<dyn Controller>>);

/// The memory behind an env's [`TrainingSignals`].
#[derive(Component)]
pub struct Tracker(pub SignalTracker);

/// What the env's numbers tell a controller.
#[derive(Component, Default)]
pub struct Signals(pub TrainingSignals);

/// The env's slots after the step's measurements, in policy order; `None` is an empty slot.
#[derive(Component, Default)]
pub struct SlotReports(pub SmallVec<[Option<SeedReport>; 4]>);

/// What may be chosen in this step; `None` before the first.
#[derive(Component, Default)]
pub struct Masks(pub Option<MaskSet>);

/// What was chosen in this step; `None` before the first.
#[derive(Component, Default)]
pub struct Chosen(pub Option<Decision>);

/// What became of the command (spec 06 §10.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CommandStatus {
    #[default]
    Executed,
    Rejected(FailureReason),
}

/// The step's command and its effect.
#[derive(Component, Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The ordered op if it took effect, else `Wait`.
    pub effective_op: LifecycleOp,
    pub slot: Option<usize>,
    pub status: CommandStatus,
    /// The gate that was tried and failed.
    pub gate: Option<GateResult>,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            effective_op: LifecycleOp::Wait,
            slot: None,
            status: CommandStatus::Executed,
            gate: None,
        }
    }
}

/// What the controller is told of its last command.
#[derive(Component, Default)]
pub struct Feedback(pub ActionFeedback);

/// Signals, masks, decisions and their execution.
pub struct ControllerPlugin;

impl Plugin for ControllerPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<ControllerRegistry>();
        app.init_resource::<NetRegistry>();
        app.init_resource::<ObservationFeatures>();
        app.register_required_components::<EnvId, Observation>();
        app.register_required_components::<EnvId, Signals>();
        app.register_required_components::<EnvId, SlotReports>();
        app.register_required_components::<EnvId, Masks>();
        app.register_required_components::<EnvId, Chosen>();
        app.register_required_components::<EnvId, Outcome>();
        app.register_required_components::<EnvId, Feedback>();
        app.register_required_components_with::<EnvId, Tracker>(|| {
            Tracker(SignalTracker::new(TrackerConfig::default()))
        });
        app.add_work(Startup, Work::BuildController, build_controller)
            .add_work(RoundStart, Work::BeginControllerEpisodes, begin_episodes)
            .add_work(Assess, Work::UpdateSignals, update_signals)
            .add_work(Assess, Work::ReportSlots, report_slots)
            .add_work_if(
                Decide,
                Work::BuildObservations,
                build_observations,
                resource_exists::<ObservationSchema>,
            )
            .add_work_if(
                Decide,
                Work::NormaliseObservations,
                normalise_observations,
                resource_exists::<ObservationSchema>,
            )
            .add_work(Decide, Work::BuildMasks, build_masks)
            .add_work(Decide, Work::Decide, decide)
            .add_work(Act, Work::ExecuteAction, execute_action)
            .add_work(Act, Work::UpdateTracking, update_tracking)
            .add_work(RoundEnd, Work::EndControllerEpisodes, end_controller_episodes);
    }
}

/// The blueprints that may grow in every slot of the experiment.
fn selectable(blueprints: &BlueprintRegistry, allow_parameterless: bool) -> Choices {
    blueprints
        .iter()
        .filter(|(_, blueprint)| allow_parameterless || blueprint.param_count(1) > 0)
        .map(|(index, _)| index)
        .collect()
}

fn build_controller(
    mut commands: Commands,
    experiment: Res<Experiment>,
    registry: Res<ControllerRegistry>,
    nets: Res<NetRegistry>,
    features: Res<ObservationFeatures>,
    devices: Res<Devices>,
    blueprints: Res<BlueprintRegistry>,
) -> Result<(), Failure> {
    let scenario = &experiment.scenario;
    let slots: Vec<_> = experiment.layout.slots().iter().map(|spec| spec.slot).collect();
    let names: Vec<&str> = blueprints.names().collect();
    let selectable = selectable(&blueprints, scenario.lifecycle.allow_parameterless_seeds);
    let allowed = AllowedActions::new(&scenario.policy.masks.action_space, &names)?;
    if (selectable & allowed.blueprints()).is_empty() {
        let why = "none of these can grow in this host";
        return Err(PolicyError::config("policy.masks.action_space.blueprint", why).into());
    }
    let context = BuildContext {
        policy: &scenario.policy,
        lifecycle: &scenario.lifecycle,
        learner: &scenario.learner,
        initial_topology: &scenario.initial_topology,
        slots: &slots,
        blueprints: &names,
        selectable,
        max_steps: experiment.task.max_steps,
        seed: scenario.run.seed,
        group: 0,
        rows: scenario.run.n_envs,
        envs: &experiment.envs,
        rounds: &experiment.rounds,
        device: devices.of_env(0),
        nets: &nets,
        features: &features,
        folder: experiment.folder.as_deref(),
    };
    let controller = registry.build(&context)?;
    // Its presence is what makes the envs' observations.
    if controller.needs().observation {
        commands.insert_resource(context.schema());
    }
    commands.insert_resource(allowed);
    commands.insert_resource(ActiveController(SyncCell::new(controller)));
    Ok(())
}

fn row(id: &EnvId, round: u32, experiment: &Experiment) -> EnvRow {
    EnvRow {
        env: id.index,
        index_in_group: id.index_in_group,
        episode: experiment.episode(round, id.index),
    }
}

/// All envs as rows, in index order.
fn rows(envs: impl Iterator<Item = EnvId>, round: u32, experiment: &Experiment) -> Vec<EnvRow> {
    let mut rows: Vec<_> = envs.map(|id| row(&id, round, experiment)).collect();
    rows.sort_unstable_by_key(|row| row.env);
    rows
}

fn begin_episodes(
    mut controller: ResMut<ActiveController>,
    mut envs: Query<(&EnvId, &mut Tracker, &mut Feedback, &mut Outcome)>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) {
    for (_, mut tracker, mut feedback, mut outcome) in &mut envs {
        tracker.0 = SignalTracker::new(experiment.scenario.policy.tracker);
        feedback.0 = ActionFeedback::default();
        *outcome = Outcome::default();
    }
    controller
        .0
        .get()
        .begin_episode(&rows(envs.iter().map(|(id, ..)| *id), clock.round(), &experiment));
}

fn end_controller_episodes(
    mut controller: ResMut<ActiveController>,
    envs: Query<&EnvId>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) {
    controller
        .0
        .get()
        .end_episode(&rows(envs.iter().copied(), clock.round(), &experiment));
}

fn update_signals(
    mut envs: Query<(
        &EnvId,
        &StepStatus,
        &TrainMetrics,
        &ValMetrics,
        &mut Tracker,
        &mut Signals,
    )>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    mut outbox: ResMut<TelemetryOutbox>,
    mut is_warned: Local<bool>,
) -> Result<(), Failure> {
    for (id, status, train, val, mut tracker, mut signals) in &mut envs {
        if !status.participates() {
            continue;
        }
        let metrics = StepMetrics {
            step: clock.step(),
            train_loss: train.loss,
            train_accuracy: train.accuracy_percent,
            val_loss: val.loss,
            val_accuracy: val.accuracy_percent,
        };
        signals.0 = tracker.0.update(metrics).in_env(id.index)?;
        if signals.0.looks_like_fraction && !std::mem::replace(&mut *is_warned, true) {
            tracing::warn!(
                "the validation accuracy of env {} at step {} is {}: it looks like a fraction, percent is expected",
                id.index,
                clock.step(),
                val.accuracy_percent
            );
        }
        if signals.0.just_stabilized {
            outbox.push(Event::env(
                experiment.context(id, &clock),
                HostStabilized {
                    stable_count: signals.0.stable_count,
                    required: experiment.scenario.policy.tracker.stabilization_epochs,
                    val_loss: Num(val.loss),
                },
            ));
        }
    }
    Ok(())
}

fn report_slots(mut envs: Query<((&SeedSlots, &mut SlotReports), &StepStatus)>, blueprints: Res<BlueprintRegistry>) {
    for (slots, mut reports) in participating(envs.iter_mut()) {
        reports.0 = slots.reports(&blueprints);
    }
}

fn build_masks(
    mut envs: Query<((&EnvId, &SlotReports, &mut Masks), &StepStatus)>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    blueprints: Res<BlueprintRegistry>,
    allowed: Res<AllowedActions>,
) -> Result<(), Failure> {
    let choices = selectable(&blueprints, experiment.scenario.lifecycle.allow_parameterless_seeds);
    let per_slot = vec![choices; experiment.layout.len()];
    let limits = experiment.limits();
    for (id, reports, mut masks) in participating(envs.iter_mut()) {
        let point = DecisionPoint {
            env: id.index,
            episode: experiment.episode(clock.round(), id.index),
            step: clock.step(),
        };
        let mut set = MaskSet::build(point, &reports.0, &per_slot, &limits).in_env(id.index)?;
        allowed.restrict(&mut set);
        masks.0 = Some(set);
    }
    Ok(())
}

/// What `decide` reads and writes of an env.
#[derive(QueryData)]
#[query_data(mutable)]
struct DecidingEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    reports: &'static SlotReports,
    signals: &'static Signals,
    observation: &'static Observation,
    masks: &'static mut Masks,
    chosen: &'static mut Chosen,
}

/// One call for all participating envs, in index order; the controller may narrow the masks first (spec 06 D3-D6).
fn decide(
    mut controller: ResMut<ActiveController>,
    mut envs: Query<DecidingEnv>,
    reads: Res<HostSyncCounter>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) -> Result<(), Failure> {
    let controller = controller.0.get();
    let needs = controller.needs();
    let mut envs: Vec<_> = envs.iter_mut().collect();
    for env in &mut envs {
        if !env.status.participates() {
            (env.masks.0, env.chosen.0) = (None, None);
        }
    }
    envs.retain(|env| env.status.participates());
    if envs.is_empty() {
        return Ok(());
    }
    envs.sort_unstable_by_key(|env| env.id.index);
    let mut masks: Vec<_> = envs.iter_mut().filter_map(|env| env.masks.0.take()).collect();
    let views: Vec<_> = envs
        .iter()
        .map(|env| EnvView {
            row: row(env.id, clock.round(), &experiment),
            reports: &env.reports.0,
            signals: &env.signals.0,
            observation: needs.observation.then_some(env.observation),
        })
        .collect();
    let view = DecisionView {
        round: clock.round(),
        step: clock.step(),
        envs: &views,
        reads: &reads,
    };
    controller.restrict(&view, &mut masks)?;
    for (env, masks) in views.iter().zip(&masks) {
        let point = view.point(env.row);
        masks.check(point, env.reports).in_env(env.row.env)?;
    }
    let decisions = controller.decide(&view, &masks)?;
    if decisions.len() != views.len() {
        return Err(Failure::message(format!(
            "controller `{}` returned {} decisions for {} envs",
            controller.name(),
            decisions.len(),
            views.len()
        )));
    }
    for ((env, masks), decision) in envs.iter_mut().zip(masks).zip(decisions) {
        (env.masks.0, env.chosen.0) = (Some(masks), Some(decision));
    }
    Ok(())
}

/// Closes the step for the next observation (spec 06 X6).
fn update_tracking(
    mut envs: Query<(
        &StepStatus,
        &Chosen,
        &Outcome,
        &SlotReports,
        &mut Feedback,
        &mut SeedSlots,
    )>,
) {
    for (status, chosen, outcome, reports, mut feedback, mut slots) in &mut envs {
        if *status == StepStatus::RolledBack {
            feedback.0 = ActionFeedback {
                last_op: LifecycleOp::Wait,
                last_ok: false,
            };
        }
        if !status.participates() {
            continue;
        }
        if let Some(decision) = &chosen.0 {
            feedback.0 = ActionFeedback {
                last_op: decision.command.op(),
                last_ok: outcome.status == CommandStatus::Executed,
            };
        }
        for (slot, report) in slots.0.iter_mut().zip(&reports.0) {
            let was_occupied = report.as_ref().is_some_and(|report| report.stage.is_occupied());
            if let (true, Some(record)) = (was_occupied, &mut slot.record) {
                record.age_measurements();
            }
        }
    }
}
