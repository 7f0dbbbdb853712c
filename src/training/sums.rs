//! What the training batches of a step added up: reduced on the device, read with everything else, then named.

use bevy_ecs::prelude::*;

use super::components::{EnvAccumulators, EnvFeed, StepResult};
use super::step::is_watched;
use crate::data::SlotNumbers;
use crate::env::{
    EnvId, EnvPool, EnvStream, Experiment, GradReport, HostModel, LoadedData, SeedSlots, Slot, StepStatus, TrainMetrics,
};
use crate::health::Failure;
use crate::scenario::OnFossilize;
use crate::seed::{GradientSums, trains};
use crate::torch::TorchError;

/// Reduces what the training batches left, on the device.
pub fn reduce_sums(
    mut envs: Query<(
        &EnvId,
        &StepStatus,
        &mut EnvStream,
        (&mut EnvFeed, &mut EnvAccumulators),
    )>,
    pool: Res<EnvPool>,
) -> Result<(), Failure> {
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
        &mut HostModel,
        &mut SeedSlots,
        &mut TrainMetrics,
        &mut GradReport,
    )>,
    data: Res<LoadedData>,
    experiment: Res<Experiment>,
) {
    let samples = data.feed.train_samples() as f64;
    let on_fossilize = experiment.scenario.lifecycle.on_fossilize;
    for (result, mut host, mut slots, mut train, mut gradients) in &mut envs {
        let Some(numbers) = &result.0 else { continue };
        *train = TrainMetrics {
            loss: numbers.train_loss(),
            accuracy_percent: 100.0 * numbers.correct as f64 / samples,
            nonfinite_batches: numbers.nonfinite_batches,
            skipped_updates: numbers.skipped_updates,
        };
        let params = host.0.get().params();
        gradients.host = GradientSums {
            sum_squares: numbers.host_gradient_square_sum,
            tensors: params.trainable().len() as u32,
            elements: params.count(),
            ..GradientSums::default()
        };
        gradients.nonfinite_streaks = numbers.slots.iter().map(|sums| sums.nonfinite as u32).collect();
        let slots = slots.0.iter_mut().zip(&numbers.slots);
        gradients.seeds = slots
            .map(|(slot, sums)| seed_gradients(slot, sums, on_fossilize))
            .collect();
    }
}

/// `None` for a seed whose gradients were not sampled.
fn seed_gradients(slot: &mut Slot, sums: &SlotNumbers, on_fossilize: OnFossilize) -> Option<GradientSums> {
    let seed = slot.record.as_ref()?;
    let is_sampled = is_watched(seed) && trains(seed.stage, seed.alpha.mode(), on_fossilize);
    let module = slot.module.as_mut().filter(|_| is_sampled)?;
    Some(GradientSums {
        sum_squares: sums.gradient_square_sum,
        vanishing: sums.vanishing as u32,
        exploding: sums.exploding as u32,
        tensors: module.get().params().count() as u32,
        elements: seed.params(),
    })
}
