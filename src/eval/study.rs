//! Plays a policy and its opponents, each on the episodes of every seed: first those that decide for themselves, seed by seed,
//! so that what is played until a stop compares all of them; then those that follow from what the policy has played.

use std::collections::BTreeMap;
use std::path::Path;

use bevy_ecs::world::World;

use super::blind::Blind;
use super::opponents::{LEARNED, Opponent};
use super::search::{Search, Spent};
use crate::compare::statistics::mean;
use crate::compare::{Candidate, EpisodeOutcome, Episodes, PlayedEpisodes, play_until};
use crate::controller::SavedFolder;
use crate::engine::Extension;
use crate::env::{Experiment, InitialSeeds};
use crate::health::{EngineError, Failure, Position};
use crate::host::{HostError, HostPlan, SlotLayout, widened};
use crate::network::{HostRegistry, NetworkError};
use crate::policy::DecideMode;
use crate::run::StopSignal;
use crate::scenario::{HostChoice, Keep, PeriodicConfig};

/// A policy, its scenario, and what it is to be compared with.
pub struct Study<'a> {
    /// The scenario's.
    pub experiment: Experiment,
    /// What the application adds to the engine.
    pub extension: &'a Extension,
    /// `None` for a run whose controller learns nothing: it takes the policy's place.
    pub policy: Option<SavedFolder>,
    /// How the policy chooses, a row each; at least one.
    pub modes: Vec<DecideMode>,
    /// Each once.
    pub against: Vec<Opponent>,
    /// One entry a seed, at least one.
    pub episodes: Vec<Episodes>,
    /// For [`Opponent::Schedules`]; its seed is also that of the hosts on which the blind schedule is taken.
    pub search: Search,
    /// What the policy's training took; `None` for a policy without its run.
    pub training: Option<Spent>,
    /// Rounds that the policy was trained in.
    pub training_rounds: u32,
    /// Ends it.
    pub stop: &'a StopSignal,
}

/// What happens while a study is played.
pub enum StudyEvent<'a> {
    /// A row begins with the episodes of a seed.
    Enters {
        /// Of the row, or of a schedule that is tried.
        name: &'a str,
        /// Of the episodes.
        seed: u64,
    },
    /// This number of envs has played a step.
    Steps(usize),
    /// It has played them.
    Leaves {
        /// Their results.
        played: &'a PlayedEpisodes,
        /// Whether they are a row's; else they are of a schedule that was tried.
        is_row: bool,
    },
}

/// Why something could not play.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {error}")]
pub struct StudyError {
    /// Of the row.
    pub name: String,
    /// Without a round in its position: before anything was played.
    pub error: EngineError,
}

/// What has been played by one of them.
#[derive(Clone)]
pub struct PlayedRow {
    /// As tables call it.
    pub name: String,
    /// The others are its baselines.
    pub is_policy: bool,
    /// Of an episode; it may end sooner.
    pub steps: u32,
    /// What it took to find it: the training of a policy, the search of a schedule.
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

/// Hears what happens.
type ReportStudy<'t> = dyn FnMut(StudyEvent) + 't;

impl PlayedRow {
    fn outcomes(&self) -> impl Iterator<Item = &EpisodeOutcome> {
        self.played.iter().flat_map(|played| &played.outcomes)
    }

    /// Multiply-accumulates of all episodes.
    fn macs(&self) -> f64 {
        let counted = self.outcomes().filter_map(|outcome| outcome.compute);
        counted.map(|compute| compute.macs() as f64).sum()
    }

    /// Wall time of all episodes; those of a seed are played side by side.
    pub fn seconds(&self) -> f64 {
        self.played.iter().map(|played| played.seconds).sum()
    }

