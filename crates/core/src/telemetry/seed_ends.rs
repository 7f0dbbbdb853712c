//! What became of the seeds of a run that were not committed: where each ended, by what, at what age, and which gates refused.
//! A part of the [live state](super::LiveState): it takes the events of seeds and episodes and is read by the summary.
//! Counts by age and name alone, so that memory does not grow with the number of seeds.

use std::collections::BTreeMap;

use super::encoding::Num;
use super::event::{Event, Payload};
use super::payload::{EpisodeEnd, SeedGateEvaluated};
use crate::growth::{GateLevel, PruneReason, SeedStage, SlotId};

/// How many seeds ended at which age, in steps since germination.
pub type Ages = BTreeMap<u32, u64>;

/// How often a check of a gate refused, and by how much.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refusals {
    /// Refusals.
    pub count: u64,
    /// What the gate asked for; absent of a check without a threshold.
    pub asked: Option<Num>,
    /// The most that a refused seed had; absent if that was never measured.
    pub most: Option<Num>,
}

/// What became of the seeds that were not committed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeedEnds {
    /// Seeds planted.
    pub germinated: u64,
    /// By the stage in which they ended, and why they were pruned; `None`: the episode was over.
    pub ends: BTreeMap<(SeedStage, Option<PruneReason>), Ages>,
    /// By gate and name of the check.
    pub refusals: BTreeMap<(GateLevel, String), Refusals>,
    /// Seeds that grow, by env and slot: their stage and the step of their germination.
    growing: BTreeMap<(u32, SlotId), (SeedStage, u32)>,
}

impl SeedEnds {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        let (env, step) = (event.env.unwrap_or_default(), event.step.unwrap_or_default());
        let place = event.slot.map(|slot| (env, slot));
        match (&event.payload, place) {
            (Payload::SeedGerminated(_), Some(place)) => {
                self.germinated += 1;
                self.growing.insert(place, (SeedStage::Germinated, step));
            }
            (Payload::SeedStageChanged(change), Some(place)) => {
                if let Some((stage, _)) = self.growing.get_mut(&place) {
                    *stage = change.to;
                }
            }
            (Payload::SeedGateEvaluated(gate), _) => self.count_refusals(gate),
            (Payload::SeedCommitted(_), Some(place)) => _ = self.growing.remove(&place),
            (Payload::SeedPruned(seed), Some(place)) => {
                self.growing.remove(&place);
                self.end((seed.stage, Some(seed.reason)), seed.age_steps);
            }
            (Payload::EpisodeFinished(episode), _) => {
                let is_over = !matches!(episode.end, EpisodeEnd::Stopped | EpisodeEnd::Failed);
                let of_env = |&(of, _): &(u32, SlotId), _: &mut (SeedStage, u32)| of == env;
                let left: Vec<_> = self.growing.extract_if(.., of_env).collect();
                for (_, (stage, germinated)) in left.into_iter().filter(|_| is_over) {
                    self.end((stage, None), episode.length.saturating_sub(germinated));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, how: (SeedStage, Option<PruneReason>), age: u32) {
        *self.ends.entry(how).or_default().entry(age).or_default() += 1;
    }

    fn count_refusals(&mut self, gate: &SeedGateEvaluated) {
        for check in gate.checks.iter().filter(|check| !check.passed) {
            let refusals = self.refusals.entry((gate.gate, check.name.clone())).or_default();
            refusals.count += 1;
            refusals.asked = check.threshold;
            let values = refusals.most.into_iter().chain(check.value);
            refusals.most = values
                .filter(|value| value.0.is_finite())
                .max_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
}

#[cfg(test)]
mod tests;
