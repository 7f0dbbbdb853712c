//! Fewer configurations than were planned: which are given up first, and which never.
//!
//! In: a plan, what the reward cannot do without, and how many masks there may be (`attribution.max_configs`). Out: the plan
//! with fewer masks, those given up in [`AttributionPlan::dropped`], and the sampled orders of which all coalitions are left.

use super::plan::{AttributionPlan, all_on, prefixes};
use crate::scenario::RequiredMasks;

/// What a mask measures, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    AllOn,
    EachOff,
    NoneOn,
    Committed,
    Solo,
    Pair,
    Rest,
}

impl AttributionPlan {
    fn rank(&self, mask: u64) -> Rank {
        match mask {
            _ if mask == self.all() => Rank::AllOn,
            _ if self.is_each_off(mask) => Rank::EachOff,
            0 => Rank::NoneOn,
            _ if self.is_committed(mask) => Rank::Committed,
            _ if mask.count_ones() == 1 => Rank::Solo,
            _ if mask.count_ones() == 2 => Rank::Pair,
            _ => Rank::Rest,
        }
    }

    /// Whether the reward needs a mask, at any rank: one mask may have several roles. With one player, the mask without it
    /// is empty; with two, the mask without one holds the other alone.
    fn is_required(&self, mask: u64, required: RequiredMasks) -> bool {
        mask == self.all()
            || required.each_off && (mask == 0 || self.is_each_off(mask))
            || required.committed && self.is_committed(mask)
    }

    fn all(&self) -> u64 {
        all_on(self.coalitions.players.len())
    }

    fn is_each_off(&self, mask: u64) -> bool {
        (self.all() & !mask).count_ones() == 1
    }

    /// The committed players alone, or with a held one.
    fn is_committed(&self, mask: u64) -> bool {
        let others = mask & !self.committed;
        let is_held = others & self.held == others && others.count_ones() <= 1;
        mask & self.committed == self.committed && is_held
    }

    /// Positions of the masks, the most important first: what is required, then by what a mask measures, then as planned. With
    /// the number of those that are required.
    fn by_importance(&self, required: RequiredMasks) -> (Vec<usize>, usize) {
        let masks = &self.coalitions.masks;
        let mut order: Vec<usize> = (0..masks.len()).collect();
        order.sort_by_key(|&k| (!self.is_required(masks[k], required), self.rank(masks[k])));
        let fewest = masks.iter().filter(|&&mask| self.is_required(mask, required)).count();
        (order, fewest)
    }

    /// Keeps the `most` most important masks, in their order, and what is `required` in any case. Returns which positions are
    /// left.
    pub fn limit(&mut self, most: usize, required: RequiredMasks) -> Vec<usize> {
        let (mut kept, fewest) = self.by_importance(required);
        kept.truncate(most.max(fewest));
        kept.sort_unstable();
        self.keep(&kept);
        kept
    }

    fn keep(&mut self, kept: &[usize]) {
        let masks = std::mem::take(&mut self.coalitions.masks);
        let is_kept = |k: usize| kept.binary_search(&k).is_ok();
        for (k, &mask) in masks.iter().enumerate() {
            match is_kept(k) {
                true => self.coalitions.masks.push(mask),
                false => self.dropped.push(mask),
            }
        }
        let measured = &self.coalitions.masks;
        let is_measured = |order: &Vec<usize>| prefixes(order).all(|mask| measured.contains(&mask));
        // A pair counts as a whole: it is one draw of the estimate.
        let pairs = self.permutations.chunks_exact(2);
        let whole = pairs.filter(|pair| pair.iter().all(is_measured));
        self.permutations = whole.flatten().cloned().collect();
    }
}

#[cfg(test)]
mod tests;
