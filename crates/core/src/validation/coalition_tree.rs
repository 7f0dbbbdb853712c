//! The shape of the coalition tree, with each block that splits, known from the plan before any tensor exists.
//!
//! A *block* is the batch once more, for a set of configurations that agree on all slots passed so far; blocks are
//! stacked along the batch dimension. At a player's slot a block turns into one for the configurations with the seed
//! off, one for those with it on, or both. Every distinct prefix of a configuration is thus computed once.

use tch::Device;

use super::plan::CoalitionPlan;
use crate::growth::AlphaAlgorithm;
use crate::host::{HostError, OpCost};
use crate::seed::{BlendError, SeedInstance};
use crate::torch::TorchError;

/// Rows that are run at a time on a CPU, so that a segment's features stay in its caches.
const CPU_ROWS: usize = 1024;
/// The same limit on CUDA, where memory decides.
const CUDA_ROWS: usize = 8192;

/// A seed on the output path.
pub struct LiveSlot<'a> {
    /// Policy index of the slot.
    pub slot: usize,
    /// Host ops before the slot.
    pub boundary: usize,
    /// Module and gate of the seed.
    pub instance: &'a SeedInstance,
    /// Amplitude in [0, 1].
    pub alpha: f64,
    /// The operator by which the seed's residual enters the host.
    pub algorithm: AlphaAlgorithm,
}

/// The reason why the configurations could not be evaluated.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CoalitionError {
    /// The host refused its input.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A seed could not be blended.
    #[error(transparent)]
    Blend(#[from] BlendError),
    /// libtorch failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl From<tch::TchError> for CoalitionError {
    fn from(error: tch::TchError) -> Self {
        Self::Torch(error.into())
    }
}

/// Consecutive blocks that are made from consecutive blocks in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRun {
    pub from: usize,
    pub to: usize,
    pub count: usize,
    /// True if the seed is on; otherwise the features stay unchanged.
    pub blended: bool,
}

/// Blocks that arrive at one slot, and those that leave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// Policy index of the slot.
    pub slot: usize,
    /// Blocks that arrive.
    pub arriving: usize,
    /// Leading blocks on which the seed runs: those with a configuration that has it on.
    pub seed_blocks: usize,
    /// Blocks that leave.
    pub leaving: usize,
    pub runs: Vec<BlockRun>,
}

impl Stop {
    /// Returns whether all blocks are blended where they are.
    pub fn is_uniform(&self) -> bool {
        let all = BlockRun {
            from: 0,
            to: 0,
            count: self.arriving,
            blended: true,
        };
        self.runs == [all]
    }
}

/// A compiled plan. It depends on the seeds of the slots, so a new plan is compiled again.
#[derive(Debug)]
pub struct CoalitionTree {
    pub(super) stops: Vec<Stop>,
    /// The block that each configuration leaves the head in, in plan order. Kept on the host: nothing on a device is put
    /// into another order.
    places: Vec<usize>,
}

impl CoalitionTree {
    /// Compiles `plan` for the seeds on the output path, in execution order. Each player is one of them. The others
    /// stay on in every configuration.
    ///
    pub fn new(plan: &CoalitionPlan, slots: &[LiveSlot]) -> Self {
        let players: Vec<Option<usize>> = slots
            .iter()
            .map(|slot| plan.players.iter().position(|&player| player == slot.slot))
            .collect();
        let is_on = |configuration: usize, player: usize| plan.masks[configuration] >> player & 1 == 1;
        let mut blocks: Vec<Vec<usize>> = vec![(0..plan.masks.len()).collect()];
        let mut stops = Vec::with_capacity(slots.len());
        for (position, (slot, player)) in slots.iter().zip(&players).enumerate() {
            let next = players[position + 1..].iter().flatten().next().copied();
            let needs_next = |block: &[usize]| next.is_none_or(|next| block.iter().any(|&k| is_on(k, next)));
            let (stop, leaving) = match *player {
                Some(player) => split(slot.slot, &blocks, |k| is_on(k, player), needs_next),
                None => split(slot.slot, &blocks, |_| true, needs_next),
            };
            stops.push(stop);
            blocks = leaving;
        }
        let mut places = vec![0; plan.masks.len()];
        for (place, block) in blocks.iter().enumerate() {
            for &configuration in block {
                places[configuration] = place;
            }
        }
        Self { stops, places }
    }

    /// The block of each configuration among those that [`coalition_forward`](super::coalition_forward) returns, in plan order.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// Largest number of blocks that are stacked at a time.
    pub fn widest(&self) -> usize {
        self.stops.iter().map(|stop| stop.leaving).max().unwrap_or(1)
    }

    /// Samples to evaluate at a time: the largest power of two whose stacked rows stay within the device's limit for one
    /// pass; at least 1.
    pub fn chunk_samples(&self, device: Device) -> i64 {
        let rows = if device.is_cuda() { CUDA_ROWS } else { CPU_ROWS };
        let samples = (rows / self.widest()).max(1);
        1 << samples.ilog2()
    }

    /// Multiply-accumulates per sample, from the costs of the host's ops and of the seeds for which the tree was compiled.
    pub fn macs(&self, ops: &[OpCost], slots: &[LiveSlot]) -> u64 {
        let host_macs = |range: std::ops::Range<usize>| ops[range].iter().map(|op| op.macs).sum::<u64>();
        let (mut tree, mut done, mut blocks) = (0, 0, 1);
        for (stop, slot) in self.stops.iter().zip(slots) {
            let seed = slot.instance.macs(ops[slot.boundary - 1].positions);
            tree += blocks * host_macs(done..slot.boundary) + stop.seed_blocks as u64 * seed;
            done = slot.boundary;
            blocks = stop.leaving as u64;
        }
        tree + blocks * host_macs(done..ops.len())
    }
}

/// Splits blocks by whether their configurations have the seed on. Blocks on which the next player's seed must run
/// come first, so that it can be run on them alone; otherwise all off blocks precede all on blocks, which makes the
/// fewest runs.
fn split(
    slot: usize,
    blocks: &[Vec<usize>],
    is_on: impl Fn(usize) -> bool,
    needs_next: impl Fn(&[usize]) -> bool,
) -> (Stop, Vec<Vec<usize>>) {
    let mut leaving: Vec<(usize, bool, Vec<usize>)> = Vec::new();
    for blended in [false, true] {
        for (from, block) in blocks.iter().enumerate() {
            let part: Vec<usize> = block.iter().copied().filter(|&k| is_on(k) == blended).collect();
            if !part.is_empty() {
                leaving.push((from, blended, part));
            }
        }
    }
    leaving.sort_by_key(|(_, _, block)| !needs_next(block));
    let mut runs: Vec<BlockRun> = Vec::new();
    for (to, &(from, blended, _)) in leaving.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.blended == blended && run.from + run.count == from => run.count += 1,
            _ => runs.push(BlockRun {
                from,
                to,
                count: 1,
                blended,
            }),
        }
    }
    let stop = Stop {
        slot,
        arriving: blocks.len(),
        seed_blocks: blocks.iter().filter(|block| block.iter().any(|&k| is_on(k))).count(),
        leaving: leaving.len(),
        runs,
    };
    (stop, leaving.into_iter().map(|(_, _, block)| block).collect())
}
