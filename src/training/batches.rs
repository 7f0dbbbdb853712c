//! All training batches of a step in one go: for each env what the works of `TrainBatch` do batch after batch.

use bevy_ecs::prelude::*;

use super::components::EnvFeed;
use super::fetch::fetch;
use super::step::{TrainingEnv, TrainingRules};
use crate::clock::RunClock;
use crate::env::{EnvId, EnvPool, EnvStream, StepStatus, in_batch};
use crate::health::Failure;
use crate::schedule::Work;

/// Fetches, trains on and forgets every batch of the step.
pub fn train_batches(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream, (&mut EnvFeed, TrainingEnv))>,
    clock: Res<RunClock>,
    rules: TrainingRules,
    pool: Res<EnvPool>,
) -> Result<(), Failure> {
    let (batches, _) = clock.batches_per_step();
    pool.for_each_active(envs.iter_mut(), |_, stream, (mut feed, mut env)| {
        for batch in 0..batches {
            in_batch(Work::FetchTrainBatch, batch, || fetch(&mut feed, &mut env.batch, batch))?;
            in_batch(Work::ForwardBackward, batch, || rules.forward_backward(&mut env, batch))?;
            in_batch(Work::Optimize, batch, || rules.optimize(&mut env, stream, batch))?;
        }
        Ok(())
    })
}
