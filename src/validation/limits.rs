//! Fewer configurations than were planned: which are given up first, and which never.
//!
//! Two settings bite: `attribution.max_configs` before the pass, `attribution.time_budget_ms` between its chunks. In: a plan,
//! what the reward cannot do without, and how many masks there may be. Out: the plan with fewer masks, those given up in
//! [`AttributionPlan::dropped`], and the sampled orders of which all coalitions are left.

use std::time::Duration;

use super::plan::{AttributionPlan, CoalitionPlan, all_on, prefixes};
use crate::scenario::RequiredMasks;

/// What a mask tells, the most important first.
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

    /// Whether the reward cannot do without a mask, whatever its rank: one may be several things at once. With a single
    /// player nobody is on where the player is off, and of two the other one is alone.
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
        let others = mask & !self.fossilized;
        let is_held = others & self.held == others && others.count_ones() <= 1;
        mask & self.fossilized == self.fossilized && is_held
    }

    /// Positions of the masks, the most important first: what is required, then by what a mask tells, then as planned. With
    /// the number of those that are required.
    fn by_importance(&self, required: RequiredMasks) -> (Vec<usize>, usize) {
        let masks = &self.coalitions.masks;
        let mut order: Vec<usize> = (0..masks.len()).collect();
        order.sort_by_key(|&k| (!self.is_required(masks[k], required), self.rank(masks[k])));
        let fewest = masks.iter().filter(|&&mask| self.is_required(mask, required)).count();
        (order, fewest)
    }

    /// What is evaluated if only the `count` most important masks are, or as many as are `required`.
    pub(super) fn most_important(&self, count: usize, required: RequiredMasks) -> CoalitionPlan {
        let kept = self.kept(count, required);
        CoalitionPlan {
            players: self.coalitions.players.clone(),
            masks: kept.into_iter().map(|k| self.coalitions.masks[k]).collect(),
        }
    }

    /// Their positions, ascending.
    fn kept(&self, count: usize, required: RequiredMasks) -> Vec<usize> {
        let (mut kept, fewest) = self.by_importance(required);
        kept.truncate(count.max(fewest));
        kept.sort_unstable();
        kept
    }

    /// Keeps the `most` most important masks, in their order, and what is `required` in any case. Returns which positions are
    /// left.
    pub fn limit(&mut self, most: usize, required: RequiredMasks) -> Vec<usize> {
        let kept = self.kept(most, required);
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

/// How far a pass has come, and what it has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Samples evaluated since the plan was last changed, and the time that they took.
    pub recent: (u64, Duration),
    /// Samples that are left.
    pub left: u64,
    /// Of the whole pass.
    pub elapsed: Duration,
}

/// How many of `masks` the rest of a pass has time for, at least 1; all of them as long as no sample has been evaluated.
/// `cost` of that many masks, the most important first, in any unit: it rises with their number.
pub fn affordable(progress: Progress, budget: Duration, masks: usize, cost: impl Fn(usize) -> u64) -> usize {
    let (samples, time) = progress.recent;
    if samples == 0 || progress.left == 0 {
        return masks;
    }
    let left = budget.saturating_sub(progress.elapsed).as_secs_f64();
    let seconds_per_sample = time.as_secs_f64() / samples as f64;
    let all = cost(masks).max(1) as f64;
    let fits = |count: usize| {
        let share = if count == masks { 1.0 } else { cost(count) as f64 / all };
        seconds_per_sample * share * progress.left as f64 <= left
    };
    // The largest number that fits, by halves: the costs rise with it.
    let (mut fewest, mut most) = (1, masks.max(1));
    while fewest < most {
        let middle = (fewest + most).div_ceil(2);
        match fits(middle) {
            true => fewest = middle,
            false => most = middle - 1,
        }
    }
    fewest
}

#[cfg(test)]
mod tests;
