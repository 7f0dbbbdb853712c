//! Plays a policy and its opponents, each on the episodes of every seed: first the players that decide for themselves, seed by
//! seed, so that what is played until a stop compares all of them; then those that follow from what the policy has played.

use std::collections::BTreeMap;

use bevy_ecs::world::World;
use serde::Serialize;

use super::blind::Blind;
use super::equal::{equal_steps, widen};
use super::opponents::{LEARNED, Opponent};
use super::search::{Search, Spent};
use crate::compare::statistics::mean;
use crate::compare::{Candidate, EpisodeOutcome, Episodes, PlayedEpisodes, play_until};
use crate::controller::SavedFolder;
use crate::engine::Extension;
use crate::env::{Experiment, InitialSeeds};
use crate::health::{EngineError, Failure, Position};
use crate::policy::DecideMode;
use crate::run::StopSignal;
use crate::scenario::{Keep, PeriodicConfig};

/// A policy, its scenario, and its opponents.
pub struct Study<'a> {
    /// The scenario's experiment.
    pub experiment: Experiment,
    /// The application's additions to the engine.
    pub extension: &'a Extension,
    /// The policy. `None` for a run whose controller learns nothing, and takes the policy's place.
    pub policy: Option<SavedFolder>,
    /// The modes in which the policy chooses, a row each. At least one.
    pub modes: Vec<DecideMode>,
    /// The opponents, each once.
    pub against: Vec<Opponent>,
    /// One entry a seed, at least one.
    pub episodes: Vec<Episodes>,
    /// The search for [`Opponent::Schedules`]. Its seed is also that of the hosts on which the blind schedule is taken.
    pub search: Search,
    /// Compute and time of the policy's training; `None` for a policy without its run.
    pub training: Option<Spent>,
    /// Rounds that the policy was trained in.
    pub training_rounds: u32,
    /// The signal that ends the study.
    pub stop: &'a StopSignal,
}

/// Events of a study that plays its rows one after another.
pub enum PlayEvent<'a> {
    /// A note about the following rows.
    Note(&'a str),
    /// One begins.
    Begins {
        /// Its name, and in searches its number and their count.
        name: &'a str,
        /// Share of all that is played; 0 of what comes on top.
        share: f64,
        /// Steps of all its rounds.
        steps: u64,
    },
    /// All envs have played a step.
    Step,
    /// It has been played.
    Ends {
        /// Mean over its episodes, percent of the validation part. For a search for one network, that of the best. `None` if
        /// nothing was measured.
        accuracy: Option<f64>,
        /// `true` if an earlier process played it, and it was read back.
        is_kept: bool,
    },
}

/// A receiver of events.
pub type Report<'r> = dyn FnMut(PlayEvent) + 'r;

/// The reason why something could not play.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {error}")]
pub struct StudyError {
    /// Name of the row.
    pub name: String,
    /// The error. Without a round in its position, it came before anything was played.
    pub error: EngineError,
}

/// Cost of a player.
#[derive(Clone, Serialize)]
pub struct Cost {
    /// Name of the player in tables.
    pub name: String,
    /// Steps of an episode. It may end sooner.
    pub steps: u32,
    /// Mean wall time of an episode; those of a seed were played side by side. 0 until all of them have been played.
    pub seconds: f64,
    /// Schedules that were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedules: Option<u32>,
    /// Cost of finding it: the training of a policy, the search of a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_by: Option<Spent>,
}

/// One player's episodes so far.
#[derive(Clone)]
pub struct PlayedRow {
    /// The player and its cost.
    pub cost: Cost,
    /// `true` if it is a policy. The others are its baselines.
    pub is_policy: bool,
    /// One entry a seed.
    pub played: Vec<PlayedEpisodes>,
}

/// A row with its player and its experiment.
#[derive(Clone)]
struct Entry {
    row: PlayedRow,
    experiment: Experiment,
    candidate: Candidate,
    /// The host's parameters over those of the scenario's.
    widened: f64,
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

    /// Wall time of all episodes; those of a seed are played side by side.
    pub fn seconds(&self) -> f64 {
        self.played.iter().map(|played| played.seconds).sum()
    }

