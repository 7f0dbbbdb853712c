//! Drawn schedules: a policy is compared with the best of as many schedules as its compute would have paid for, to see whether it
//! was worth its training.

use serde::Serialize;

use crate::env::Experiment;
use crate::growth::{GerminationStyle, Tempo};
use crate::random::{Domain, Draw, RunRng};
use crate::scenario::{ActionSpace, BlueprintEntry, PeriodicConfig};

/// The schedules among which the best is searched, and the seed of the search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Seed of the schedules, and of the episodes that judge them. It is not used for evaluation.
    pub seed: u64,
    /// Number of schedules. If left out, as many as the policy's training would have paid for.
    pub schedules: Option<u32>,
    /// Blueprints that they may grow.
    pub blueprints: Vec<String>,
}

/// Compute and time of a search or a training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Multiply-accumulates of host and seeds in training and validation, in billions; `None` where they were not counted.
    pub gmacs: Option<f64>,
    /// Wall time.
    pub seconds: f64,
}

impl Search {
    /// A search among everything that `experiment` lets its controllers grow, under a seed that isn't in `evaluated`.
    pub fn new(experiment: &Experiment, evaluated: &[u64], schedules: Option<u32>, known: &[BlueprintEntry]) -> Self {
        Self {
            seed: Self::seed_next_to(experiment.scenario.run.seed, evaluated),
            schedules,
            blueprints: growable(experiment, known),
        }
    }

    /// A seed for the search: the first after the run's own that isn't in `evaluated`.
    fn seed_next_to(own: u64, evaluated: &[u64]) -> u64 {
        let is_free = |seed: &u64| !evaluated.contains(seed);
        // There are fewer seeds evaluated than there are numbers.
        (1..)
            .map(|offset| own.wrapping_add(offset))
            .find(is_free)
            .unwrap_or(own)
    }

    /// Schedule `index` for an episode of `max_steps` and a host of `slots`: the number of seeds, their period, their blueprints,
    /// and the way they blend in. All of them can be grown within the episode.
    pub fn draw(&self, index: u32, slots: usize, max_steps: u32, allowed: &ActionSpace) -> PeriodicConfig {
        let mut rng = RunRng::new(self.seed, Domain::ScheduleSearch, &[index.into()]);
        let growths = 1 + rng.below(slots.max(1) as u64);
        let period = 1 + rng.below((u64::from(max_steps) / growths).max(1));
        let blueprints = (0..growths).filter_map(|_| pick(&mut rng, &self.blueprints));
        let blueprints = blueprints.collect();
        let styles = allowed.style.as_deref().unwrap_or(&GerminationStyle::ALL);
        let tempos = allowed.tempo.as_deref().unwrap_or(&Tempo::ALL);
        let rest = PeriodicConfig::default();
        PeriodicConfig {
            // Both come from numbers of 32 bits.
            period: u32::try_from(period).unwrap_or(u32::MAX),
            blueprints,
            max_growths: Some(u32::try_from(growths).unwrap_or(u32::MAX)),
            style: pick(&mut rng, styles).unwrap_or(rest.style),
            tempo: pick(&mut rng, tempos).unwrap_or(rest.tempo),
        }
    }
}

/// Blueprints that the scenario leaves to its controllers.
fn growable(experiment: &Experiment, known: &[BlueprintEntry]) -> Vec<String> {
    let allowed = experiment.scenario.policy.masks.action_space.blueprint.as_ref();
    let topology = experiment.task.data.topology();
    let is_growable = |blueprint: &&BlueprintEntry| {
        let is_allowed = allowed.is_none_or(|allowed| allowed.contains(&blueprint.name));
        is_allowed && blueprint.index.is_some() && blueprint.selectable && blueprint.grows_in.contains(&topology)
    };
    let growable = known.iter().filter(is_growable);
    growable.map(|blueprint| blueprint.name.clone()).collect()
}

/// An element, or `None` of an empty list.
fn pick<T: Clone>(rng: &mut RunRng, among: &[T]) -> Option<T> {
    if among.is_empty() {
        return None;
    }
    among.get(rng.below(among.len() as u64) as usize).cloned()
}

#[cfg(test)]
mod tests;
