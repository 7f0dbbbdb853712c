//! A check of an app before anything runs: it must have all parts that a run takes. The error names a plugin that was left out.
//!
//! Plugins may be replaced, so what counts is not which plugin is there but that one does its work.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{InternedScheduleLabel, ScheduleLabel};

use crate::env::Experiment;
use crate::health::{Failure, RunHealth};
use crate::schedule::*;
use crate::telemetry::{PhaseClock, TelemetryOutbox};

/// A part without which nothing can be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum MissingPart {
    #[error(
        "the app has no `{plugin}`: add it (it is in `SimicPlugins`), or do its work in systems of your own, among them \
         one in `Work::{work:?}`"
    )]
    Work { plugin: &'static str, work: Work },
    #[error("the app has no `{plugin}`: add it (it is in `SimicPlugins`) or a plugin that provides `{resource}`")]
    Plugin {
        plugin: &'static str,
        resource: &'static str,
    },
    #[error("the app has no `{resource}`: insert {remedy}")]
    Resource {
        resource: &'static str,
        remedy: &'static str,
    },
}

/// One piece of work of each plugin that the loop needs.
fn indispensable() -> [(InternedScheduleLabel, Work, &'static str); 5] {
    [
        (Startup.intern(), Work::LoadDatasets, "StartupPlugin"),
        (Startup.intern(), Work::SpawnEnvs, "EnvPlugin"),
        (Batches.intern(), Work::TrainBatches, "TrainingPlugin"),
        (Batches.intern(), Work::ValidateBatches, "ValidationPlugin"),
        (Decide.intern(), Work::Decide, "ControllerPlugin"),
    ]
}

/// Builds all schedules and looks for missing parts.
///
/// # Errors
/// [`MissingPart`]; or bevy's own words on a schedule that cannot be built, such as two systems whose order is not
/// defined though it matters.
pub fn check_parts(world: &mut World) -> Result<(), Failure> {
    check_resources(world)?;
    for label in all_schedules() {
        world.schedule_scope(label, |world, schedule| {
            let built = schedule.initialize(world).map(drop);
            built.map_err(|error| {
                let why = error.to_string(schedule.graph(), world);
                Failure::message(format!("schedule {label:?} cannot be built: {why}"))
            })
        })?;
    }
    for (label, work, plugin) in indispensable() {
        let is_done = world.schedule_scope(label, |_, schedule| {
            let systems = schedule.graph().systems_in_set(work.intern());
            systems.is_ok_and(|systems| !systems.is_empty())
        });
        if !is_done {
            return Err(MissingPart::Work { plugin, work }.into());
        }
    }
    Ok(())
}

fn check_resources(world: &World) -> Result<(), MissingPart> {
    for (is_there, plugin, resource) in [
        (world.contains_resource::<RunHealth>(), "SchedulePlugin", "RunHealth"),
        (
            world.contains_resource::<TelemetryOutbox>(),
            "TelemetryPlugin",
            "TelemetryOutbox",
        ),
        (world.contains_resource::<PhaseClock>(), "TelemetryPlugin", "PhaseClock"),
    ] {
        if !is_there {
            return Err(MissingPart::Plugin { plugin, resource });
        }
    }
    if !world.contains_resource::<Experiment>() {
        return Err(MissingPart::Resource {
            resource: "Experiment",
            remedy: "one, or create the app with `Engine`",
        });
    }
    Ok(())
}
