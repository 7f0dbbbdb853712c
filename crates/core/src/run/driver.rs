//! The loop: which schedule runs when. All behaviour is in systems.

use std::time::Duration;

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;

use super::parts::check_parts;
use super::{CommandInbox, RoundLimit, StopRequest, StopSignal};
use crate::clock::RunClock;
use crate::env::EpisodeStats;
use crate::health::{EngineError, Failure, Position, RunHealth};
use crate::schedule::*;
use crate::telemetry::{Phase, PhaseClock};
use crate::torch::catch;
use crate::unfinished::UnfinishedRound;

/// The interval at which a paused run looks for a command, or for a signal.
const MOMENT: Duration = Duration::from_millis(100);

/// Plays the run that an app holds, step by step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// Nothing has run.
    #[default]
    Ready,
    /// The loop is before a round, or after the last one.
    BetweenRounds,
    /// The loop is before a step of a round, or after its last one.
    InRound,
    /// `Shutdown` has run.
    Over,
}

/// The last move of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverStep {
    /// `Startup` has run.
    Started,
    /// A round has begun.
    RoundBegun,
    /// A step of every env has been played.
    StepPlayed,
    /// Nothing for a moment: a command has paused the run.
    Paused,
    /// A round has ended.
    RoundEnded,
    /// `Shutdown` has run: nothing follows.
    Over,
}

impl Driver {
    /// Makes the next move of the loop: `Startup`, the start of a round, a step, the end of the round, `Shutdown`. Once `Startup` has
    /// begun, `Shutdown` runs in every case.
    ///
    /// # Errors
    /// A part that is missing in the app, before anything runs; else, once `Shutdown` has run, the first failure of a system.
    pub fn advance(&mut self, app: &mut App) -> Result<DriverStep, EngineError> {
        let world = app.world_mut();
        let (next, moment) = match self {
            Self::Ready => {
                check_parts(world).map_err(|failure| failure.during("start-up", Position::default()))?;
                run_guarded(world, Startup);
                (Self::BetweenRounds, DriverStep::Started)
            }
            Self::BetweenRounds if begins_round(world) => {
                run(world, RoundStart, Phase::Reset);
                if is_unfinished(world) {
                    run(world, RestoreRound, Phase::Checkpoint);
                }
                (Self::InRound, DriverStep::RoundBegun)
            }
            Self::BetweenRounds => {
                run_guarded(world, Shutdown);
                (Self::Over, DriverStep::Over)
            }
            Self::InRound if is_paused(world) => {
                wait(world);
                (Self::InRound, DriverStep::Paused)
            }
            Self::InRound if begins_step(world) => {
                play_step(world);
                (Self::InRound, DriverStep::StepPlayed)
            }
            Self::InRound => {
                run(world, RoundEnd, Phase::Update);
                (Self::BetweenRounds, DriverStep::RoundEnded)
            }
            Self::Over => (Self::Over, DriverStep::Over),
        };
        *self = next;
        if moment == DriverStep::Over {
            let failure = world.resource_mut::<RunHealth>().failure.take();
            return failure.map_or(Ok(moment), Err);
        }
        Ok(moment)
    }
}

fn begins_round(world: &mut World) -> bool {
    stop_at_limit(world);
    is_running(world) && !is_stopping(world) && world.resource_mut::<RunClock>().next_round()
}

/// A run that is over anyway is not stopped.
fn stop_at_limit(world: &World) {
    let limit = world.get_resource::<RoundLimit>();
    let upcoming = world.get_resource::<RunClock>().and_then(RunClock::upcoming_round);
    if let (Some(limit), Some(upcoming), Some(stop)) = (limit, upcoming, world.get_resource::<StopSignal>())
        && upcoming >= limit.0
    {
        stop.request(StopRequest::RoundLimit);
    }
}

/// A run that is asked to stop leaves its round unfinished. A round ends early once every env's episode is over.
fn begins_step(world: &mut World) -> bool {
    is_running(world) && !is_stopping(world) && has_active_env(world) && world.resource_mut::<RunClock>().next_step()
}

fn play_step(world: &mut World) {
    run(world, StepStart, Phase::Reset);
    run(world, Batches, Phase::Train);
    run(world, StepSync, Phase::Sync);
    run(world, Assess, Phase::Assess);
    run(world, Decide, Phase::Decide);
    run(world, Act, Phase::Act);
    run(world, StepEnd, Phase::Record);
    save_if_asked(world);
}

fn save_if_asked(world: &mut World) {
    if is_unfinished(world) {
        run(world, SaveRound, Phase::Checkpoint);
    }
}

fn is_paused(world: &World) -> bool {
    is_running(world)
        && world
            .get_resource::<CommandInbox>()
            .is_some_and(|inbox| inbox.is_paused)
}

/// A moment of a pause, which belongs to no round. A stop ends the pause, and has the checkpoint that it has after a step.
fn wait(world: &mut World) {
    std::thread::sleep(MOMENT);
    run_guarded(world, Paused);
    world.resource_mut::<PhaseClock>().skip();
    if is_stopping(world) {
        world.resource_mut::<CommandInbox>().is_paused = false;
        if has_active_env(world) {
            world.init_resource::<UnfinishedRound>();
        }
    }
    save_if_asked(world);
}

/// Runs a schedule of a round. Its time is that of `phase`, unless its systems name another.
fn run(world: &mut World, schedule: impl ScheduleLabel, phase: Phase) {
    world.resource_mut::<PhaseClock>().enter(phase);
    run_guarded(world, schedule);
    world.resource_mut::<PhaseClock>().enter(None);
}

/// A panic in a system, the engine's or a plugin's, is a failure of the run like any other: what was finished is kept, and
/// the record is closed.
fn run_guarded(world: &mut World, schedule: impl ScheduleLabel) {
    let Err(error) = catch(|| world.run_schedule(schedule)) else {
        return;
    };
    let clock = world.get_resource::<RunClock>();
    let position = clock.map(RunClock::position).unwrap_or_default();
    let failure = Failure::from(error).during("a system", position);
    world.resource_mut::<RunHealth>().record(failure);
}

/// Returns whether the current round is to be saved, or to be resumed from a checkpoint.
fn is_unfinished(world: &World) -> bool {
    world.contains_resource::<UnfinishedRound>()
}

fn has_active_env(world: &mut World) -> bool {
    let mut envs = world.query::<&EpisodeStats>();
    envs.iter(world).any(|stats| stats.end.is_none())
}

fn is_stopping(world: &World) -> bool {
    world.get_resource::<StopSignal>().is_some_and(StopSignal::is_requested)
}

fn is_running(world: &World) -> bool {
    world.resource::<RunHealth>().failure.is_none()
}
