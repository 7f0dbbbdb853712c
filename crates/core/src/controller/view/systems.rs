//! What is measured of an env becomes signals, slot reports and the rows of observations.
//!
//! To look at an env once more after its slots ticked, as a truncated episode's bootstrap does, call
//! [`ObservationSchema::observe`] with fresh reports and the step's unchanged signals, then
//! [`ObservationNormaliser::normalise`](super::ObservationNormaliser::normalise).

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::envs::{EnvRow, Observation};
use super::features::ObservationInput;
use super::schema::ObservationSchema;
use super::signals::{SignalTracker, TrainingSignals};
use crate::actions::ActionFeedback;
use crate::clock::RunClock;
use crate::env::{EnvId, Experiment, HostParams, SeedSlots, StepStatus, TrainMetrics, ValMetrics, participating};
use crate::health::{Failure, InEnv};
use crate::seed::{BlueprintRegistry, SeedReport};
use crate::telemetry::{Event, HostStabilized, Num, TelemetryOutbox};
use crate::validation::{Counterfactual, ValPlan};

/// The memory behind an env's [`TrainingSignals`].
#[derive(Component, Default, Serialize, Deserialize)]
pub struct Tracker(pub SignalTracker);

/// What a controller sees of the env's numbers; a step that was rolled back leaves those of the step before.
#[derive(Component, Default, Serialize, Deserialize)]
pub struct Signals(pub TrainingSignals);

/// The env's slots after the step's measurements, in policy order; `None` is an empty slot.
#[derive(Component, Default)]
pub struct SlotReports(pub SmallVec<[Option<SeedReport>; 4]>);

/// The last command and its success, for the next observation.
#[derive(Component, Default, Serialize, Deserialize)]
pub struct Feedback(pub ActionFeedback);

/// What signals are made from.
#[derive(QueryData)]
#[query_data(mutable)]
pub(crate) struct SignallingEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    train: &'static TrainMetrics,
    val: &'static ValMetrics,
    host: &'static HostParams,
    slots: &'static SeedSlots,
    plan: &'static ValPlan,
    counterfactual: &'static Counterfactual,
    tracker: &'static mut Tracker,
    signals: &'static mut Signals,
}

pub(crate) fn update_signals(
    mut envs: Query<SignallingEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    mut outbox: ResMut<TelemetryOutbox>,
) -> Result<(), Failure> {
    for mut env in &mut envs {
        if !env.status.participates() {
            continue;
        }
        let (id, val) = (env.id, env.val);
        let mut signals = env.tracker.0.update(clock.step(), env.train, val).in_env(id.index)?;
        let committed = env
            .counterfactual
            .committed_accuracy(env.plan, env.slots, signals.val_accuracy);
        signals.committed_accuracy = committed.unwrap_or(signals.val_accuracy);
        signals.host_params = env.host.0;
        env.signals.0 = signals;
        if env.signals.0.just_stabilized {
            outbox.push(Event::env(
                experiment.context(id, &clock),
                HostStabilized {
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
    experiment: Res<Experiment>,
) {
    for (slots, mut reports) in participating(envs.iter_mut()) {
        reports.0 = slots.reports(&blueprints, &experiment.scenario.lifecycle.gates);
    }
}

/// Encodes what was measured into the raw row of every env that decides.
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
