//! Plays a policy and its controls: row by row, each on the episodes of every seed.

use std::collections::BTreeMap;

use super::Control;
use super::search::{Search, Spent};
use crate::compare::{Candidate, EpisodeOutcome, Episodes, PlayedEpisodes, play_until};
use crate::controller::SavedFolder;
use crate::engine::Extension;
use crate::env::{Experiment, InitialSeeds};
use crate::health::{EngineError, Failure, Position};
use crate::host::{HostError, HostRegistry, SlotLayout};
use crate::policy::DecideMode;
use crate::run::StopSignal;
use crate::scenario::PeriodicConfig;

/// The controller that saved policies belong to.
const LEARNED: &str = "actor_critic";

/// A policy, its scenario, and what it is to be compared with.
pub struct Study<'a> {
    /// The scenario's.
    pub experiment: Experiment,
    /// What the application adds to the engine.
    pub extend: Extension,
    /// `None` for a run whose controller learns nothing: it takes the policy's place.
    pub policy: Option<SavedFolder>,
    /// Whose networks are trained from scratch, and whom the others are compared with.
    pub reference: DecideMode,
    /// In the order in which they are played.
    pub controls: Vec<Control>,
    /// One entry a seed.
    pub episodes: Vec<Episodes>,
    /// For [`Control::Schedules`].
    pub search: Search,
    /// What the policy's training took.
    pub training: Spent,
    /// Rounds that the policy was trained in.
    pub training_rounds: u32,
    /// Ends it.
    pub stop: &'a StopSignal,
}

/// Somebody has played the episodes of a seed.
pub struct Told<'a> {
    /// As the report calls the row.
    pub name: &'a str,
    /// Of the episodes.
    pub seed: u64,
    /// What came of them.
    pub played: &'a PlayedEpisodes,
}

/// What one row of the report is made of.
#[derive(Clone)]
pub struct PlayedRow {
    /// As tables call it.
    pub name: String,
    /// `None` for the policy itself.
    pub control: Option<Control>,
    /// The others are compared with it.
    pub is_reference: bool,
    /// Of an episode; it may end sooner.
    pub steps: u32,
    /// Parameters of its host over those of the scenario's.
    pub host_ratio: f64,
    /// What it took to come by whatever was played.
    pub found_by: Option<Spent>,
    /// Schedules that were tried.
    pub schedules: Option<u32>,
    /// One entry a seed.
    pub played: Vec<PlayedEpisodes>,
}

/// Who plays, and in what.
#[derive(Clone)]
struct Entry {
    experiment: Experiment,
    candidate: Candidate,
}

impl PlayedRow {
    fn outcomes(&self) -> impl Iterator<Item = &EpisodeOutcome> {
        self.played.iter().flat_map(|played| &played.outcomes)
    }

    /// Multiply-accumulates of all episodes.
    fn macs(&self) -> f64 {
        let counted = self.outcomes().filter_map(|outcome| outcome.compute);
        counted.map(|compute| compute.macs() as f64).sum()
    }

    fn seconds(&self) -> f64 {
        self.played.iter().map(|played| played.seconds).sum()
    }

    /// Mean of an episode's end.
    fn param_ratio(&self) -> f64 {
        let (count, sum) = self.outcomes().fold((0.0, 0.0), |(count, sum), outcome| {
            (count + 1.0, sum + outcome.param_ratio)
        });
        sum / count
    }

    /// The networks that stood in the end under one of the seeds, for episodes that are to begin with them.
    fn architectures(&self, seed: usize) -> InitialSeeds {
        let played = &self.played[seed];
        let episodes = played.outcomes.iter().zip(&played.standing);
        let by_episode = episodes.map(|(outcome, standing)| {
            let env = u32::try_from(outcome.env).unwrap_or(u32::MAX);
            ((outcome.round, env), standing.clone())
        });
        InitialSeeds::Each(by_episode.collect::<BTreeMap<_, _>>())
    }
}

