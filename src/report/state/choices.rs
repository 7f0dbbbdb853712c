//! Choices by place and time, with their results: operations by round and by step of an episode, and by slot and blueprint the
//! number of planted seeds and the worth of the committed ones.

use std::collections::{BTreeMap, VecDeque};

use super::episodes::{DecisionPoint, EpisodeTrace};
use crate::growth::{LifecycleOp, SlotId};
use crate::report::thinned::Thinned;
use crate::telemetry::{EnvContext, Event, Payload, SeedEnd, SeedLife};

/// Steps of an episode that are distinguished. Later ones count as the last.
const STEPS: usize = 256;
/// Rounds whose operations are kept.
const ROUNDS: usize = 200;
/// Seeds that are kept after they ended without a commit.
const UNCOMMITTED: usize = 24;

/// The number of times that each operation was carried out, in the order of their codes.
pub type OpCounts = [u64; LifecycleOp::ALL.len()];

/// The seeds of one blueprint in one slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planted {
    /// Seeds planted.
    pub germinated: u64,
    /// Seeds committed.
    pub committed: u64,
    /// Seeds that were removed.
    pub pruned: u64,
    /// Number of the committed seeds that were measured, and the sum of their contributions, points.
    pub contributions: (u64, f64),
}

impl Planted {
    /// Mean contribution of a committed seed at the end of its episode, points; `None` where none was measured.
    pub fn contribution(&self) -> Option<f64> {
        let (seeds, sum) = self.contributions;
        (seeds > 0).then(|| sum / seeds as f64)
    }
}

/// Choices of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// By slot and blueprint: seeds of episodes that have ended.
    pub planted: BTreeMap<(SlotId, String), Planted>,
    /// Seeds of ended episodes that were not committed, the newest first: where each ended, its life, and the decision of that step.
    pub uncommitted: VecDeque<(EnvContext, SeedLife, Option<DecisionPoint>)>,
    /// By step of an episode, from the first: operations that were carried out.
    pub by_step: Vec<OpCounts>,
    /// By round, thinned.
    pub by_round: Thinned<(u32, OpCounts), ROUNDS>,
    round: OpCounts,
}

impl Choices {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        match (&event.payload, event.step) {
            (Payload::Decision(decision), Some(step)) => {
                // A refused operation counts as a wait, as it does for the run.
                let refused = decision.blocked.as_ref();
                let op = refused.map_or(decision.op, |_| LifecycleOp::Wait);
                let place = (step.saturating_sub(1) as usize).min(STEPS - 1);
                if self.by_step.len() <= place {
                    self.by_step.resize(place + 1, OpCounts::default());
                }
                self.by_step[place][op.code()] += 1;
                self.round[op.code()] += 1;
            }
            (Payload::RoundFinished(_), _) => {
                let counts = std::mem::take(&mut self.round);
                self.by_round.push((event.round.unwrap_or_default(), counts));
            }
            _ => {}
        }
    }

    /// Takes the seeds of an episode that has ended.
    pub fn take(&mut self, trace: &EpisodeTrace) {
        for seed in &trace.seeds {
            let planted = self
                .planted
                .entry((seed.slot, seed.planted.blueprint.clone()))
                .or_default();
            planted.germinated += 1;
            let mut at = trace.at;
            match &seed.end {
                SeedEnd::Open => {}
                SeedEnd::Committed(_) => {
                    planted.committed += 1;
                    if let Some(contribution) = seed.worth.contribution {
                        planted.contributions.0 += 1;
                        planted.contributions.1 += contribution.points;
                    }
                }
                SeedEnd::Pruned { step, .. } => {
                    planted.pruned += 1;
                    at.step = *step;
                }
            }
            if !matches!(seed.end, SeedEnd::Committed(_)) {
                let last = trace.steps.iter().find(|point| point.step == at.step);
                let decision = last.and_then(|point| point.decision.clone());
                self.uncommitted.push_front((at, seed.clone(), decision));
                self.uncommitted.truncate(UNCOMMITTED);
            }
        }
    }
}
