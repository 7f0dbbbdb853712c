//! A pass under `attribution.time_budget_ms`: between two chunks, what the rest has no time for is given up.

use std::time::Duration;

use bevy_platform::cell::SyncCell;
use smallvec::SmallVec;

use super::ValPlan;
use crate::data::{Accumulators, Batch};
use crate::health::Failure;
use crate::host::FoldedHost;
use crate::scenario::RequiredMasks;
use crate::validation::coalition_tree::{CoalitionTree, LiveSlot};
use crate::validation::limits::{Progress, affordable};

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

impl ValPlan {
    /// Before a chunk: gives up the least important masks, as many as the samples that are left have no time for at the pace
    /// so far, but none that is `required`. Their sums over the samples so far count for nothing.
    ///
    /// In: the time that the present batch has taken so far and that of the whole pass; the network that is evaluated.
    ///
    /// # Errors
    /// libtorch's.
    pub(super) fn narrow(
        &mut self,
        (elapsed, budget): (Duration, Duration),
        required: RequiredMasks,
        (host, live): (&dyn FoldedHost, &[LiveSlot]),
        sums: &mut Accumulators,
    ) -> Result<(), Failure> {
        let (Some(plan), Some(tree)) = (&mut self.plan, &mut self.tree) else {
            return Ok(());
        };
        let (elapsed, planned) = (self.elapsed + elapsed, plan.coalitions.masks.len());
        let progress = self.course.progress(elapsed);
        let cost = |count: usize| {
            let tree = CoalitionTree::new(&plan.most_important(count, required), live);
            tree.flops(host.op_costs(), live).tree
        };
        let most = affordable(progress, budget, planned, cost);
        if most == planned {
            return Ok(());
        }
        let kept = plan.limit(most, required);
        if kept.len() == planned {
            return Ok(());
        }
        let narrower = CoalitionTree::new(&plan.coalitions, live);
        let mut from = vec![0; kept.len()];
        for (&old, &place) in kept.iter().zip(narrower.places()) {
            from[place] = self.places[old];
        }
        sums.keep_val(&from)?;
        let (before, after) = [&*tree.get(), &narrower]
            .map(|tree| tree.flops(host.op_costs(), live))
            .into();
        self.flops = self
            .flops
            .with_rest(before, after, (progress.left, self.course.samples));
        self.places = SmallVec::from_slice(narrower.places());
        *tree = SyncCell::new(narrower);
        self.course.mark = (self.course.done, elapsed);
        Ok(())
    }
}
