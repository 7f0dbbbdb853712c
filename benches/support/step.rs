//! A step of all envs, outside a run.

use std::time::{Duration, Instant};

use simic_engine::prelude::*;

/// Plays it, and returns the time of its batches.
pub fn step(world: &mut World) -> Duration {
    world.resource_mut::<RunClock>().next_step();
    world.run_schedule(StepStart);
    let began = Instant::now();
    world.run_schedule(Batches);
    let in_batches = began.elapsed();
    world.run_schedule(StepSync);
    world.run_schedule(Assess);
    world.run_schedule(Decide);
    world.run_schedule(Act);
    world.run_schedule(StepEnd);
    in_batches
}
