//! D1 and D4 of the schedule: rows of the envs that are about to decide (spec 03 §1, 06 §4.8).
//!
//! To look at an env once more after its slots ticked, as a truncated episode's bootstrap does (spec 06 E2), call
//! [`ObservationSchema::observe`] with fresh reports and the step's unchanged signals, then
//! [`ObservationNormaliser::apply`].

use bevy_ecs::prelude::*;

use super::Observation;
use super::normaliser::ObservationNormaliser;
use super::schema::{ObservationInput, ObservationSchema};
use crate::clock::RunClock;
use crate::controller::{ActiveController, DecisionPoint, Feedback, Signals, SlotReports};
use crate::env::{EnvId, Experiment, StepStatus};
use crate::health::{Failure, InEnv};

impl ObservationNormaliser {
    /// Writes an observation's normalised row.
    pub fn apply(&self, observation: &mut Observation) {
        self.normalise(&observation.raw, &mut observation.normalised);
    }
}

/// Encodes what was measured into the raw row of every env that decides (D1). The first element that is read as 0
/// because it is not finite is told.
pub fn build_observations(
    mut envs: Query<(&EnvId, &StepStatus, &Signals, &Feedback, &SlotReports, &mut Observation)>,
    schema: Res<ObservationSchema>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    mut was_told: Local<bool>,
) -> Result<(), Failure> {
    for (id, status, signals, feedback, reports, mut observation) in &mut envs {
        if !status.participates() {
            continue;
        }
        let input = ObservationInput {
            at: DecisionPoint {
                env: id.index,
                episode: experiment.episode(clock.round(), id.index),
                step: clock.step(),
            },
            signals: &signals.0,
            feedback: feedback.0,
            reports: &reports.0,
        };
        schema.observe(&input, &mut observation).in_env(id.index)?;
        if let Some(element) = observation.replaced
            && !std::mem::replace(&mut *was_told, true)
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

/// Normalises every env's row by the learned controller's statistics; for any other controller it stays raw (D4).
pub fn normalise_observations(mut envs: Query<&mut Observation>, mut controller: ResMut<ActiveController>) {
    let learned = controller.0.get().learned();
    for mut observation in &mut envs {
        match &learned {
            Some(learned) => learned.normaliser().apply(&mut observation),
            None => {
                let Observation { raw, normalised, .. } = &mut *observation;
                normalised.clone_from(raw);
            }
        }
    }
}