impl Study<'_> {
    /// Plays everything; `told` hears of every row and seed. Whoever stops it gets the rows that are complete.
    ///
    /// # Errors
    /// A controller or policy that does not fit the scenario, or the first failure of a system.
    pub fn play(&self, told: &mut dyn FnMut(&Told)) -> Result<Vec<PlayedRow>, EngineError> {
        let mut rows = Vec::new();
        for (name, mode) in self.policies() {
            match self.play_policy(name, mode, told)? {
                Some(row) => rows.push(row),
                None => return Ok(rows),
            }
        }
        for &control in &self.controls {
            let reference = rows.iter().find(|row| row.is_reference);
            let equal_epochs = rows.iter().find(|row| row.control == Some(Control::EqualEpochs));
            let Some(reference) = reference else { break };
            match self.play_control(control, reference, equal_epochs, told)? {
                Some(played) => rows.extend(played),
                None => break,
            }
        }
        Ok(rows)
    }

    /// Rows that there are to play.
    pub fn rows(&self) -> usize {
        let both_schedules = usize::from(self.controls.contains(&Control::Schedules));
        self.policies().len() + self.controls.len() + both_schedules
    }

    /// A name and how it chooses.
    fn policies(&self) -> Vec<(String, DecideMode)> {
        let own = &self.experiment.scenario.policy.controller;
        match self.policy {
            Some(_) => vec![
                ("policy (sampled)".into(), DecideMode::Sample),
                ("policy (greedy)".into(), DecideMode::Greedy),
            ],
            None => vec![(format!("{own} (the run's)"), self.reference)],
        }
    }

    fn play_policy(
        &self,
        name: String,
        mode: DecideMode,
        told: &mut dyn FnMut(&Told),
    ) -> Result<Option<PlayedRow>, EngineError> {
        let own = &self.experiment.scenario.policy.controller;
        let controller = if self.policy.is_some() { LEARNED } else { own };
        let row = PlayedRow {
            name,
            control: None,
            is_reference: mode == self.reference,
            steps: self.experiment.task.max_steps,
            host_ratio: 1.0,
            found_by: Some(self.training),
            schedules: None,
            played: Vec::new(),
        };
        let entry = Entry {
            experiment: self.experiment.clone(),
            candidate: Candidate {
                controller: controller.into(),
                policy: self.policy.clone(),
                mode,
                seeds: None,
            },
        };
        self.fill(row, |_| entry.clone(), told)
    }

    /// A row, or two of schedules. `None` if it was stopped.
    fn play_control(
        &self,
        control: Control,
        reference: &PlayedRow,
        equal_epochs: Option<&PlayedRow>,
        told: &mut dyn FnMut(&Told),
    ) -> Result<Option<Vec<PlayedRow>>, EngineError> {
        let mut row = PlayedRow {
            name: control.words().into(),
            control: Some(control),
            is_reference: false,
            steps: self.experiment.task.max_steps,
            host_ratio: 1.0,
            found_by: None,
            schedules: None,
            played: Vec::new(),
        };
        let scaled = |of: fn(&PlayedRow) -> f64| {
            let ratio = equal_epochs.map_or(1.0, |scratch| of(reference) / of(scratch));
            ((f64::from(row.steps) * ratio).round() as u32).max(1)
        };
        let none = || InitialSeeds::Same(Vec::new());
        let from_scratch = |steps| move |seed| self.ungrown(steps, reference.architectures(seed));
        let row = match control {
            Control::NeverGrown => {
                let steps = row.steps;
                self.fill(row, |_| self.ungrown(steps, none()), told)
            }
            Control::EqualEpochs => {
                let steps = row.steps;
                self.fill(row, from_scratch(steps), told)
            }
            Control::EqualCompute => {
                row.steps = scaled(PlayedRow::macs);
                let steps = row.steps;
                self.fill(row, from_scratch(steps), told)
            }
            Control::EqualSeconds => {
                row.steps = scaled(PlayedRow::seconds);
                let steps = row.steps;
                self.fill(row, from_scratch(steps), told)
            }
            Control::Widened => {
                let mut entry = self.ungrown(row.steps, none());
                row.host_ratio = self.widen(&mut entry.experiment, reference.param_ratio())?;
                self.fill(row, |_| entry.clone(), told)
            }
            Control::Schedules => return self.play_schedules(&row, told),
            Control::Heuristic | Control::Periodic | Control::Fragrow => {
                let entry = self.ruled(control.words(), None);
                self.fill(row, |_| entry.clone(), told)
            }
        }?;
        Ok(row.map(|row| vec![row]))
    }

    /// Plays the episodes of all seeds; `entry` says who plays those of the `k`-th. `None` if it was stopped.
    fn fill(
        &self,
        mut row: PlayedRow,
        entry: impl Fn(usize) -> Entry,
        told: &mut dyn FnMut(&Told),
    ) -> Result<Option<PlayedRow>, EngineError> {
        for (index, episodes) in self.episodes.iter().enumerate() {
            let Some(played) = self.play_entry(&row.name, entry(index), episodes, told)? else {
                return Ok(None);
            };
            row.played.push(played);
        }
        Ok(Some(row))
    }

    fn play_entry(
        &self,
        name: &str,
        entry: Entry,
        episodes: &Episodes,
        told: &mut dyn FnMut(&Told),
    ) -> Result<Option<PlayedEpisodes>, EngineError> {
        let Entry { experiment, candidate } = entry;
        let played = play_until(experiment, &self.extend, &candidate, episodes, self.stop, |_| ())?;
        if self.stop.is_requested() && played.outcomes.len() < episodes.count() {
            return Ok(None);
        }
        let seed = episodes.seed;
        told(&Told {
            name,
            seed,
            played: &played,
        });
        Ok(Some(played))
    }

    /// Nobody grows anything: episodes begin with these seeds and take so many steps. Nothing is measured of seeds that nobody
    /// decides about, so it does not cost anything either.
    fn ungrown(&self, steps: u32, seeds: InitialSeeds) -> Entry {
        let mut experiment = self.experiment.clone();
        experiment.task.max_steps = steps;
        experiment.scenario.run.early_stop = None;
        experiment.scenario.attribution.include_fossilized = false;
        Entry {
            experiment,
            candidate: Candidate {
                controller: "wait".into(),
                policy: None,
                mode: self.reference,
                seeds: Some(seeds),
            },
        }
    }

    fn widen(&self, experiment: &mut Experiment, ratio: f64) -> Result<f64, EngineError> {
        let failed = |failure: Failure| failure.during("control", Position::default());
        let names = self
            .extend
            .names()
            .map_err(|error| failed(Failure::message(error.to_string())))?;
        widen(experiment, &names.hosts, ratio).map_err(failed)
    }

    fn ruled(&self, controller: &str, schedule: Option<PeriodicConfig>) -> Entry {
        let mut experiment = self.experiment.clone();
        if let Some(schedule) = schedule {
            experiment.scenario.policy.periodic = schedule;
        }
        Entry {
            experiment,
            candidate: Candidate {
                controller: controller.into(),
                policy: None,
                mode: self.reference,
                seeds: None,
            },
        }
    }

    /// The best of the schedules that are drawn play.
    fn play_schedules(
        &self,
        row: &PlayedRow,
        told: &mut dyn FnMut(&Told),
    ) -> Result<Option<Vec<PlayedRow>>, EngineError> {
        let Some(found) = self.find_schedules(told)? else {
            return Ok(None);
        };
        let mut rows = Vec::new();
        for (schedule, by) in found.best.into_iter().zip(["schedules", "by net"]) {
            let row = PlayedRow {
                name: format!("best of {} {by}", found.tried),
                schedules: Some(found.tried),
                found_by: Some(found.spent),
                ..row.clone()
            };
            let entry = self.ruled("periodic", Some(schedule));
            let Some(row) = self.fill(row, |_| entry.clone(), told)? else {
                return Ok(None);
            };
            rows.push(row);
        }
        Ok(Some(rows))
    }

    /// Draws schedules and plays each for a round, until there are enough of them, or they have taken what the policy's
    /// training took. `None` if it was stopped.
    fn find_schedules(&self, told: &mut dyn FnMut(&Told)) -> Result<Option<FoundSchedules>, EngineError> {
        let (slots, max_steps) = (self.experiment.layout.len(), self.experiment.task.max_steps);
        let allowed = &self.experiment.scenario.policy.masks.action_space;
        let round = Episodes {
            seed: self.search.seed,
            rounds: 0..1,
            envs: self.experiment.scenario.run.n_envs,
        };
        let draw = |index| self.search.draw(index, slots, max_steps, allowed);
        let price = self.experiment.scenario.reward.price();
        let net = |outcome: &EpisodeOutcome| match price {
            Some(price) => outcome.accuracy_minus_price(price),
            None => outcome.accuracy_minus_rent(),
        };
        let (mut best, mut highest) = ([draw(0), draw(0)], [f64::NEG_INFINITY; 2]);
        let (mut gmacs, mut seconds) = (0.0, 0.0);
        for tried in 1.. {
            let schedule = draw(tried - 1);
            let entry = self.ruled("periodic", Some(schedule.clone()));
            let Some(played) = self.play_entry(&format!("schedule {tried}"), entry, &round, told)? else {
                return Ok(None);
            };
            gmacs += played.outcomes.iter().filter_map(EpisodeOutcome::gmacs).sum::<f64>();
            seconds += played.seconds;
            let scores = [played.mean_accuracy(), played.mean_of(net)];
            for ((best, highest), score) in best.iter_mut().zip(&mut highest).zip(scores) {
                // The first of equals.
                if let Some(score) = score.filter(|score| score > highest) {
                    (*best, *highest) = (schedule.clone(), score);
                }
            }
            let is_enough = match (self.search.schedules, self.training.gmacs) {
                (Some(count), _) => tried >= count,
                (None, Some(budget)) => gmacs >= budget,
                (None, None) => tried >= self.training_rounds,
            };
            if is_enough {
                return Ok(Some(FoundSchedules {
                    best,
                    tried,
                    spent: Spent {
                        gmacs: Some(gmacs),
                        seconds,
                    },
                }));
            }
        }
        Ok(None)
    }
}

