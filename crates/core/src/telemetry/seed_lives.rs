//! The lives of seeds, folded from the events about them: the one account that the live state, pages and tables have of them.
//! The ends of those that were not committed are counted only by age and name, so memory doesn't grow with their number.

use std::collections::BTreeMap;

use super::encoding::Num;
use super::event::{EnvContext, Event, Payload};
use super::payload::{EndReason, GateCheckRow, SeedCommitted, SeedGateEvaluated, SeedGerminated, SeedPruned};
use crate::growth::{GateLevel, PruneReason, SeedStage, SlotId};

/// Accuracy with a seed minus accuracy without it, in points, with its paired standard error where it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// Percentage points.
    pub points: f64,
    /// Paired, percentage points.
    pub standard_error: Option<f64>,
}

/// Measurements of a seed's worth; absent until measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeedWorth {
    /// The newest contribution; that of its commit where no other was measured.
    pub contribution: Option<Contribution>,
    /// Shapley value from the last `shapley` event of its episode, in points.
    pub shapley: Option<f64>,
}

/// The end of a seed.
#[derive(Clone, Debug, PartialEq)]
pub enum SeedEnd {
    /// It is still in its slot.
    Open,
    /// It is a part of the network for good.
    Committed(SeedCommitted),
    /// It was removed.
    Pruned {
        /// The step of the end.
        step: u32,
        /// The event.
        data: SeedPruned,
    },
}

/// The life of a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedLife {
    /// Id of the seed.
    pub id: String,
    /// Position of its env when it was planted.
    pub at: EnvContext,
    /// The slot of the seed.
    pub slot: SlotId,
    /// The event of its germination.
    pub planted: SeedGerminated,
    /// Every stage that it entered, and in which step.
    pub stages: Vec<(u32, SeedStage)>,
    /// The end of the seed.
    pub end: SeedEnd,
    /// Worth as last measured.
    pub worth: SeedWorth,
    /// The last gate that it reached and the first check that failed there; `None` where it passed.
    pub refused: Option<(GateLevel, GateCheckRow)>,
}

impl SeedLife {
    /// Takes the next event of an env into the lives of its seeds, which are in the order of their germination.
    pub fn fold(lives: &mut Vec<Self>, event: &Event) {
        match (&event.payload, &event.seed_id) {
            (Payload::SeedGerminated(planted), Some(id)) => {
                // A round that is played again after a resume plants its seeds again.
                lives.retain(|life| life.id != *id);
                lives.extend(Self::begin(event, planted));
            }
            (Payload::CounterfactualMatrix(matrix), _) => {
                for (player, id) in matrix.seed_ids.iter().enumerate() {
                    if let (Some(life), Some(points)) = (find(lives, id), matrix.contribution(player)) {
                        let standard_error = matrix.contribution_error(player);
                        life.worth.contribution = Some(Contribution { points, standard_error });
                    }
                }
            }
            (Payload::Shapley(shapley), _) => {
                for (id, value) in shapley.seed_ids.iter().zip(&shapley.values) {
                    if let Some(life) = find(lives, id) {
                        life.worth.shapley = Some(value.mean.0);
                    }
                }
            }
            (payload, Some(id)) => {
                if let Some(life) = find(lives, id) {
                    life.take(event.step.unwrap_or_default(), payload);
                }
            }
            _ => {}
        }
    }

    fn begin(event: &Event, planted: &SeedGerminated) -> Option<Self> {
        let at = event.context()?;
        Some(Self {
            id: event.seed_id.clone()?,
            at,
            slot: event.slot?,
            planted: planted.clone(),
            stages: vec![(at.step, SeedStage::Germinated)],
            end: SeedEnd::Open,
            worth: SeedWorth::default(),
            refused: None,
        })
    }

