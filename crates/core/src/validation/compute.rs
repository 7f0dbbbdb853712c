//! What an episode takes to compute, counted from the declared costs of host and seeds.

use bevy_ecs::prelude::*;

use super::pass::ValPlan;
use crate::env::{EpisodeStats, Experiment, HostModel, LoadedData, SeedSlots, StepStatus};
use crate::training::macs_of_training;

/// Adds the step's training batches, and its validation batches under all configurations. No seed has changed since they
/// were played. The test part is not counted: nothing learns from it.
pub fn count_compute(
    mut envs: Query<(&StepStatus, &ValPlan, &mut HostModel, &mut SeedSlots, &mut EpisodeStats)>,
    experiment: Res<Experiment>,
    data: Res<LoadedData>,
) {
    for (status, plan, mut host, mut slots, mut stats) in &mut envs {
        if !status.is_active() {
            continue;
        }
        let training = macs_of_training(host.0.get().op_costs(), &mut slots.0, experiment.isolation());
        stats.compute.train_macs += training * data.feed.train_samples() as u64;
        stats.compute.val_macs += plan.macs * data.feed.val_samples() as u64;
    }
}
