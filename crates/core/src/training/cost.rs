//! What training on a sample costs.

use super::step::training_slots;
use crate::env::Slot;
use crate::host::OpCost;
use crate::scenario::StageIsolation;

/// Of the forward pass: the backward pass takes as much again for the gradients of activations, and once more for those of
/// weights (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). Frozen weights of seeds get their gradients too.
const FORWARD_AND_BACKWARD: u64 = 3;

/// Multiply-accumulates of training on one sample, with the seeds that take part now. `ops`: of the host, in order. Frozen
/// ones have no gradients of weights, and of activations only behind something that learns.
pub fn macs_of_training(ops: &[OpCost], slots: &mut [Slot], isolation: &StageIsolation) -> u64 {
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
