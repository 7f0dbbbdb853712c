//! A policy without observations: its most frequent decision at each step, as a schedule. The schedule plays on other hosts next
//! to the policy, and the difference is the value of observing.
//!
//! The policy plays greedily for that, on hosts of its own. Decisions of its training would cost nothing, but they were drawn,
//! with exploration, by weights that have learnt on since: a schedule of them is worse for reasons that have nothing to do with
//! looking.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde::Serialize;

use crate::actions::HeadIndices;
use crate::clock::RunClock;
use crate::compare::{Candidate, Episodes, play_until};
use crate::controller::{Chosen, SavedFolder, written};
use crate::engine::Extension;
use crate::env::Experiment;
use crate::growth::SlotId;
use crate::health::EngineError;
use crate::policy::DecideMode;
use crate::run::StopSignal;
use crate::scenario::{Keep, ScheduleConfig, ScheduleEntry, ScheduledCommand};
use crate::seed::BlueprintRegistry;
use crate::telemetry::BigInteger;

/// The schedule of a policy, and its source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blind {
    /// Seed of the hosts on which the policy decided.
    pub seed: BigInteger,
    /// Number of these hosts.
    pub hosts: usize,
    /// Its commands; waits in place of illegal ones.
    pub schedule: ScheduleConfig,
}

/// The number of envs for each decision in a step. A wait has no command.
type Counts = BTreeMap<HeadIndices, (u32, Option<ScheduledCommand>)>;

impl Blind {
    /// Takes the schedule of a saved policy from its greedy decisions in `episodes`. Among equally frequent ones, the first wins
    /// in the order of the action space. Stopped early, it returns the schedule of the episodes played so far.
    ///
    /// # Errors
    /// A policy that does not fit the scenario, or the first failure of a system.
    pub fn of(
        mut experiment: Experiment,
        extension: &Extension,
        policy: &SavedFolder,
        episodes: &Episodes,
        stop: &StopSignal,
    ) -> Result<Self, EngineError> {
        let slots: Vec<SlotId> = experiment.layout.slots().iter().map(|spec| spec.slot).collect();
        let candidate = Candidate {
            controller: "actor_critic".into(),
            policy: Some(policy.clone()),
            mode: DecideMode::Greedy,
            seeds: None,
        };
        let mut by_step: BTreeMap<u32, Counts> = BTreeMap::new();
        experiment.scenario.run.keep = Keep::None;
        play_until(experiment, extension, &candidate, episodes, stop, |world| {
            let step = world.resource::<RunClock>().step();
            count(world, &slots, by_step.entry(step).or_default());
        })?;
        let orders = by_step.into_iter().filter_map(|(step, counts)| {
            let command = most_frequent(counts)?;
            Some(ScheduleEntry { step, command })
        });
        Ok(Self {
            seed: BigInteger(episodes.seed),
            hosts: episodes.count(),
            schedule: ScheduleConfig {
                // A round that ran out of memory restarts before its first step, where nothing can be ordered.
                entries: orders.filter(|order| order.step > 0).collect(),
                wait_on_illegal: true,
            },
        })
    }

    /// The controller that plays it. A schedule without orders cannot be played, so the policy waits.
    pub const fn controller(&self) -> &'static str {
        if self.schedule.entries.is_empty() {
            "wait"
        } else {
            "schedule"
        }
    }
}

/// Adds the decisions of the played step.
fn count(world: &mut World, slots: &[SlotId], counts: &mut Counts) {
    let mut envs = world.query::<&Chosen>();
    let blueprints = world.resource::<BlueprintRegistry>();
    for decision in envs.iter(world).filter_map(|chosen| chosen.0.as_ref()) {
        let written = || (0, written(&decision.command, slots, |index| blueprints.name_of(index)));
        counts.entry(decision.indices).or_insert_with(written).0 += 1;
    }
}

fn most_frequent(counts: Counts) -> Option<ScheduledCommand> {
    // Among equals, the first wins.
    let (_, command) = counts.into_values().min_by_key(|(envs, _)| Reverse(*envs))?;
    command
}

#[cfg(test)]
mod tests;
