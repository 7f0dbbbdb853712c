//! What the training batches of a step added up: reduced on the device, read with everything else, then named.

use bevy_ecs::prelude::*;

use super::components::{EnvAccumulators, EnvFeed, StepResult};
use super::pack::SlotNumbers;
use super::step::is_measured;
use crate::env::{
    EnvId, EnvPool, EnvStream, EpisodeStats, Experiment, GradReport, LoadedData, SeedSlots, SeedTraining, StepStatus,
    TrainMetrics,
};
use crate::health::Failure;
use crate::scenario::OnCommit;
use crate::seed::{SeedRecord, trains};
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
