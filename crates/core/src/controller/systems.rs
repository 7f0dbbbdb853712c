//! The controller's part of the schedule. It builds the controller, begins and ends episodes, makes slot reports, observations
//! and masks, lets the controller decide, and turns its command into a changed slot or a reason for refusal.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::actions::{ActionFeedback, AllowedActions, Choices, Decision, MaskSet, PolicyError};
use crate::clock::RunClock;
use crate::controller::deciders::{BuildContext, Controller, ControllerRegistry, ExternalCommands};
use crate::controller::view::{
    DecisionView, EnvRow, EnvView, Observation, ObservationFeatures, ObservationInput, ObservationSchema,
    SignalTracker, Signals, Tracker,
};
use crate::env::{
    EnvId, Experiment, GrowingEnv, GrowingEnvItem, GrowthContext, SeedSlots, StepStatus, ValMetrics, participating,
};
use crate::governor::Governor;
use crate::growth::{FailureReason, LifecycleCommand, LifecycleOp};
use crate::health::{Failure, InEnv};
use crate::policy::NetRegistry;
use crate::seed::{BlueprintRegistry, SeedReport, SlotView, command_legal};
use crate::torch::{HostSyncCounter, device_of};
use crate::unfinished::UnfinishedRound;

/// The run's controller.
#[derive(Resource)]
pub struct ActiveController(pub SyncCell<Box<dyn Controller>>);

/// The env's slots after the step's measurements, in policy order. `None` is an empty slot.
#[derive(Component, Default)]
pub struct SlotReports(pub SmallVec<[Option<SeedReport>; 4]>);

/// The last command and its success, for the next observation.
#[derive(Component, Default, Serialize, Deserialize)]
pub struct Feedback(pub ActionFeedback);

/// The legal choices of this step, or `None` before the first.
#[derive(Component, Default)]
pub struct Masks(pub Option<MaskSet>);

/// The decision of this step, or `None` before the first.
#[derive(Component, Default)]
pub struct Chosen(pub Option<Decision>);

/// The step's command and its effect.
#[derive(Component, Clone, Debug, PartialEq)]
pub struct CommandOutcome {
    /// The ordered op if it took effect, else `Wait`.
    pub effective_op: LifecycleOp,
    /// Index of the command's slot, or `None` for a wait.
    pub slot: Option<usize>,
    /// The reason why the command changed nothing. `None` if it took effect, or was a wait.
    pub refusal: Option<FailureReason>,
}

impl Default for CommandOutcome {
    fn default() -> Self {
        Self {
            effective_op: LifecycleOp::Wait,
            slot: None,
            refusal: None,
        }
    }
}

/// The blueprints that may grow in every slot of the experiment.
pub fn selectable(blueprints: &BlueprintRegistry) -> Choices {
    blueprints
        .iter()
        .filter(|(_, blueprint)| blueprint.param_count(1) > 0)
        .map(|(index, _)| index)
        .collect()
}

/// The registries and resources that plugins offer to a controller.
#[derive(SystemParam)]
pub struct Offered<'w> {
    controllers: Res<'w, ControllerRegistry>,
    nets: Res<'w, NetRegistry>,
    features: Res<'w, ObservationFeatures>,
    blueprints: Res<'w, BlueprintRegistry>,
    external: Option<Res<'w, ExternalCommands>>,
    is_observed: Option<Res<'w, ObserveAll>>,
}

/// Present if something other than the controller reads observations.
#[derive(Resource, Debug, Default)]
pub struct ObserveAll;

