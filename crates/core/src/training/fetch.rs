//! What envs are fed from: the order of a step's samples, planned once per step, and the step's batches, one after the other.

use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use tch::Kind;

use super::accumulators::Accumulators;
use super::components::{EnvAccumulators, EnvFeed, EnvLossScaler, GroupNorms};
use super::pack::PackLayout;
use super::precision::TrainingPrecision;
use crate::clock::RunClock;
use crate::data::{Batch, Feed, StepKey};
use crate::env::{EnvBackend, EnvId, EnvPool, EnvSetup, EnvStream, Experiment, StepStatus, in_batch};
use crate::health::Failure;
use crate::nn::LossScaler;
use crate::torch::{HostSyncCounter, TorchError};

/// Gives every env its feed and accumulators, and a scaler of its loss where float16 needs one.
pub fn equip_envs(
    mut envs: Query<(Entity, &EnvId, &EnvBackend, &mut EnvStream)>,
    experiment: Res<Experiment>,
    precision: Res<TrainingPrecision>,
    mut setup: EnvSetup,
) -> Result<(), Failure> {
    let layout = PackLayout {
        configs: experiment.max_configurations,
        slots: experiment.layout.len(),
    };
    for (entity, id, backend, mut stream) in &mut envs {
        setup.insert((entity, id), &mut stream, |resident, feed| {
            let feed_of_env = Feed::new(resident, feed, id.index as u64)?;
            let units = (feed.batch_size, feed.units_per_sample);
            let sums = Accumulators::new(backend.0, layout, feed.batches, units).map_err(TorchError::from)?;
            let scaler = match precision.0 {
                Some(Kind::Half) => Some(LossScaler::new(backend.0.device)?),
                _ => None,
            };
            Ok((
                EnvFeed(SyncCell::new(feed_of_env)),
                EnvAccumulators(SyncCell::new(sums)),
                GroupNorms::new(backend.0.device, experiment.layout.len()),
                EnvLossScaler(SyncCell::new(scaler)),
            ))
        })?;
    }
    Ok(())
}

/// Order and augmentation of the whole step, one upload per env; batches that aren't on the device are asked for; sums back to
/// zero. From here to `StepSync` nothing may wait for a device.
pub fn fetch_batches(
    mut envs: Query<(
        &EnvId,
        &StepStatus,
        &mut EnvStream,
        (&mut EnvFeed, &mut EnvAccumulators),
    )>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    pool: Res<EnvPool>,
    syncs: Res<HostSyncCounter>,
) -> Result<(), Failure> {
    syncs.forbid();
    let key = |(round, step): (u32, u32)| StepKey {
        seed: experiment.scenario.run.seed,
        round: u64::from(round),
        step: u64::from(step),
    };
    let (present, upcoming) = (key((clock.round(), clock.step())), clock.upcoming_step().map(key));
    pool.for_each_active(envs.iter_mut(), |_, stream, (mut feed, mut sums)| {
        let sums = sums.0.get();
        sums.zero().map_err(TorchError::from)?;
        stream.note_write(sums.pack());
        Ok(feed.0.get().begin_step(present, upcoming)?)
    })
}

/// Batch `batch` of the step, gathered on the env's device, and how long this thread took to get it there.
pub(super) fn fetch_batch(feed: &mut EnvFeed, batch: usize) -> Result<(Batch, Duration), Failure> {
    let began = Instant::now();
    let samples = in_batch("fetch", batch, || Ok(feed.0.get().fetch(batch)?))?;
    Ok((samples, began.elapsed()))
}
