//! What training on a sample costs.

use super::step::training_slots;
use crate::env::Slot;
use crate::host::OpCost;
use crate::scenario::StageIsolation;

/// Of the forward pass: the backward pass takes as much again for the gradients of activations, and once more for those of
/// weights (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). Frozen weights get their gradients too.
const FORWARD_AND_BACKWARD: u64 = 3;

/// Multiply-accumulates of training on one sample, with the seeds that take part now. `ops`: of the host, in order.
pub fn macs_of_training(ops: &[OpCost], slots: &mut [Slot], isolation: &StageIsolation) -> u64 {
    let host: u64 = ops.iter().map(|op| op.macs).sum();
    let seeds = training_slots(slots, isolation);
    let seeds = seeds
        .iter()
        .map(|seed| seed.instance.macs(ops[seed.boundary - 1].positions));
    FORWARD_AND_BACKWARD * (host + seeds.sum::<u64>())
}