    /// Mean of an episode's end.
    fn param_ratio(&self) -> f64 {
        let ratios: Vec<f64> = self.outcomes().map(|outcome| outcome.param_ratio).collect();
        mean(&ratios)
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
    /// Takes the blind schedule, if it is to be played: the policy decides in a round on hosts that nothing is evaluated on.
    ///
    /// # Errors
    /// A policy that does not fit the scenario, or the first failure of a system.
    pub fn take_blind(&self) -> Result<Option<Blind>, StudyError> {
        let Some(policy) = self.policy.as_ref().filter(|_| self.against.contains(&Opponent::Blind)) else {
            return Ok(None);
        };
        let first = self.episodes[0].rounds.start;
        let episodes = Episodes {
            seed: self.search.seed,
            rounds: first..first.saturating_add(1),
            envs: self.experiment.scenario.run.n_envs,
        };
        let taken = Blind::of(self.experiment.clone(), self.extension, policy, &episodes, self.stop);
        taken.map(Some).map_err(|error| named("blind", error))
    }

    /// Plays everything. After a stop: the rows and seeds that can be compared, those of the first seed alone while it is
    /// played.
    ///
    /// # Errors
    /// A controller or policy that does not fit the scenario, or the first failure of a system.
    pub fn play(&self, blind: Option<&Blind>, report: &mut ReportStudy) -> Result<Vec<PlayedRow>, StudyError> {
        let mut rows = self.policies();
        let opponents = self.against.iter().filter(|opponent| !opponent.is_derived());
        rows.extend(opponents.map(|opponent| self.opponent(opponent, blind)));
        'playing: for episodes in &self.episodes {
            for (row, entry) in &mut rows {
                match self.play_entry(&row.name, entry.clone(), episodes, true, report)? {
                    Some(played) => row.played.push(played),
                    None => break 'playing,
                }
            }
        }
        let mut rows: Vec<PlayedRow> = rows.into_iter().map(|(row, _)| row).collect();
        let seeds = rows.iter().map(|row| row.played.len()).min().unwrap_or(0).max(1);
        rows.retain(|row| row.played.len() >= seeds);
        rows.iter_mut().for_each(|row| row.played.truncate(seeds));
        if self.stop.is_requested() {
            return Ok(rows);
        }
        // Others are compared with drawn actions, where the policy draws any.
        let reference = rows[self.modes.len().min(self.policies().len()) - 1].clone();
        for opponent in self.against.iter().filter(|opponent| opponent.is_derived()) {
            let names = opponent.rows();
            let played = match opponent {
                Opponent::Widened => self.play_widened(&names[0], &reference, report)?,
                Opponent::FromScratch => self.play_from_scratch(&names, &reference, report)?,
                _ => self.play_schedules(&names, report)?,
            };
            match played {
                Some(played) => rows.extend(played),
                None => break,
            }
        }
        Ok(rows)
    }

    /// Rows that there are to play.
    pub fn rows(&self) -> usize {
        let opponents = self.against.iter().map(|opponent| opponent.rows().len());
        self.policies().len() + opponents.sum::<usize>()
    }

    /// Whether all rows have played all seeds.
    pub fn is_complete(&self, rows: &[PlayedRow]) -> bool {
        rows.len() == self.rows() && rows.iter().all(|row| row.played.len() == self.episodes.len())
    }

    fn row(&self, name: &str) -> PlayedRow {
        PlayedRow {
            name: name.into(),
            is_policy: false,
            steps: self.experiment.task.max_steps,
            found_by: None,
            schedules: None,
            played: Vec::new(),
        }
    }

    /// The policy in every mode; a controller that does not learn once.
    fn policies(&self) -> Vec<(PlayedRow, Entry)> {
        let own = &self.experiment.scenario.policy.controller;
        let policy = |name: String, controller: &str, mode| {
            let row = PlayedRow {
                is_policy: true,
                found_by: self.training,
                ..self.row(&name)
            };
            (row, self.entry(controller, self.policy.clone(), mode))
        };
        if self.policy.is_none() {
            return vec![policy(format!("{own} (the run's)"), own, DecideMode::Sample)];
        }
        let name = |mode| match mode {
            DecideMode::Greedy => "policy (greedy)",
            DecideMode::Sample => "policy (sampled)",
        };
        let modes = self.modes.iter();
        modes.map(|&mode| policy(name(mode).into(), LEARNED, mode)).collect()
    }

    /// One that decides for itself.
    fn opponent(&self, opponent: &Opponent, blind: Option<&Blind>) -> (PlayedRow, Entry) {
        let controller = match (opponent, blind) {
            (Opponent::Controller(name), _) => name,
            (_, Some(blind)) => blind.controller(),
            (_, None) => "wait",
        };
        let mut entry = self.entry(controller, None, DecideMode::Sample);
        if let (Opponent::Blind, Some(blind)) = (opponent, blind) {
            entry.experiment.scenario.policy.schedule = blind.schedule.clone();
        }
        (self.row(&opponent.rows()[0]), entry)
    }