pub fn build_controller(mut commands: Commands, experiment: Res<Experiment>, offered: Offered) -> Result<(), Failure> {
    let scenario = &experiment.scenario;
    let slots: Vec<_> = experiment.layout.slots().iter().map(|spec| spec.slot).collect();
    let names: Vec<&str> = offered.blueprints.names().collect();
    let selectable = selectable(&offered.blueprints);
    let allowed = AllowedActions::new(&scenario.policy.masks.action_space, &names);
    if (selectable & allowed.blueprints()).is_empty() {
        let why = "none of these can grow in this host";
        return Err(PolicyError::config("policy.masks.action_space.blueprint", why).into());
    }
    let context = BuildContext {
        scenario,
        slots: &slots,
        blueprints: &names,
        selectable,
        max_steps: experiment.task.max_steps,
        envs: &experiment.envs,
        rounds: &experiment.rounds,
        device: device_of(scenario.policy_device()),
        nets: &offered.nets,
        features: &offered.features,
        external: offered.external.as_deref(),
        folder: experiment.folder.as_deref(),
    };
    let controller = offered.controllers.build(&context)?;
    // Its presence is what makes the envs' observations.
    if controller.needs_observation() || offered.is_observed.is_some() {
        commands.insert_resource(context.schema());
    }
    commands.insert_resource(allowed);
    commands.insert_resource(ActiveController(SyncCell::new(controller)));
    Ok(())
}

pub fn begin_episodes(
    mut controller: ResMut<ActiveController>,
    mut envs: Query<(&EnvId, &mut Tracker, &mut Feedback, &mut CommandOutcome)>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) {
    for (_, mut tracker, mut feedback, mut outcome) in &mut envs {
        tracker.0 = SignalTracker::default();
        feedback.0 = ActionFeedback::default();
        *outcome = CommandOutcome::default();
    }
    let rows = envs.iter().map(|(id, ..)| EnvRow::of(id, &experiment, &clock));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by_key(|row| row.env);
    controller.0.get().begin_episode(&rows);
}

/// For a checkpoint inside the round.
pub fn save_episodes(
    mut controller: ResMut<ActiveController>,
    mut round: ResMut<UnfinishedRound>,
) -> Result<(), Failure> {
    controller.0.get().save_episodes(&mut round)
}

/// Restores the state that [`save_episodes`] saved.
pub fn restore_episodes(mut controller: ResMut<ActiveController>, round: Res<UnfinishedRound>) -> Result<(), Failure> {
    controller.0.get().restore_episodes(&round)
}

pub fn report_slots(
    mut envs: Query<((&SeedSlots, &mut SlotReports), &StepStatus)>,
    blueprints: Res<BlueprintRegistry>,
    experiment: Res<Experiment>,
) {
    for (slots, mut reports) in participating(envs.iter_mut()) {
        reports.0 = slots.reports(&blueprints, &experiment.scenario.lifecycle.gates);
    }
}

/// Encodes the measurements into the raw row of every env that decides.
pub fn build_observations(
    mut envs: Query<(&EnvId, &StepStatus, &Signals, &Feedback, &SlotReports, &mut Observation)>,
    schema: Res<ObservationSchema>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) -> Result<(), Failure> {
    for (id, status, signals, feedback, reports, mut observation) in &mut envs {
        if !status.participates() {
            continue;
        }
        let input = ObservationInput {
            at: EnvRow::of(id, &experiment, &clock).at(clock.step()),
            signals: &signals.0,
            feedback: feedback.0,
            reports: &reports.0,
        };
        schema.observe(&input, &mut observation).in_env(id.index)?;
    }
    Ok(())
}

/// Normalises every env's row by the learned controller's statistics. With any other controller it stays raw.
pub fn normalise_observations(mut envs: Query<&mut Observation>, mut controller: ResMut<ActiveController>) {
    let learned = controller.0.get().learned();
    for mut observation in &mut envs {
        let Observation { raw, normalised, .. } = &mut *observation;
        match &learned {
            Some(learned) => learned.normaliser().normalise(raw, normalised),
            None => normalised.clone_from(raw),
        }
    }
}

pub fn build_masks(
    mut envs: Query<((&EnvId, &SlotReports, &mut Masks), &StepStatus)>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    blueprints: Res<BlueprintRegistry>,
    allowed: Res<AllowedActions>,
) -> Result<(), Failure> {
    let per_slot = vec![selectable(&blueprints); experiment.layout.len()];
    let limits = experiment.limits();
    for (id, reports, mut masks) in participating(envs.iter_mut()) {
        let point = EnvRow::of(id, &experiment, &clock).at(clock.step());
        let mut set = MaskSet::build(point, &reports.0, &per_slot, &limits).in_env(id.index)?;
        allowed.restrict(&mut set);
        masks.0 = Some(set);
    }
    Ok(())
}

