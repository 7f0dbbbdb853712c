//! What a reward remembers between the steps of an episode: plain data, reset with the episode.

use std::collections::BTreeMap;
use std::ops::Add;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::inputs::{RewardError, RewardInputs};

/// Attributions that a commit is judged by.
const REMEMBERED: usize = 3;

/// What a committed seed is still to be paid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Instalments {
    /// Per step, for all of `contribution`.
    pub amount: f64,
    /// At the commit, percentage points.
    pub contribution: f64,
}

/// What is remembered of the seed in one slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SlotMemory {
    pub seed_id: String,
    /// Decisions since it first had an amplitude, that one included.
    pub steps_on_path: u32,
    /// What it would keep if it were committed.
    pub credit: f64,
    pub instalments: Option<Instalments>,
    /// The last attributions, oldest first.
    pub recent: SmallVec<[f64; REMEMBERED]>,
    /// What the seed earns per step since its commit.
    pub frozen: Option<f64>,
}

impl SlotMemory {
    pub fn remember(&mut self, attribution: f64) {
        if self.recent.len() == REMEMBERED {
            self.recent.remove(0);
        }
        self.recent.push(attribution);
    }
}

/// How one seed helped another while both grew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Scaffold {
    pub scaffold: String,
    pub beneficiary: String,
    /// The largest synergy so far, percentage points.
    pub boost: f64,
    /// The last step with any.
    pub last_step: u32,
}

/// What is remembered of an env. `Default` is the state at the start of an episode.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardState {
    /// In slot order; `None` where no seed lives.
    pub(super) slots: SmallVec<[Option<SlotMemory>; 4]>,
    pub(super) scaffolds: Vec<Scaffold>,
    /// Commits whose contribution reached the minimum.
    pub(super) contributing: u32,
    /// Percent, step by step.
    accuracies: Vec<f64>,
    /// Percent, after the last step; unknown after a rollback.
    pub(super) committed_accuracy: Option<f64>,
    /// What growing seeds have on loan.
    pub(super) lent: f64,
    /// Nats: the loss that has been paid for.
    pub(super) paid_loss: Option<f64>,
    /// The last joint improvement and its step.
    delta_cf: Option<(u32, f64)>,
    /// The same of the committed seeds.
    fossil_gain: Option<(u32, f64)>,
    /// The last step and the potential in which it left the env.
    potential: Option<(u32, f64)>,
    /// What a mode of an application remembers.
    pub numbers: BTreeMap<String, f64>,
}

impl RewardState {
    /// What is kept on account for the seed in `slot`: what a commit would keep, and what it is paid per step since.
    pub fn account(&self, slot: usize) -> f64 {
        let Some(Some(memory)) = self.slots.get(slot) else {
            return 0.0;
        };
        let instalments = memory.instalments.map_or(0.0, |instalments| instalments.amount);
        memory.credit + memory.frozen.unwrap_or(0.0) + instalments
    }

    /// What frozen attributions pay per step.
    pub(super) fn frozen_sum(&self) -> f64 {
        self.slots
            .iter()
            .flatten()
            .filter_map(|memory| memory.frozen)
            .fold(0.0, Add::add)
    }

    /// Remembers the seeds at the decision and no others.
    pub(super) fn begin_step(&mut self, inputs: &RewardInputs) -> Result<(), RewardError> {
        self.slots.resize(inputs.slots.len(), None);
        self.accuracies.push(inputs.accuracy);
        let measured = |points: Option<f64>| points.map(|points| (inputs.step, points));
        self.delta_cf = measured(inputs.delta_cf).or(self.delta_cf);
        self.fossil_gain = measured(inputs.fossil_gain).or(self.fossil_gain);
        for (index, (memory, slot)) in self.slots.iter_mut().zip(&inputs.slots).enumerate() {
            let Some(seed) = slot.before.as_ref().filter(|seed| seed.stage.is_occupied()) else {
                *memory = None;
                continue;
            };
            let memory = memory.get_or_insert_with(|| SlotMemory {
                seed_id: seed.seed_id.clone(),
                ..SlotMemory::default()
            });
            if memory.seed_id != seed.seed_id {
                return Err(RewardError::OtherSeed {
                    slot: index,
                    kept: memory.seed_id.clone(),
                    found: seed.seed_id.clone(),
                });
            }
            if memory.steps_on_path > 0 || seed.alpha > 0.0 {
                memory.steps_on_path += 1;
            }
        }
        self.note_synergies(inputs);
        Ok(())
    }