    /// Mean at the end of an episode.
    fn param_ratio(&self) -> f64 {
        let ratios: Vec<f64> = self.outcomes().map(|outcome| outcome.param_ratio).collect();
        mean(&ratios)
    }

    /// The networks that stood at the end under one of the seeds, as the start of other episodes.
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

    /// Plays everything. After a stop, it returns the rows and seeds that can be compared, or those of the first seed alone while
    /// it is played.
    ///
    /// # Errors
    /// A controller or policy that does not fit the scenario, or the first failure of a system.
    pub fn play(&self, blind: Option<&Blind>, report: &mut Report) -> Result<Vec<PlayedRow>, StudyError> {
        let mut playing = Playing {
            study: self,
            report,
            begun: 0,
        };
        let mut entries = self.policies();
        let opponents = self.against.iter().filter(|opponent| !opponent.is_derived());
        entries.extend(opponents.map(|opponent| self.opponent(opponent, blind)));
        'playing: for episodes in &self.episodes {
            for entry in &mut entries {
                if !playing.play(entry, episodes)? {
                    break 'playing;
                }
            }
        }
        let mut rows: Vec<PlayedRow> = entries.into_iter().map(|entry| entry.row).collect();
        let seeds = rows.iter().map(|row| row.played.len()).min().unwrap_or(0).max(1);
        rows.retain(|row| row.played.len() >= seeds);
        rows.iter_mut().for_each(|row| row.played.truncate(seeds));
        // Others are compared with drawn actions, where the policy draws any.
        let reference = rows.iter().rfind(|row| row.is_policy).cloned();
        let Some(reference) = reference.filter(|_| !self.stop.is_requested()) else {
            return Ok(rows);
        };
        for opponent in self.against.iter().filter(|opponent| opponent.is_derived()) {
            let played = match opponent {
                Opponent::Widened => playing.fill(self.widened(&reference)?, None)?.map(|row| vec![row]),
                Opponent::FromScratch => playing.play_from_scratch(&reference)?,
                _ => playing.schedules()?,
            };
            match played {
                Some(played) => rows.extend(played),
                None => break,
            }
        }
        Ok(rows)
    }

    /// Number of rows to play.
    pub fn rows(&self) -> usize {
        let policies = self.policy.as_ref().map_or(1, |_| self.modes.len());
        let opponents = self.against.iter().map(|opponent| opponent.rows().len());
        policies + opponents.sum::<usize>()
    }

    /// Returns whether all rows have played all seeds.
    pub fn is_complete(&self, rows: &[PlayedRow]) -> bool {
        rows.len() == self.rows() && rows.iter().all(|row| row.played.len() == self.episodes.len())
    }

    fn entry(&self, name: &str, controller: &str) -> Entry {
        Entry {
            row: PlayedRow {
                cost: Cost {
                    name: name.into(),
                    steps: self.experiment.task.max_steps,
                    seconds: 0.0,
                    schedules: None,
                    found_by: None,
                },
                is_policy: false,
                played: Vec::new(),
            },
            experiment: self.experiment.clone(),
            candidate: Candidate {
                controller: controller.into(),
                policy: None,
                mode: DecideMode::Sample,
                seeds: None,
            },
            widened: 1.0,
        }
    }

    /// The policy in every mode; a controller that does not learn once.
    fn policies(&self) -> Vec<Entry> {
        let own = &self.experiment.scenario.policy.controller;
        let policy = |name: &str, controller: &str, mode| {
            let mut entry = self.entry(name, controller);
            (entry.row.is_policy, entry.row.cost.found_by) = (true, self.training);
            (entry.candidate.policy, entry.candidate.mode) = (self.policy.clone(), mode);
            entry
        };
        if self.policy.is_none() {
            return vec![policy(&format!("{own} (the run's)"), own, DecideMode::Sample)];
        }
        let modes = self.modes.iter().map(|&mode| match mode {
            DecideMode::Greedy => policy("policy (greedy)", LEARNED, mode),
            DecideMode::Sample => policy("policy (sampled)", LEARNED, mode),
        });
        modes.collect()
    }

    /// The row of an opponent that decides for itself.
    fn opponent(&self, opponent: &Opponent, blind: Option<&Blind>) -> Entry {
        let controller = match (opponent, blind) {
            (Opponent::Controller(name), _) => name,
            (_, Some(blind)) => blind.controller(),
            (_, None) => "wait",
        };
        let mut entry = self.entry(&opponent.rows()[0], controller);
        if let (Opponent::Blind, Some(blind)) = (opponent, blind) {
            entry.experiment.scenario.policy.schedule = blind.schedule.clone();
        }
        entry
    }

    fn scheduled(&self, name: &str, schedule: PeriodicConfig) -> Entry {
        let mut entry = self.entry(name, "periodic");
        entry.experiment.scenario.policy.periodic = schedule;
        entry
    }

    /// A host that never grows. Its seeds aren't measured, since no one decides about them, so they add no cost.
    fn ungrown(&self, name: &str) -> Entry {
        let mut entry = self.entry(name, "wait");
        let (task, scenario) = (&mut entry.experiment.task, &mut entry.experiment.scenario);
        // It learns from scratch, and given weights are those of the host's own width.
        (task.weights, task.freeze) = (None, None);
        scenario.run.early_stop = None;
        scenario.attribution.include_committed = false;
        entry
    }

    fn widened(&self, reference: &PlayedRow) -> Result<Entry, StudyError> {
        let name = &Opponent::Widened.rows()[0];
        let mut entry = self.ungrown(name);
        entry.candidate.seeds = Some(InitialSeeds::Same(Vec::new()));
        let failed = |failure: Failure| named(name, failure.during("opponent", Position::default()));
        let names = self.extension.names();
        let names = names.map_err(|error| failed(Failure::message(error.to_string())))?;
        let widened = widen(&mut entry.experiment, &names.hosts, reference.param_ratio());
        entry.widened = widened.map_err(failed)?;
        Ok(entry)
    }
}