    fn entry(&self, controller: &str, policy: Option<SavedFolder>, mode: DecideMode) -> Entry {
        Entry {
            experiment: self.experiment.clone(),
            candidate: Candidate {
                controller: controller.into(),
                policy,
                mode,
                seeds: None,
            },
        }
    }

    fn play_widened(
        &self,
        name: &str,
        reference: &PlayedRow,
        report: &mut ReportStudy,
    ) -> Result<Option<Vec<PlayedRow>>, StudyError> {
        let row = self.row(name);
        let mut entry = self.ungrown(row.steps, InitialSeeds::Same(Vec::new()));
        let failed = |failure: Failure| named(name, failure.during("opponent", Position::default()));
        let names = self.extension.names();
        let names = names.map_err(|error| failed(Failure::message(error.to_string())))?;
        let wider = widen(&mut entry.experiment, &names.hosts, reference.param_ratio()).map_err(failed)?;
        let Some(mut row) = self.fill(row, |_| entry.clone(), report)? else {
            return Ok(None);
        };
        // Sizes are those of the scenario's host.
        let outcomes = row.played.iter_mut().flat_map(|played| &mut played.outcomes);
        outcomes.for_each(|outcome| outcome.param_ratio *= wider);
        Ok(Some(vec![row]))
    }

    /// How many steps equal compute and equal seconds are follows from what a step takes.
    fn play_from_scratch(
        &self,
        names: &[String],
        reference: &PlayedRow,
        report: &mut ReportStudy,
    ) -> Result<Option<Vec<PlayedRow>>, StudyError> {
        let mut rows: Vec<PlayedRow> = Vec::new();
        for (name, of) in names.iter().zip([
            None,
            Some(PlayedRow::macs as fn(&PlayedRow) -> f64),
            Some(PlayedRow::seconds),
        ]) {
            let mut row = self.row(name);
            if let (Some(of), Some(epochs)) = (of, rows.first()) {
                let ratio = of(reference) / of(epochs);
                row.steps = ((f64::from(row.steps) * ratio).round() as u32).max(1);
            }
            let steps = row.steps;
            match self.fill(row, |seed| self.ungrown(steps, reference.architectures(seed)), report)? {
                Some(row) => rows.push(row),
                None => return Ok(None),
            }
        }
        Ok(Some(rows))
    }