/// The best of the schedules that were tried.
struct FoundSchedules {
    /// By accuracy, and by accuracy less the scenario's price of the size, or less rent where it has none.
    best: [PeriodicConfig; 2],
    tried: u32,
    spent: Spent,
}

/// Makes the host just so wide that it has `ratio` times its parameters or more, or as wide as there are any, and returns how
/// many times it has then.
fn widen(experiment: &mut Experiment, hosts: &HostRegistry, ratio: f64) -> Result<f64, Failure> {
    let task = &mut experiment.task;
    let before = hosts.of(&task.host)?.plan(task.classes).outline().parameters as f64;
    let (mut widened, mut is_wider) = (1.0, false);
    while widened < ratio {
        let Some(wider) = hosts.of(&task.host)?.widened() else {
            if !is_wider {
                return Err(HostError::NoWider(task.host.label().into()).into());
            }
            break;
        };
        task.host = wider;
        is_wider = true;
        widened = hosts.of(&task.host)?.plan(task.classes).outline().parameters as f64 / before;
    }
    let injections = hosts.of(&task.host)?.plan(task.classes).injection_specs();
    let slots: Vec<_> = experiment.layout.slots().iter().map(|spec| spec.slot).collect();
    experiment.layout = SlotLayout::new(&injections, &slots)?;
    Ok(widened)
}

#[cfg(test)]
mod tests;
