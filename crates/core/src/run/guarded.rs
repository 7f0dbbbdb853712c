//! A schedule, run so that a panic in it is a failure of the run.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;

use crate::clock::RunClock;
use crate::health::{Failure, RunHealth};
use crate::torch::catch;

/// A panic in a system, the engine's or a plugin's, is a failure of the run like any other: what was finished is kept, and
/// the record is closed.
pub(super) fn run(world: &mut World, schedule: impl ScheduleLabel) {
    let Err(error) = catch(|| world.run_schedule(schedule)) else {
        return;
    };
    let clock = world.get_resource::<RunClock>();
    let position = clock.map(RunClock::position).unwrap_or_default();
    let failure = Failure::from(error).during("a system", position);
    world.resource_mut::<RunHealth>().record(failure);
}