/// The state of an env that `decide` reads and writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct DecidingEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    reports: &'static SlotReports,
    signals: &'static Signals,
    observation: &'static Observation,
    masks: &'static mut Masks,
    chosen: &'static mut Chosen,
}

/// Makes one call for all participating envs, in index order. The controller may narrow the masks first.
pub fn decide(
    mut controller: ResMut<ActiveController>,
    mut envs: Query<DecidingEnv>,
    reads: Res<HostSyncCounter>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) -> Result<(), Failure> {
    let controller = controller.0.get();
    let is_observed = controller.needs_observation();
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
            row: EnvRow::of(env.id, &experiment, &clock),
            reports: &env.reports.0,
            signals: &env.signals.0,
            observation: is_observed.then_some(env.observation),
        })
        .collect();
    let view = DecisionView {
        round: clock.round(),
        step: clock.step(),
        envs: &views,
        reads: &reads,
    };
    let decisions = checked_decisions(controller.as_mut(), &view, &mut masks)?;
    for ((env, masks), decision) in envs.iter_mut().zip(masks).zip(decisions) {
        (env.masks.0, env.chosen.0) = (Some(masks), Some(decision));
    }
    Ok(())
}

/// One decision for each env of the view, within masks that the controller has narrowed.
fn checked_decisions(
    controller: &mut dyn Controller,
    view: &DecisionView,
    masks: &mut [MaskSet],
) -> Result<Vec<Decision>, Failure> {
    controller.restrict(view, masks)?;
    for (env, masks) in view.envs.iter().zip(&*masks) {
        let point = view.point(env.row);
        masks.check(point, env.reports).in_env(env.row.env)?;
    }
    let decisions = controller.decide(view, masks)?;
    if decisions.len() != view.envs.len() {
        return Err(Failure::message(format!(
            "controller `{}` returned {} decisions for {} envs",
            controller.name(),
            decisions.len(),
            view.envs.len()
        )));
    }
    Ok(decisions)
}

/// Carries every env's command out. A refused or failed command leaves its env as it was.
pub fn execute_action(
    mut envs: Query<(
        GrowingEnv,
        &Chosen,
        &ValMetrics,
        &mut CommandOutcome,
        Option<&mut Governor>,
    )>,
    mut growth: GrowthContext,
) -> Result<(), Failure> {
    let mut envs: Vec<_> = envs.iter_mut().collect();
    envs.sort_unstable_by_key(|(env, ..)| env.id.index);
    for (env, chosen, val, outcome, governor) in &mut envs {
        let Some(decision) = &chosen.0 else {
            **outcome = CommandOutcome::default();
            continue;
        };
        let command = decision.command;
        let governor = governor.as_deref_mut();
        let refusal = execute(&command, val, governor, env, &mut growth).in_env(env.id.index)?;
        **outcome = CommandOutcome {
            effective_op: match refusal {
                None => command.op(),
                Some(_) => LifecycleOp::Wait,
            },
            slot: command.slot(),
            refusal,
        };
    }
    Ok(())
}

/// Validates, asks the governor, and lets the env grow. Returns the reason if the command was refused. An error ends the run.
fn execute(
    command: &LifecycleCommand,
    val: &ValMetrics,
    governor: Option<&mut Governor>,
    env: &mut GrowingEnvItem,
    growth: &mut GrowthContext,
) -> Result<Option<FailureReason>, Failure> {
    let limits = growth.experiment.limits();
    let views: Vec<_> = env.slots.records().map(|record| record.map(SlotView::from)).collect();
    if let Err(reason) = command_legal(command, &views, &limits) {
        return Ok(Some(reason));
    }
    if let Some(governor) = governor
        && let Some(factor) = governor.veto(command, val, &views, limits.max_seeds)
    {
        return Ok(Some(FailureReason::GovernorVeto { factor }));
    }
    growth.obey(command, env, val.accuracy_percent)
}

/// Closes the step for the next observation.
pub fn update_tracking(
    mut envs: Query<(
        &StepStatus,
        &Chosen,
        &CommandOutcome,
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
                last_ok: outcome.refusal.is_none(),
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
