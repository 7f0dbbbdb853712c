//! What is measured of an env becomes signals, slot reports and the rows of observations.
//!
//! To look at an env once more after its slots ticked, as a truncated episode's bootstrap does, call
//! [`ObservationSchema::observe`] with fresh reports and the step's unchanged signals, then
//! [`ObservationNormaliser::normalise`](super::ObservationNormaliser::normalise).

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::envs::EnvRow;
use super::features::ObservationInput;
use super::observation::Observation;
use super::schema::ObservationSchema;
use super::signals::{SignalTracker, TrainingSignals};
use crate::clock::RunClock;
use crate::controller::actions::ActionFeedback;
use crate::env::{EnvId, Experiment, SeedSlots, StepStatus, TrainMetrics, ValMetrics, participating};
use crate::health::{Failure, InEnv};
use crate::seed::{BlueprintRegistry, SeedReport};
use crate::telemetry::{Event, HostStabilized, Num, TelemetryOutbox};

/// The memory behind an env's [`TrainingSignals`].
#[derive(Component)]
pub struct Tracker(pub SignalTracker);

/// What the env's numbers tell a controller.
#[derive(Component, Default)]
pub struct Signals(pub TrainingSignals);

/// The env's slots after the step's measurements, in policy order; `None` is an empty slot.
#[derive(Component, Default)]
pub struct SlotReports(pub SmallVec<[Option<SeedReport>; 4]>);

/// The last command and its success, for the next observation.
#[derive(Component, Default)]
pub struct Feedback(pub ActionFeedback);

pub(crate) fn update_signals(
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
        signals.0 = tracker.0.update(clock.step(), train, val).in_env(id.index)?;
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

pub(crate) fn report_slots(
    mut envs: Query<((&SeedSlots, &mut SlotReports), &StepStatus)>,
    blueprints: Res<BlueprintRegistry>,
) {
    for (slots, mut reports) in participating(envs.iter_mut()) {
        reports.0 = slots.reports(&blueprints);
    }
}

/// Encodes what was measured into the raw row of every env that decides. The first element that is read as 0
/// because it is not finite is warned of.
pub fn build_observations(
    mut envs: Query<(&EnvId, &StepStatus, &Signals, &Feedback, &SlotReports, &mut Observation)>,
    schema: Res<ObservationSchema>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    mut is_warned: Local<bool>,
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
        if let Some(element) = observation.replaced
            && !std::mem::replace(&mut *is_warned, true)
        {
            let feature = &schema.names()[element];
            tracing::warn!(
                "{}: {feature} is not finite; such elements of observations are read as 0",
                input.at
            );
        }
    }
    Ok(())
}
