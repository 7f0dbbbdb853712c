//! The batches of a step.
//!
//! As the schedules have it, all envs play a batch before any plays the next: every device always has work of several envs
//! queued, and systems of applications find all envs at the same batch. On CPUs, where the engine alone has systems in the
//! schedules of batches, each env plays all its batches in one go instead: the same works in the same order for each env, so
//! the same numbers, and workers need not meet after each of them.

use std::any::type_name;

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{InternedScheduleLabel, Schedule, ScheduleLabel};
use bevy_ecs::system::System;
use tch::Device;

use super::guarded::run;
use crate::clock::RunClock;
use crate::env::{Devices, Experiment};
use crate::faults::inject_faults;
use crate::health::{Failure, RunHealth};
use crate::schedule::{TrainBatch, ValBatch, Work};
use crate::torch::catch;
use crate::training::{fetch, step};
use crate::validation::one_go::train_and_validate;
use crate::validation::pass::{evaluate_batch, plan_val};

/// The engine's systems in the schedule of a batch.
struct OwnSystems {
    schedule: InternedScheduleLabel,
    /// By name; the last one may be absent.
    names: Vec<&'static str>,
}

impl OwnSystems {
    fn of_training() -> Self {
        Self {
            schedule: TrainBatch.intern(),
            names: vec![
                name_of(&fetch::fetch_train_batch),
                name_of(&step::forward_backward),
                name_of(&step::optimize),
                name_of(&inject_faults),
            ],
        }
    }

    fn of_validation() -> Self {
        Self {
            schedule: ValBatch.intern(),
            names: vec![name_of(&evaluate_batch), name_of(&plan_val)],
        }
    }

    /// Whether a schedule that is not built yet holds these systems alone, under no condition but each work's own, that the
    /// run still runs.
    fn are_alone(&self, schedule: &Schedule) -> bool {
        let graph = schedule.graph();
        let systems: Vec<String> = graph
            .systems
            .iter()
            .map(|(_, system, _)| system.name().to_string())
            .collect();
        let present = |name: &&str| systems.iter().filter(|system| system == name).count();
        let indispensable = &self.names[..self.names.len() - 1];
        let conditions: usize = graph.system_sets.iter().map(|(.., conditions)| conditions.len()).sum();
        systems.iter().all(|system| self.names.contains(&system.as_str()))
            && indispensable.iter().all(|name| present(name) == 1)
            && conditions == self.names.len()
    }

    /// Whether nothing has joined them since the schedule was built.
    fn are_still_alone(&self, world: &World) -> bool {
        let schedules = world.resource::<Schedules>();
        schedules.get(self.schedule).is_some_and(|schedule| {
            let is_own =
                |system: &dyn System<In = (), Out = ()>| self.names.contains(&system.name().to_string().as_str());
            let systems = schedule.systems();
            !schedule.is_changed() && systems.is_ok_and(|mut systems| systems.all(|(_, system)| is_own(&**system)))
        })
    }
}

fn name_of<T>(_: &T) -> &'static str {
    type_name::<T>()
}

/// Whether both schedules held the engine's systems alone before the run began.
#[derive(Resource, Clone, Copy, Debug)]
struct Untouched(bool);

/// Looks into the schedules before they are built: of one that is built nobody can tell its conditions.
pub(super) fn note_untouched(world: &mut World) {
    let schedules = world.resource::<Schedules>();
    let is_untouched = |own: OwnSystems| {
        schedules
            .get(own.schedule)
            .is_some_and(|schedule| own.are_alone(schedule))
    };
    let noted = Untouched(is_untouched(OwnSystems::of_training()) && is_untouched(OwnSystems::of_validation()));
    world.insert_resource(noted);
}

/// Trains all envs on the batches of a step, then validates them.
pub(super) fn play_batches(world: &mut World) {
    if may_play_in_one_go(world) {
        return in_one_go(world);
    }
    let (train, val) = world.resource::<RunClock>().batches_per_step();
    batch_by_batch(world, TrainBatch, train);
    batch_by_batch(world, ValBatch, val);
}

fn may_play_in_one_go(world: &World) -> bool {
    let has_faults = !world.resource::<Experiment>().scenario.faults.is_empty();
    let devices = world.get_resource::<Devices>();
    let is_on_cpus = devices.is_some_and(|devices| devices.0.iter().all(|backend| backend.device == Device::Cpu));
    let was_untouched = world.get_resource::<Untouched>().is_some_and(|untouched| untouched.0);
    was_untouched
        && !has_faults
        && is_on_cpus
        && OwnSystems::of_training().are_still_alone(world)
        && OwnSystems::of_validation().are_still_alone(world)
}

/// Batches outside, envs inside.
fn batch_by_batch(world: &mut World, schedule: impl ScheduleLabel + Clone, count: usize) {
    for batch in 0..count {
        world.resource_mut::<RunClock>().begin_batch(batch);
        run(world, schedule.clone());
    }
    world.resource_mut::<RunClock>().end_batches();
}

/// Envs outside, batches inside. Failures say which batch and work they are of.
fn in_one_go(world: &mut World) {
    if world.resource::<RunHealth>().failure.is_some() {
        return;
    }
    let outcome = catch(|| {
        world
            .run_system_cached(train_and_validate)
            .map_err(|error| Failure::message(error.to_string()))
    });
    if let Err(failure) = outcome.map_err(Failure::from).flatten().flatten() {
        let position = world.resource::<RunClock>().position();
        world
            .resource_mut::<RunHealth>()
            .record(failure.during(Work::ForwardBackward.phase(), position));
    }
}

#[cfg(test)]
mod tests;