    /// Forgets the seeds that the step removed.
    pub(super) fn end_step(&mut self, inputs: &RewardInputs) {
        let after = inputs.slots.iter().enumerate();
        let emptied = after.filter(|(_, slot)| !slot.after.as_ref().is_some_and(|seed| seed.stage.is_occupied()));
        self.forget(emptied.map(|(index, _)| index));
    }

    /// A rollback has pruned the seeds of `slots` in a step that pays nothing, and the network is another than the one that
    /// was paid for.
    pub(super) fn roll_back(&mut self, slots: impl IntoIterator<Item = usize>) {
        self.forget(slots);
        self.committed_accuracy = None;
        self.lent = 0.0;
    }

    /// Forgets the seeds of `slots`, which are gone, and whom they helped: what grows there next owes and is owed nothing.
    fn forget(&mut self, slots: impl IntoIterator<Item = usize>) {
        for index in slots {
            if let Some(memory) = self.slots.get_mut(index) {
                *memory = None;
            }
        }
        let slots = &self.slots;
        let lives = |seed_id: &str| slots.iter().flatten().any(|memory| memory.seed_id == seed_id);
        self.scaffolds
            .retain(|pair| lives(&pair.scaffold) && lives(&pair.beneficiary));
    }

    /// The joint improvement, if it was measured at most `max_staleness` steps ago.
    pub(super) fn delta_cf(&self, step: u32, max_staleness: u32) -> Option<f64> {
        fresh(self.delta_cf, step, max_staleness)
    }

    /// What the committed seeds add together, if it was measured at most `max_staleness` steps ago.
    pub(super) fn fossil_gain(&self, step: u32, max_staleness: u32) -> Option<f64> {
        fresh(self.fossil_gain, step, max_staleness)
    }

    /// Of the episode's first step, percent.
    pub(super) fn first_accuracy(&self) -> Option<f64> {
        self.accuracies.first().copied()
    }

    /// The least accuracy of the last `steps` steps, percent; of fewer where there are no more.
    pub(super) fn stable_accuracy(&self, steps: usize) -> Option<f64> {
        self.accuracies.iter().rev().take(steps).copied().reduce(f64::min)
    }

    /// What is remembered of the seed in a slot.
    pub(super) fn memory(&self, slot: usize) -> Option<&SlotMemory> {
        self.slots.get(slot)?.as_ref()
    }

    /// What is remembered of the seed that the step acted on.
    pub(super) fn acted(&mut self, inputs: &RewardInputs) -> Option<&mut SlotMemory> {
        self.slots.get_mut(inputs.slot?)?.as_mut()
    }

    /// Stores the potential after a step. Shaping telescopes only if the next step starts from the very same number;
    /// seeds that others than the controller removed in between, and skipped steps, break the chain.
    pub(super) fn chain_potential(&mut self, inputs: &RewardInputs, before: f64, after: f64) {
        if let Some((step, left)) = self.potential {
            let is_broken = step + 1 != inputs.step || inputs.auto_pruned > 0;
            debug_assert!(
                is_broken || left == before,
                "step {step} left the potential at {left}, the next one starts at {before}"
            );
        }
        self.potential = Some((inputs.step, after));
    }

    /// Both seeds of a synergetic pair may later be credited for the other's success.
    fn note_synergies(&mut self, inputs: &RewardInputs) {
        let name = |slot: usize| Some(inputs.slots.get(slot)?.before.as_ref()?.seed_id.clone());
        for pair in inputs.interactions.iter().filter(|pair| pair.points > 0.0) {
            let (Some(a), Some(b)) = (name(pair.slots.0), name(pair.slots.1)) else {
                continue;
            };
            self.note_synergy(a.clone(), b.clone(), pair.points, inputs.step);
            self.note_synergy(b, a, pair.points, inputs.step);
        }
    }

    fn note_synergy(&mut self, scaffold: String, beneficiary: String, points: f64, step: u32) {
        let known = self
            .scaffolds
            .iter_mut()
            .find(|pair| pair.scaffold == scaffold && pair.beneficiary == beneficiary);
        match known {
            Some(pair) => {
                pair.boost = pair.boost.max(points);
                pair.last_step = step;
            }
            None => self.scaffolds.push(Scaffold {
                scaffold,
                beneficiary,
                boost: points,
                last_step: step,
            }),
        }
    }
}

/// A measurement that is at most `max_staleness` steps old.
fn fresh(measured: Option<(u32, f64)>, step: u32, max_staleness: u32) -> Option<f64> {
    let (at, points) = measured?;
    (step.saturating_sub(at) <= max_staleness).then_some(points)
}
