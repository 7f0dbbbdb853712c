//! The training half of a step, in the order of its schedule: envs are equipped, the order of a step's samples is planned, all envs
//! train on its batches, and what these added up is reduced on the device and, once it is read, named. With the loop over batches.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_platform::cell::SyncCell;
use tch::{Device, Kind};

use super::accumulators::Accumulators;
use super::components::{EnvAccumulators, EnvFeed, EnvLossScaler, GroupNorms, StepResult, TrainingEnv};
use super::pack::{PackLayout, SlotNumbers};
use super::precision::TrainingPrecision;
use super::step::{TrainingRules, is_measured};
use crate::clock::RunClock;
use crate::data::{Feed, StepKey};
use crate::env::{
    Devices, EnvBackend, EnvId, EnvPool, EnvSetup, EnvStream, EpisodeStats, Experiment, GradReport, LoadedData,
    SeedSlots, SeedTraining, StepStatus, TrainMetrics,
};
use crate::health::Failure;
use crate::nn::LossScaler;
use crate::scenario::OnCommit;
use crate::seed::{SeedRecord, trains};
use crate::telemetry::{PhaseClock, TelemetryOutbox};
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

/// An env with its batches and their sums.
type FedEnv = (
    &'static EnvId,
    &'static StepStatus,
    &'static mut EnvStream,
    (&'static mut EnvFeed, &'static mut EnvAccumulators),
);

/// Draws order and augmentation of the whole step, with one upload per env, requests the batches that aren't on the device, and
/// zeroes the sums. From here to `StepSync` nothing may wait for a device.
pub fn fetch_batches(
    mut envs: Query<FedEnv>,
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

/// The outer loop. Every env does the same in the same order, so no number depends on it.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOrder {
    /// An env plays all its batches in one go: workers needn't synchronise after each. Chosen where all devices are CPUs.
    EnvByEnv,
    /// All envs play a batch before any plays the next: every device has work of several envs queued.
    BatchByBatch,
}

/// The way in which envs play the batches of a step.
#[derive(SystemParam)]
pub struct BatchLoop<'w> {
    /// Plays a part of the batches in all envs.
    pub pool: Res<'w, EnvPool>,
    devices: Res<'w, Devices>,
    /// The order, where an application has chosen it.
    order: Option<Res<'w, BatchOrder>>,
}

impl BatchLoop<'_> {
    /// The first `count` batches in parts: every env plays one before any plays the next.
    pub fn parts(&self, count: usize) -> impl Iterator<Item = Range<usize>> {
        let is_on_cpus = self.devices.0.iter().all(|backend| backend.device == Device::Cpu);
        let order = self.order.as_deref().copied();
        let is_in_one_go = order.map_or(is_on_cpus, |order| order == BatchOrder::EnvByEnv);
        let part = if is_in_one_go { count.max(1) } else { 1 };
        (0..count).step_by(part).map(move |first| first..first + part)
    }
}

/// Trains all envs on the step's training batches, and calls the hooks in each. An env that fails is left out of the rest of
/// the step.
pub fn train_batches(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream, TrainingEnv)>,
    rules: TrainingRules,
    batches: BatchLoop,
    mut outbox: ResMut<TelemetryOutbox>,
    mut phases: ResMut<PhaseClock>,
) -> Result<(), Failure> {
    let (count, _) = rules.clock.batches_per_step();
    // Nanoseconds of all envs, whose workers add to it side by side.
    let copied = AtomicU64::new(0);
    let trained = batches.parts(count).try_for_each(|part| {
        batches.pool.for_each_active(envs.iter_mut(), |_, stream, mut env| {
            part.clone().try_for_each(|batch| {
                let fetched_in = rules.train_on(&mut env, stream, batch)?;
                copied.fetch_add(fetched_in.as_nanos() as u64, Ordering::Relaxed);
                Ok::<_, Failure>(())
            })
        })
    });
    phases.add_copied(Duration::from_nanos(copied.into_inner()));
    // Reported before the failure that may end the run.
    outbox.extend(rules.hooks.take_events());
    trained
}

/// Reduces what the training batches left, on the device.
pub fn reduce_sums(mut envs: Query<FedEnv>, pool: Res<EnvPool>) -> Result<(), Failure> {
    pool.for_each_active(envs.iter_mut(), |_, stream, (mut feed, mut sums)| {
        let sums = sums.0.get();
        sums.finish_train(feed.0.get().step_labels())
            .map_err(TorchError::from)?;
        stream.note_write(sums.pack());
        Ok(())
    })
}

/// The step's training loss and accuracy, and the sums over the gradients of host and seeds.
pub fn derive_train_metrics(
    mut envs: Query<(
        &StepResult,
        &SeedSlots,
        &mut TrainMetrics,
        &mut GradReport,
        &mut EpisodeStats,
    )>,
    data: Res<LoadedData>,
    experiment: Res<Experiment>,
) {
    let predictions = data.feed.train_units() as f64;
    let on_commit = experiment.scenario.lifecycle.on_commit;
    for (result, slots, mut train, mut gradients, mut stats) in &mut envs {
        let Some(numbers) = &result.0 else { continue };
        *train = TrainMetrics {
            loss: numbers.train_loss(),
            accuracy_percent: 100.0 * numbers.correct as f64 / predictions,
            nonfinite_batches: numbers.nonfinite_batches,
            skipped_updates: numbers.host.skipped_updates,
            loss_scale: numbers.loss_scale,
        };
        stats.skipped_updates += numbers.host.skipped_updates;
        gradients.host = numbers.host.gradients;
        let slots = slots.records().zip(&numbers.slots);
        gradients.seeds = slots
            .map(|(seed, numbers)| trained_seed(seed?, numbers, on_commit))
            .collect();
    }
}

/// `None` for a seed that was not trained.
fn trained_seed(seed: &SeedRecord, numbers: &SlotNumbers, on_commit: OnCommit) -> Option<SeedTraining> {
    trains(seed.stage, seed.alpha.mode(), on_commit).then(|| SeedTraining {
        gradients: is_measured(seed).then_some(numbers.group.gradients),
        nonfinite_streak: numbers.nonfinite_streak as u32,
        skipped_updates: numbers.group.skipped_updates as u32,
    })
}