    /// Plays the episodes of all seeds; `entry` says who plays those of the `k`-th. `None` if it was stopped.
    fn fill(
        &self,
        mut row: PlayedRow,
        entry: impl Fn(usize) -> Entry,
        report: &mut ReportStudy,
    ) -> Result<Option<PlayedRow>, StudyError> {
        for (index, episodes) in self.episodes.iter().enumerate() {
            let Some(played) = self.play_entry(&row.name, entry(index), episodes, true, report)? else {
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
        is_row: bool,
        report: &mut ReportStudy,
    ) -> Result<Option<PlayedEpisodes>, StudyError> {
        let Entry {
            mut experiment,
            candidate,
        } = entry;
        experiment.scenario.run.keep = Keep::None;
        let seed = episodes.seed;
        report(StudyEvent::Enters { name, seed });
        let step = |_: &mut World| report(StudyEvent::Steps(episodes.envs));
        let played = play_until(experiment, self.extension, &candidate, episodes, self.stop, step);
        let played = played.map_err(|error| named(name, error))?;
        if self.stop.is_requested() && played.outcomes.len() < episodes.count() {
            return Ok(None);
        }
        let leaves = StudyEvent::Leaves {
            played: &played,
            is_row,
        };
        report(leaves);
        Ok(Some(played))
    }

    /// Nothing grows: episodes begin with these seeds and take `steps` steps. Seeds about which nothing is decided are not
    /// measured, so they add no cost.
    fn ungrown(&self, steps: u32, seeds: InitialSeeds) -> Entry {
        let mut entry = self.entry("wait", None, DecideMode::Sample);
        entry.candidate.seeds = Some(seeds);
        let task = &mut entry.experiment.task;
        task.max_steps = steps;
        // It learns from scratch, and given weights are those of the host as wide as it is.
        (task.weights, task.freeze) = (None, None);
        entry.experiment.scenario.run.early_stop = None;
        entry.experiment.scenario.attribution.include_committed = false;
        entry
    }

    fn scheduled(&self, schedule: PeriodicConfig) -> Entry {
        let mut entry = self.entry("periodic", None, DecideMode::Sample);
        entry.experiment.scenario.policy.periodic = schedule;
        entry
    }

    /// The best of the schedules that are drawn play.
    fn play_schedules(&self, names: &[String], report: &mut ReportStudy) -> Result<Option<Vec<PlayedRow>>, StudyError> {
        let Some(found) = self.find_schedules(report)? else {
            return Ok(None);
        };
        let mut rows = Vec::new();
        for (schedule, name) in found.best.into_iter().zip(names) {
            let row = PlayedRow {
                schedules: Some(found.tried),
                found_by: Some(found.spent),
                ..self.row(name)
            };
            let entry = self.scheduled(schedule);
            let Some(row) = self.fill(row, |_| entry.clone(), report)? else {
                return Ok(None);
            };
            rows.push(row);
        }
        Ok(Some(rows))
    }

    /// Draws schedules and plays each for a round, until there are enough of them, or they have taken what the policy's
    /// training took. `None` if it was stopped.
    fn find_schedules(&self, report: &mut ReportStudy) -> Result<Option<FoundSchedules>, StudyError> {
        let (slots, max_steps) = (self.experiment.layout.len(), self.experiment.task.max_steps);
        let allowed = &self.experiment.scenario.policy.masks.action_space;
        let round = Episodes {
            seed: self.search.seed,
            rounds: 0..1,
            envs: self.experiment.scenario.run.n_envs,
        };
        let draw = |index| self.search.draw(index, slots, max_steps, allowed);
        let price = self.experiment.reward.price;
        let net = |outcome: &EpisodeOutcome| match price {
            Some(price) => outcome.accuracy_minus_price(price),
            None => outcome.accuracy_minus_rent(),
        };
        let (mut best, mut highest) = ([draw(0), draw(0)], [f64::NEG_INFINITY; 2]);
        let (mut gmacs, mut seconds) = (0.0, 0.0);
        for tried in 1.. {
            let schedule = draw(tried - 1);
            let entry = self.scheduled(schedule.clone());
            let Some(played) = self.play_entry(&format!("schedule {tried}"), entry, &round, false, report)? else {
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
            let is_enough = match (self.search.schedules, self.training.and_then(|training| training.gmacs)) {
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

fn named(name: &str, error: EngineError) -> StudyError {
    let name = name.into();
    StudyError { name, error }
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
    let (task, folder) = (&mut experiment.task, experiment.folder.as_deref());
    let plan = |host: &HostChoice| -> Result<HostPlan, NetworkError> { Ok(hosts.of(host, folder)?.plan(task.classes)) };
    let before = plan(&task.host)?.outline().parameters as f64;
    let host = wider(&task.host, task.classes, (hosts, folder), ratio * before)?;
    let wider = plan(&host)?;
    let widened = wider.outline().parameters as f64 / before;
    if host != task.host {
        task.host = host;
    }
    let injections = wider.injection_specs();
    let slots: Vec<_> = experiment.layout.slots().iter().map(|spec| spec.slot).collect();
    experiment.layout = SlotLayout::new(&injections, &slots);
    Ok(widened)
}

/// The host of the same kind just so wide that it has this many parameters or more, or as wide as there are any.
///
/// # Errors
/// A host that comes in one size, but has fewer.
pub fn wider(
    host: &HostChoice,
    classes: i64,
    (hosts, folder): (&HostRegistry, Option<&Path>),
    parameters: f64,
) -> Result<HostChoice, NetworkError> {
    let mut found = host.clone();
    loop {
        let design = hosts.of(&found, folder)?;
        if design.plan(classes).outline().parameters as f64 >= parameters {
            return Ok(found);
        }
        match design.family().and_then(widened) {
            Some(wider) => found = wider,
            None if found == *host => return Err(HostError::NoWider(host.label().into()).into()),
            None => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests;
