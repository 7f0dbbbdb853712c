//! The decisions of controllers: means over the episodes that one of them played, and its commits by slot.

use std::collections::BTreeMap;

use serde::Serialize;

use super::EpisodeOutcome;
use super::statistics::{mean, mean_of};
use crate::env::Decisions;
use crate::growth::SlotId;

/// Means of an episode of one controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecisionSummary {
    /// Seeds planted.
    pub germinated: f64,
    /// Seeds committed.
    pub committed: f64,
    /// Seeds removed by the controller's order.
    pub pruned: f64,
    /// Seeds removed by anything else.
    pub lost: f64,
    /// Share of the episodes in which nothing was committed, 0 to 1.
    pub without_commit: f64,
    /// Step of the first germination, from 1, over the episodes with one; `None` if there is no such episode.
    pub first_germination: Option<f64>,
    /// Step of the first commit, likewise.
    pub first_commit: Option<f64>,
    /// Step of the last commit, likewise.
    pub last_commit: Option<f64>,
}

impl DecisionSummary {
    /// Returns the means, or `None` without episodes or if one has no decisions recorded.
    pub fn of(episodes: &[EpisodeOutcome]) -> Option<Self> {
        let all = decisions_of(episodes)?;
        let count = |of: fn(&Decisions) -> u32| -> f64 {
            let counts: Vec<f64> = all.iter().map(|decisions| of(decisions).into()).collect();
            mean(&counts)
        };
        let step = |of: fn(&Decisions) -> Option<u32>| -> Option<f64> {
            let steps = all.iter().filter_map(|decisions| of(decisions));
            mean_of(steps.map(f64::from))
        };
        Some(Self {
            germinated: count(|decisions| decisions.germinated),
            committed: count(|decisions| decisions.committed),
            pruned: count(|decisions| decisions.pruned),
            lost: count(|decisions| decisions.lost),
            without_commit: count(|decisions| u32::from(decisions.committed == 0)),
            first_germination: step(|decisions| decisions.first_germination),
            first_commit: step(|decisions| decisions.first_commit),
            last_commit: step(|decisions| decisions.last_commit),
        })
    }
}

/// Blueprints that a controller committed in a slot, and the number of episodes for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlotCommits {
    /// The slot.
    pub slot: SlotId,
    /// Episodes by blueprint id.
    pub blueprints: BTreeMap<String, u32>,
    /// Episodes that ended without a commit in the slot.
    pub nothing: u32,
}

impl SlotCommits {
    /// One entry a slot, in their order; `None` as for [`DecisionSummary::of`].
    pub fn by_slot(slots: &[SlotId], episodes: &[EpisodeOutcome]) -> Option<Vec<Self>> {
        let all = decisions_of(episodes)?;
        let of_slot = |&slot: &SlotId| {
            let mut commits = Self {
                slot,
                blueprints: BTreeMap::new(),
                nothing: 0,
            };
            for decisions in &all {
                match decisions.blueprints.get(&slot) {
                    Some(blueprint) => *commits.blueprints.entry(blueprint.clone()).or_default() += 1,
                    None => commits.nothing += 1,
                }
            }
            commits
        };
        Some(slots.iter().map(of_slot).collect())
    }
}

/// The decisions of all episodes; `None` if there are no episodes or one has none recorded.
fn decisions_of(episodes: &[EpisodeOutcome]) -> Option<Vec<&Decisions>> {
    let decisions: Option<Vec<_>> = episodes.iter().map(|outcome| outcome.decisions.as_ref()).collect();
    decisions.filter(|decisions| !decisions.is_empty())
}

#[cfg(test)]
mod tests;
