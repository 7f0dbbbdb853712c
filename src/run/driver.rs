//! The loop: which schedule runs when. All behaviour is in systems (spec 06 §4).

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;

use super::StopSignal;
use super::parts::check_parts;
use crate::clock::RunClock;
use crate::env::{EpisodeStats, Experiment};
use crate::health::{EngineError, Failure, Position, RunHealth};
use crate::scenario::StopAt;
use crate::schedule::*;
use crate::torch::catch;

/// Plays the run that `app` holds, to its end or until a [`StopSignal`] asks for less. `Shutdown` runs whatever happens
/// after `Startup` has begun; the first failure is returned.
///
/// # Errors
/// An app that lacks a part, named before anything runs; else the first failure of a system.
pub fn drive(app: &mut App) -> Result<(), EngineError> {
    let world = app.world_mut();
    check_parts(world).map_err(|failure| failure.during("start-up", Position::default()))?;
    run(world, Startup);
    while is_running(world) && !is_stopping(world) && world.resource_mut::<RunClock>().next_round() {
        play_round(world);
    }
    run(world, Shutdown);
    world.resource_mut::<RunHealth>().failure.take().map_or(Ok(()), Err)
}

/// A panic in a system, the engine's or a plugin's, is a failure of the run like any other (spec 06 §14.1): what was
/// finished is kept, and the record is closed.
fn run(world: &mut World, schedule: impl ScheduleLabel) {
    let Err(error) = catch(|| world.run_schedule(schedule)) else {
        return;
    };
    let clock = world.get_resource::<RunClock>();
    let position = clock.map(RunClock::position).unwrap_or_default();
    let failure = Failure::from(error).during("a system", position);
    world.resource_mut::<RunHealth>().record(failure);
}

fn play_round(world: &mut World) {
    run(world, RoundStart);
    while goes_on(world) && has_active_env(world) && world.resource_mut::<RunClock>().next_step() {
        play_step(world);
    }
    run(world, RoundEnd);
}

fn play_step(world: &mut World) {
    let (train_batches, val_batches) = world.resource::<RunClock>().batches_per_step();
    run(world, StepStart);
    play_batches(world, TrainBatch, train_batches);
    play_batches(world, ValBatch, val_batches);
    run(world, StepSync);
    run(world, Assess);
    run(world, Decide);
    run(world, Act);
    run(world, StepEnd);
}

/// Batches outside, envs inside: every device always has work of several envs queued.
fn play_batches(world: &mut World, schedule: impl ScheduleLabel + Clone, count: usize) {
    for batch in 0..count {
        world.resource_mut::<RunClock>().begin_batch(batch);
        run(world, schedule.clone());
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
