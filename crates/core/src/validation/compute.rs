//! What an episode takes to compute, counted from the declared costs of host and seeds.

use bevy_ecs::prelude::*;

use super::pass::ValPlan;
use crate::env::{EpisodeStats, Experiment, HostModel, LoadedData, SeedSlots, Slot, StepStatus};
use crate::host::OpCost;
use crate::seed::Isolation;
use crate::training::training_slots;

/// Cost of training, in forward passes: the backward pass takes as much again for the gradients of activations, and once more
/// for those of weights (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). Frozen weights of seeds get their gradients too.
const FORWARD_AND_BACKWARD: u64 = 3;

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

/// Multiply-accumulates of training on one sample, with the seeds that take part now. `ops`: of the host, in order. Frozen
/// ones have no gradients of weights, and of activations only behind something that learns.
pub fn macs_of_training(ops: &[OpCost], slots: &mut [Slot], isolation: Isolation) -> u64 {
    let seeds = training_slots(slots, isolation);
    let first_learning = ops.iter().position(|op| !op.is_frozen).unwrap_or(ops.len());
    let learning_from = seeds
        .first()
        .map_or(first_learning, |seed| seed.boundary.min(first_learning));
    let passes = |(index, op): (usize, &OpCost)| match op.is_frozen {
        false => FORWARD_AND_BACKWARD,
        true => 1 + u64::from(index >= learning_from),
    };
    let host: u64 = ops.iter().enumerate().map(|op| passes(op) * op.1.macs).sum();
    let seeds = seeds
        .iter()
        .map(|seed| seed.instance.macs(ops[seed.boundary - 1].positions));
    host + FORWARD_AND_BACKWARD * seeds.sum::<u64>()
}
