//! State of the rewards between the steps of an episode: accuracies, measurements and an account of every seed.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::prelude::*;

/// Number of steps whose least accuracy counts as progress: a spike earns nothing.
const STABLE_STEPS: usize = 3;
/// Attributions that a commit is judged by.
const JUDGED_STEPS: usize = 3;

/// Pays a step with the memory of the episode, and updates that memory.
pub fn remembering(
    inputs: &RewardInputs,
    state: &mut RewardState,
    pay: impl FnOnce(&mut Memory) -> Result<(), RewardError>,
) -> Result<(), RewardError> {
    let mut memory: Memory = state.recall()?;
    memory.begin_step(inputs);
    pay(&mut memory)?;
    memory.end_step(inputs);
    state.accounts = memory.slots.iter().map(account).collect();
    state.remember(&memory)
}

/// Balance of a seed's account: the amount that a commit would keep, and the pay per step since.
fn account(memory: &Option<SlotMemory>) -> f64 {
    memory.as_ref().map_or(0.0, |memory| {
        let instalments = memory.instalments.map_or(0.0, |instalments| instalments.amount);
        memory.credit + memory.frozen.unwrap_or(0.0) + instalments
    })
}

/// Payments still due to a committed seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instalments {
    /// Pay per step, for all of `contribution`.
    pub amount: f64,
    /// Contribution at the commit, percentage points.
    pub contribution: f64,
}

/// Memory of the seed in one slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotMemory {
    pub seed_id: String,
    /// Decisions since it first had an amplitude, that one included.
    pub steps_on_path: u32,
    /// Amount that it would keep if it were committed.
    pub credit: f64,
    pub instalments: Option<Instalments>,
    /// The last attributions, oldest first.
    pub recent: SmallVec<[f64; JUDGED_STEPS]>,
    /// Earnings of the seed per step since its commit.
    pub frozen: Option<f64>,
}

impl SlotMemory {
    pub fn remember(&mut self, attribution: f64) {
        if self.recent.len() == JUDGED_STEPS {
            self.recent.remove(0);
        }
        self.recent.push(attribution);
    }
}

/// The help of one seed for another while both grew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaffold {
    pub scaffold: String,
    pub beneficiary: String,
    /// The largest synergy so far, percentage points.
    pub boost: f64,
    /// The last step with any.
    pub last_step: u32,
}

/// Memory of an env. `Default` is the state at the start of an episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Memories in slot order. `None` where no seed lives.
    pub slots: SmallVec<[Option<SlotMemory>; 4]>,
    pub scaffolds: Vec<Scaffold>,
    /// Commits whose contribution reached the minimum.
    pub contributing: u32,
    /// Accuracy of the episode's first step, percent.
    pub first_accuracy: Option<f64>,
    /// Accuracies of the last steps, percent, oldest first.
    last_accuracies: SmallVec<[f64; STABLE_STEPS]>,
}

impl Memory {
    /// Remembers the seeds at the decision and no others: seeds that were removed in a step without pay are forgotten.
    fn begin_step(&mut self, inputs: &RewardInputs) {
        self.first_accuracy.get_or_insert(inputs.accuracy);
        if self.last_accuracies.len() == STABLE_STEPS {
            self.last_accuracies.remove(0);
        }
        self.last_accuracies.push(inputs.accuracy);
        self.slots.resize(inputs.slots.len(), None);
        for (memory, slot) in self.slots.iter_mut().zip(&inputs.slots) {
            let seed = slot.before.as_ref().filter(|seed| seed.stage.is_occupied());
            let known = memory.take();
            *memory = seed.map(|seed| {
                let known = known.filter(|known| known.seed_id == seed.seed_id);
                let mut known = known.unwrap_or_else(|| SlotMemory {
                    seed_id: seed.seed_id.clone(),
                    ..SlotMemory::default()
                });
                known.steps_on_path += u32::from(known.steps_on_path > 0 || seed.alpha > 0.0);
                known
            });
        }
        self.forget_helpers_that_are_gone();
        self.note_synergies(inputs);
    }

    /// Forgets the seeds that the step removed: the next seed in the slot starts with an empty account.
    fn end_step(&mut self, inputs: &RewardInputs) {
        for (memory, slot) in self.slots.iter_mut().zip(&inputs.slots) {
            let stays = slot.after.as_ref().is_some_and(|seed| seed.stage.is_occupied());
            *memory = memory.take().filter(|_| stays);
        }
        self.forget_helpers_that_are_gone();
    }

    fn forget_helpers_that_are_gone(&mut self) {
        let slots = &self.slots;
        let lives = |seed_id: &str| slots.iter().flatten().any(|memory| memory.seed_id == seed_id);
        self.scaffolds
            .retain(|pair| lives(&pair.scaffold) && lives(&pair.beneficiary));
    }

    /// The lowest accuracy of the last steps, percent.
    pub fn stable_accuracy(&self) -> Option<f64> {
        self.last_accuracies.iter().copied().reduce(f64::min)
    }

    /// Sum of the frozen attributions, per step.
    pub fn frozen_sum(&self) -> f64 {
        let frozen = self.slots.iter().flatten().filter_map(|memory| memory.frozen);
        // An empty sum of floats would be -0.
        frozen.fold(0.0, |sum, paid| sum + paid)
    }

    /// Memory of the seed in a slot.
    pub fn of(&self, slot: usize) -> Option<&SlotMemory> {
        self.slots.get(slot)?.as_ref()
    }

    /// The same, to change.
    pub fn of_mut(&mut self, slot: usize) -> Option<&mut SlotMemory> {
        self.slots.get_mut(slot)?.as_mut()
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