    fn take(&mut self, step: u32, payload: &Payload) {
        match payload {
            // Changes after a prune are the slot's.
            Payload::SeedStageChanged(change) if change.to.is_occupied() => self.stages.push((step, change.to)),
            Payload::SeedGateEvaluated(gate) => {
                let failed = gate.checks.iter().find(|check| !check.passed);
                self.refused = failed.map(|check| (gate.gate, check.clone()));
            }
            Payload::SeedCommitted(seed) => {
                if self.commit_step().is_none() {
                    self.stages.push((step, SeedStage::Committed));
                }
                let measured = seed.contribution.map(|points| Contribution {
                    points: points.0,
                    standard_error: None,
                });
                self.worth.contribution = self.worth.contribution.or(measured);
                self.end = SeedEnd::Committed(seed.clone());
            }
            Payload::SeedPruned(seed) => {
                let data = seed.clone();
                self.end = SeedEnd::Pruned { step, data };
            }
            _ => {}
        }
    }

    /// The step in which it was committed, if it was.
    pub fn commit_step(&self) -> Option<u32> {
        let commit = self.stages.iter().find(|(_, stage)| *stage == SeedStage::Committed);
        commit.map(|&(step, _)| step)
    }

    /// The stage at its end, or now.
    pub fn last_stage(&self) -> SeedStage {
        match &self.end {
            SeedEnd::Pruned { data, .. } => data.stage,
            SeedEnd::Open | SeedEnd::Committed(_) => self.stages.last().map_or(SeedStage::Dormant, |&(_, stage)| stage),
        }
    }
}

fn find<'a>(lives: &'a mut [SeedLife], id: &str) -> Option<&'a mut SeedLife> {
    lives.iter_mut().find(|life| life.id == id)
}

/// The seeds of a round, by env.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeedLives(BTreeMap<u32, Vec<SeedLife>>);

impl SeedLives {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        if let Some(env) = event.env {
            SeedLife::fold(self.0.entry(env).or_default(), event);
        }
    }

    /// The seeds of an env, in the order of their germination.
    pub fn of(&self, env: u32) -> &[SeedLife] {
        self.0.get(&env).map_or(&[][..], Vec::as_slice)
    }

    /// Takes all seeds, in order of germination, and begins the next round without any.
    pub fn take(&mut self) -> Vec<SeedLife> {
        let mut lives: Vec<SeedLife> = std::mem::take(&mut self.0).into_values().flatten().collect();
        lives.sort_by_key(|life| life.at.step);
        lives
    }
}

/// The number of seeds that ended at each age, in steps since germination.
pub type Ages = BTreeMap<u32, u64>;

/// The refusals of a gate's check: their number and their distance from the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refusals {
    /// Refusals.
    pub count: u64,
    /// The gate's threshold; absent for a check without one.
    pub asked: Option<Num>,
    /// The most that a refused seed had; absent if that was never measured.
    pub most: Option<Num>,
}

/// The ends of the seeds that were not committed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeedEnds {
    /// Seeds planted.
    pub germinated: u64,
    /// Seeds by the stage in which they ended and the reason for their prune. `None`: the episode ended.
    pub ends: BTreeMap<(SeedStage, Option<PruneReason>), Ages>,
    /// Refusals by gate and name of the check.
    pub refusals: BTreeMap<(GateLevel, String), Refusals>,
}

impl SeedEnds {
    /// Takes the next event; `lives`: the seeds of its env, with it.
    pub(super) fn apply(&mut self, event: &Event, lives: &[SeedLife]) {
        match &event.payload {
            Payload::SeedGerminated(_) => self.germinated += 1,
            Payload::SeedGateEvaluated(gate) => self.count_refusals(gate),
            Payload::SeedPruned(seed) => self.end((seed.stage, Some(seed.reason)), seed.age_steps),
            Payload::EpisodeFinished(episode) if !matches!(episode.end, EndReason::Stopped | EndReason::Failed) => {
                for life in lives.iter().filter(|life| life.end == SeedEnd::Open) {
                    let age = episode.length.saturating_sub(life.at.step);
                    self.end((life.last_stage(), None), age);
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
