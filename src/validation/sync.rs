//! The end of a step's device work: one packed read and one wait per env (spec 06 §4.6).

use bevy_ecs::prelude::*;

use super::MAIN;
use super::pass::ValPlan;
use crate::data::StepNumbers;
use crate::env::{EnvId, EnvPool, EnvStream, GradReport, HostModel, LoadedData, SeedSlots};
use crate::env::{Experiment, StepStatus, TrainMetrics, ValMetrics};
use crate::health::{Failure, InEnv};
use crate::seed::{GradientSums, trains};
use crate::torch::{HostSyncCounter, TorchError, read_f64};
use crate::training::{EnvAccumulators, EnvFeed, is_watched};

/// Everything that the step summed up for an env; `None` before the first and while the env is idle.
#[derive(Component, Default)]
pub struct StepResult(pub Option<StepNumbers>);

/// Reduces what the training batches left, on the device.
pub fn enqueue_reads(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream, &mut EnvFeed, &mut EnvAccumulators)>,
    pool: Res<EnvPool>,
) -> Result<(), Failure> {
    let envs = envs
        .iter_mut()
        .filter(|(_, status, ..)| status.is_active())
        .map(|(id, _, stream, feed, sums)| (*id, (stream, feed, sums)));
    pool.for_each(envs, |_, (mut stream, mut feed, mut sums)| {
        let stream = &*stream.0.get();
        let _guard = stream.enter()?;
        let sums = sums.0.get();
        sums.finish_train(feed.0.get().step_labels())
            .map_err(TorchError::from)?;
        stream.note_write(sums.pack());
        Ok(())
    })
}

/// The step's only wait; errors of earlier device work surface here.
pub fn wait_all(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream)>,
    syncs: Res<HostSyncCounter>,
) -> Result<(), Failure> {
    syncs.allow();
    for (id, status, mut stream) in &mut envs {
        if !status.is_active() {
            continue;
        }
        stream.0.get().synchronize().in_env(id.index)?;
    }
    Ok(())
}

/// Reads every env's pack and gives its numbers their names.
pub fn unpack(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvAccumulators, &ValPlan, &mut StepResult)>,
    syncs: Res<HostSyncCounter>,
) -> Result<(), Failure> {
    for (id, status, mut sums, plan, mut result) in &mut envs {
        result.0 = None;
        if !status.is_active() {
            continue;
        }
        let sums = sums.0.get();
        let pack = read_f64(sums.pack(), &syncs).in_env(id.index)?;
        let configurations = plan.plan.as_ref().map_or(1, |plan| plan.coalitions.masks.len());
        result.0 = Some(sums.layout().unpack(&pack, configurations, MAIN));
    }
    Ok(())
}

/// The step's metrics and gradient sums in the units that everyone uses (spec 06 A1, §7.5).
pub fn derive_metrics(
    mut envs: Query<(
        &StepResult,
        &mut HostModel,
        &mut SeedSlots,
        &mut TrainMetrics,
        &mut ValMetrics,
        &mut GradReport,
    )>,
    data: Res<LoadedData>,
    experiment: Res<Experiment>,
) {
    let (train_samples, val_samples) = (data.feed.train_samples() as f64, data.feed.val_samples());
    let on_fossilize = experiment.scenario.lifecycle.on_fossilize;
    for (result, mut host, mut slots, mut train, mut val, mut gradients) in &mut envs {
        let Some(numbers) = &result.0 else { continue };
        *train = TrainMetrics {
            loss: numbers.train_loss(),
            accuracy_percent: 100.0 * numbers.correct as f64 / train_samples,
            nonfinite_batches: numbers.nonfinite_batches,
            skipped_updates: numbers.skipped_updates,
        };
        let main = numbers.configs[MAIN];
        *val = ValMetrics {
            loss: main.loss(val_samples),
            accuracy_percent: main.accuracy_percent(val_samples),
        };
        let params = host.0.get().params();
        gradients.host = GradientSums {
            sum_squares: numbers.host_gradient_square_sum,
            tensors: params.trainable().len() as u32,
            elements: params.count(),
            ..GradientSums::default()
        };
        gradients.nonfinite_streaks.clear();
        gradients.seeds.clear();
        for (slot, sums) in slots.0.iter_mut().zip(&numbers.slots) {
            let watched = slot
                .record
                .as_ref()
                .filter(|seed| is_watched(seed) && trains(seed.stage, seed.alpha.mode(), on_fossilize));
            gradients.nonfinite_streaks.push(sums.nonfinite as u32);
            gradients
                .seeds
                .push(watched.zip(slot.module.as_mut()).map(|(seed, module)| GradientSums {
                    sum_squares: sums.gradient_square_sum,
                    vanishing: sums.vanishing as u32,
                    exploding: sums.exploding as u32,
                    tensors: module.get().params().count() as u32,
                    elements: seed.params(),
                }));
        }
    }
}
