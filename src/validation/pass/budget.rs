//! A pass under `attribution.time_budget_ms`: between two chunks, what the rest has no time for is given up.

use std::time::Duration;

use crate::data::{Accumulators, Batch};
use crate::health::Failure;
use crate::host::FoldedHost;
use crate::scenario::RequiredMasks;
use crate::validation::coalition_tree::{CoalitionTree, LiveSlot, ValidationFlops};
use crate::validation::limits::{Progress, affordable};
use crate::validation::plan::AttributionPlan;

/// How far the step's pass has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    /// Of the whole pass.
    samples: u64,
    done: u64,
    /// Samples that were done, and the time that had passed, when masks were last given up.
    mark: (u64, Duration),
}

impl Course {
    /// At the start of a pass over `batches`.
    pub(super) fn of(batches: &[Batch]) -> Self {
        Self {
            samples: batches.iter().map(|batch| batch.n as u64).sum(),
            ..Self::default()
        }
    }

    /// So many samples more are evaluated.
    pub(super) fn advance(&mut self, samples: i64) {
        self.done += samples.unsigned_abs();
    }

    fn progress(&self, elapsed: Duration) -> Progress {
        Progress {
            recent: (self.done - self.mark.0, elapsed.saturating_sub(self.mark.1)),
            left: self.samples.saturating_sub(self.done),
            elapsed,
        }
    }
}

/// What a pass evaluates, and the forward cost of a sample, which both change when masks are given up.
pub(super) struct Evaluated<'a> {
    pub plan: &'a mut AttributionPlan,
    pub tree: &'a mut CoalitionTree,
    pub flops: &'a mut ValidationFlops,
}

impl Course {
    /// Before a chunk: gives up the least important masks, as many as the samples that are left have no time for at the pace
    /// so far, but none that is `required`. Their sums over the samples so far count for nothing. Returns whether any were.
    ///
    /// In: the time that the pass has taken so far, and that it may take; the network that is evaluated.
    ///
    /// # Errors
    /// libtorch's.
    pub(super) fn narrow(
        &mut self,
        (elapsed, budget): (Duration, Duration),
        required: RequiredMasks,
        evaluated: Evaluated,
        (host, live): (&dyn FoldedHost, &[LiveSlot]),
        sums: &mut Accumulators,
    ) -> Result<bool, Failure> {
        let Evaluated { plan, tree, flops } = evaluated;
        let (progress, planned) = (self.progress(elapsed), plan.coalitions.masks.len());
        let cost = |count: usize| {
            let tree = CoalitionTree::new(&plan.most_important(count, required), live);
            tree.flops(host.op_costs(), live).tree
        };
        let most = affordable(progress, budget, planned, cost);
        if most == planned {
            return Ok(false);
        }
        let kept = plan.limit(most, required);
        if kept.len() == planned {
            return Ok(false);
        }
        let narrower = CoalitionTree::new(&plan.coalitions, live);
        let mut from = vec![0; kept.len()];
        for (&old, &place) in kept.iter().zip(narrower.places()) {
            from[place] = tree.places()[old];
        }
        sums.keep_val(&from)?;
        let [before, after] = [&*tree, &narrower].map(|tree| tree.flops(host.op_costs(), live));
        *flops = flops.with_rest(before, after, (progress.left, self.samples));
        *tree = narrower;
        self.mark = (self.done, elapsed);
        Ok(true)
    }
}