/// A study in progress.
struct Playing<'a, 'r> {
    study: &'a Study<'a>,
    report: &'a mut Report<'r>,
    /// Rows whose episodes of a seed have begun.
    begun: usize,
}

impl Playing<'_, '_> {
    /// Adds the episodes of a seed to a row; false if it was stopped.
    fn play(&mut self, entry: &mut Entry, episodes: &Episodes) -> Result<bool, StudyError> {
        let all = self.study.rows() * self.study.episodes.len();
        self.begun += 1;
        let name = format!("{}/{all} {}", self.begun, entry.row.cost.name);
        let Some(mut played) = self.play_episodes(&name, 1.0 / all as f64, entry, episodes)? else {
            return Ok(false);
        };
        // Sizes are those of the scenario's host.
        let outcomes = played.outcomes.iter_mut();
        outcomes.for_each(|outcome| outcome.param_ratio *= entry.widened);
        entry.row.played.push(played);
        Ok(true)
    }

    fn play_episodes(
        &mut self,
        name: &str,
        share: f64,
        entry: &Entry,
        episodes: &Episodes,
    ) -> Result<Option<PlayedEpisodes>, StudyError> {
        let (study, report) = (self.study, &mut *self.report);
        let mut experiment = entry.experiment.clone();
        experiment.scenario.run.keep = Keep::None;
        report(PlayEvent::Begins {
            name: &format!("{name}, seed {}", episodes.seed),
            share,
            steps: episodes.rounds.len() as u64 * u64::from(experiment.task.max_steps),
        });
        let step = |_: &mut World| report(PlayEvent::Step);
        let (extension, stop, by) = (study.extension, study.stop, &entry.candidate);
        let played = play_until(experiment, extension, by, episodes, stop, step);
        let played = played.map_err(|error| named(&entry.row.cost.name, error))?;
        if study.stop.is_requested() && played.outcomes.len() < episodes.count() {
            return Ok(None);
        }
        report(PlayEvent::Ends {
            accuracy: played.mean_of(|outcome| outcome.accuracy),
            is_kept: false,
        });
        Ok(Some(played))
    }

    /// Plays the episodes of all seeds, which begin with the architectures of the row `of`, if there is one. `None` if it was
    /// stopped.
    fn fill(&mut self, mut entry: Entry, of: Option<&PlayedRow>) -> Result<Option<PlayedRow>, StudyError> {
        let study = self.study;
        for (seed, episodes) in study.episodes.iter().enumerate() {
            if let Some(row) = of {
                entry.candidate.seeds = Some(row.architectures(seed));
            }
            if !self.play(&mut entry, episodes)? {
                return Ok(None);
            }
        }
        Ok(Some(entry.row))
    }

