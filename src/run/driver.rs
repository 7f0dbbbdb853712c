//! The loop: which schedule runs when. All behaviour is in systems (spec 06 §4).

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;

use super::StopSignal;
use super::parts::check_parts;
use crate::env::{EpisodeStats, Experiment, RunClock};
use crate::health::{EngineError, Position, RunHealth};
use crate::scenario::StopAt;
use crate::schedule::*;

/// Plays the run that `app` holds, to its end or until a [`StopSignal`] asks for less. `Shutdown` runs whatever happens
/// after `Startup` has begun; the first failure is returned.
///
/// # Errors
/// An app that lacks a part, named before anything runs; else the first failure of a system.
pub fn drive(app: &mut App) -> Result<(), EngineError> {
    let world = app.world_mut();
    check_parts(world).map_err(|failure| EngineError {
        phase: "start-up",
        position: Position::default(),
        failure,
    })?;
    world.run_schedule(Startup);
    while is_running(world) && !is_stopping(world) && world.resource_mut::<RunClock>().next_round() {
        play_round(world);
    }
    world.run_schedule(Shutdown);
    world.resource_mut::<RunHealth>().failure.take().map_or(Ok(()), Err)
}

fn play_round(world: &mut World) {
    world.run_schedule(RoundStart);
    while goes_on(world) && has_active_env(world) && world.resource_mut::<RunClock>().next_step() {
        play_step(world);
    }
    world.run_schedule(RoundEnd);
}

fn play_step(world: &mut World) {
    let (train_batches, val_batches) = world.resource::<RunClock>().batches_per_step();
    world.run_schedule(StepStart);
    play_batches(world, TrainBatch, train_batches);
    play_batches(world, ValBatch, val_batches);
    world.run_schedule(StepSync);
    world.run_schedule(Assess);
    world.run_schedule(Decide);
    world.run_schedule(Act);
    world.run_schedule(StepEnd);
}

/// Batches outside, envs inside: every device always has work of several envs queued.
fn play_batches(world: &mut World, schedule: impl ScheduleLabel + Clone, count: usize) {
    for batch in 0..count {
        world.resource_mut::<RunClock>().begin_batch(batch);
        world.run_schedule(schedule.clone());
    }
}

/// A round ends early once every env's episode is over.
fn has_active_env(world: &mut World) -> bool {
    let mut envs = world.query::<&EpisodeStats>();
    envs.iter(world).any(|stats| stats.end.is_none())
}

/// A run that is asked to stop leaves its round unfinished, unless the scenario says otherwise.
fn goes_on(world: &World) -> bool {
    let leaves_the_round = world.resource::<Experiment>().scenario.run.stop_at == StopAt::Step;
    is_running(world) && !(leaves_the_round && is_stopping(world))
}

fn is_stopping(world: &World) -> bool {
    world.get_resource::<StopSignal>().is_some_and(StopSignal::is_requested)
}

fn is_running(world: &World) -> bool {
    world.resource::<RunHealth>().failure.is_none()
}