    /// Plays networks from scratch. The cost of a step gives the numbers of steps with equal compute and with equal seconds.
    fn play_from_scratch(&mut self, reference: &PlayedRow) -> Result<Option<Vec<PlayedRow>>, StudyError> {
        let mut rows: Vec<PlayedRow> = Vec::new();
        // Equal steps need no measurement: they are the first row.
        let equal: [fn(&PlayedRow) -> f64; 3] = [PlayedRow::macs, PlayedRow::macs, PlayedRow::seconds];
        for (name, of) in Opponent::FromScratch.rows().iter().zip(equal) {
            let mut entry = self.study.ungrown(name);
            if let Some(first) = rows.first() {
                entry.row.cost.steps = equal_steps(of(reference), of(first) / f64::from(first.cost.steps));
                entry.experiment.task.max_steps = entry.row.cost.steps;
            }
            match self.fill(entry, Some(reference))? {
                Some(row) => rows.push(row),
                None => return Ok(None),
            }
        }
        Ok(Some(rows))
    }

    /// Draws schedules and plays each for a round, until there are enough of them, or they have taken as much as the policy's
    /// training. Then the best of them play. `None` if it was stopped.
    fn schedules(&mut self) -> Result<Option<Vec<PlayedRow>>, StudyError> {
        let study = self.study;
        let (slots, max_steps) = (study.experiment.layout.len(), study.experiment.task.max_steps);
        let allowed = &study.experiment.scenario.policy.masks.action_space;
        let round = Episodes {
            seed: study.search.seed,
            rounds: 0..1,
            envs: study.experiment.scenario.run.n_envs,
        };
        let draw = |index| study.search.draw(index, slots, max_steps, allowed);
        let price = study.experiment.reward.price;
        let net = |outcome: &EpisodeOutcome| match price {
            Some(price) => outcome.accuracy_minus_price(price),
            None => outcome.accuracy_minus_rent(),
        };
        let (mut best, mut highest) = ([draw(0), draw(0)], [f64::NEG_INFINITY; 2]);
        let (mut gmacs, mut seconds, mut tried) = (0.0, 0.0, 0);
        let paid = study.training.and_then(|training| training.gmacs);
        let mut is_enough = false;
        while !is_enough {
            tried += 1;
            let (name, schedule) = (format!("schedule {tried}"), draw(tried - 1));
            let entry = study.scheduled(&name, schedule.clone());
            let Some(played) = self.play_episodes(&name, 0.0, &entry, &round)? else {
                return Ok(None);
            };
            gmacs += played.outcomes.iter().filter_map(EpisodeOutcome::gmacs).sum::<f64>();
            seconds += played.seconds;
            let scores = [played.mean_of(|outcome| outcome.accuracy), played.mean_of(net)];
            for ((best, highest), score) in best.iter_mut().zip(&mut highest).zip(scores) {
                // Among equals, the first wins.
                if let Some(score) = score.filter(|score| score > highest) {
                    (*best, *highest) = (schedule.clone(), score);
                }
            }
            is_enough = match (study.search.schedules, paid) {
                (Some(count), _) => tried >= count,
                (None, Some(budget)) => gmacs >= budget,
                (None, None) => tried >= study.training_rounds,
            };
        }
        let gmacs = Some(gmacs);
        let mut rows = Vec::new();
        // By accuracy, and by accuracy less the scenario's price of the size, or less rent where it has none.
        for (schedule, name) in best.into_iter().zip(Opponent::Schedules.rows()) {
            let mut entry = study.scheduled(&name, schedule);
            entry.row.cost.schedules = Some(tried);
            entry.row.cost.found_by = Some(Spent { gmacs, seconds });
            match self.fill(entry, None)? {
                Some(row) => rows.push(row),
                None => return Ok(None),
            }
        }
        Ok(Some(rows))
    }
}

fn named(name: &str, error: EngineError) -> StudyError {
    let name = name.into();
    StudyError { name, error }
}
