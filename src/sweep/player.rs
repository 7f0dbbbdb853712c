//! Plays a segment of a trial for a worker: by processes of this program, which it watches.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::child::{self, Attempt};
use super::file::{Evaluation, EvaluationMode};
use super::folder::SweepFolder;
use super::lease::Lease;
use super::place::{Place, Shelf};
use super::plan::{Plan, Trial};
use super::state::TrialSegment;
use crate::checkpoint::{CheckpointId, Checkpoints};
use crate::compare::{EpisodeOutcome, TrainingRecord};
use crate::health::{AtPath, FileError};
use crate::run::StopSignal;
use crate::telemetry::ReadError;

/// Trials in a row that its machine or folder did not let run, after which a worker ends.
pub(super) const MOST_MISPLACED: u32 = 10;
/// Between two looks at a process that is awaited.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for the end of a process whose worker was killed.
const ORPHANS: Duration = Duration::from_secs(30);

/// Errors of a worker. A failed trial isn't one of them.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// A file of the sweep.
    #[error("the sweep's folder: {0}")]
    Folder(#[from] FileError),
    /// Events of a trial that cannot be read.
    #[error("a trial's events: {0}")]
    Events(#[from] ReadError),
    /// No trial can be played where the sweep is; none of them has failed.
    #[error(
        "{0}\nno trial could be played here, {MOST_MISPLACED} times in a row; remove the cause, then repeat the command"
    )]
    Place(String),
}

/// Plays trials that a worker holds the leases of.
pub trait Player: Sync {
    /// Plays a segment of a trial, for as long as the lease can be renewed.
    ///
    /// # Errors
    /// A file of the trial, or the lease, that cannot be read or written.
    fn play(&self, trial: &Trial, segment: TrialSegment, lease: &mut Lease) -> Result<Attempt, WorkError>;

    /// The newest checkpoint of a trial, if one can be read.
    fn newest_checkpoint(&self, trial: &Trial) -> Option<CheckpointId>;

    /// The result of the played part of a trial.
    ///
    /// # Errors
    /// Its events cannot be read.
    fn training(&self, trial: &Trial) -> Result<TrainingRecord, ReadError>;
}

/// Processes of this program on this machine.
pub struct Processes<'a> {
    /// Folder of the sweep.
    pub folder: &'a SweepFolder,
    /// Plan of the sweep.
    pub plan: &'a Plan,
    /// Worker threads of a trial.
    pub threads: usize,
    /// This program.
    pub program: &'a Path,
    /// Ends the played trials.
    pub stop: &'a StopSignal,
}

impl Player for Processes<'_> {
    fn play(&self, trial: &Trial, segment: TrialSegment, lease: &mut Lease) -> Result<Attempt, WorkError> {
        let waited = Instant::now();
        while child::is_played(self.folder, trial) && waited.elapsed() < ORPHANS {
            std::thread::sleep(PAUSE);
        }
        let fence = self.folder.path_of(Shelf::Leases, &lease.successor());
        let arguments = child::arguments(self.folder, self.plan, trial, segment, self.threads, &fence);
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Attempt::SetBack(error.to_string())),
        };
        if let Some(ended) = self.run(trial, &arguments, lease)? {
            return Ok(ended);
        }
        let directory = self.folder.trial(&trial.id);
        if let Some(reason) = unplanned(&directory, trial)? {
            return Ok(Attempt::Failed {
                reason,
                timed_out: false,
                is_final: true,
            });
        }
        let mut training = TrainingRecord::of_run(&directory)?;
        if let (Some(evaluation), true) = (&self.plan.sweep.evaluation, segment.is_last) {
            let place = directory.join("evaluation.json");
            let arguments = evaluation.arguments(&directory, &place, self.threads);
            if let Some(ended) = self.run(trial, &arguments, lease)? {
                return Ok(ended);
            }
            (training.episodes, training.is_evaluated) = (read_episodes(&place)?, true);
        }
        Ok(Attempt::Done(Box::new(training)))
    }

    fn newest_checkpoint(&self, trial: &Trial) -> Option<CheckpointId> {
        let there = Checkpoints::of(&self.folder.trial(&trial.id)).list();
        there.ok().and_then(|there| there.first().copied())
    }

    fn training(&self, trial: &Trial) -> Result<TrainingRecord, ReadError> {
        TrainingRecord::of_run(&self.folder.trial(&trial.id))
    }
}

impl Processes<'_> {
    fn run(&self, trial: &Trial, arguments: &[String], lease: &mut Lease) -> Result<Option<Attempt>, WorkError> {
        let limits = (self.plan.sweep.budget, lease.content.played_s);
        let mut renewed = Instant::now();
        let interval = self.plan.lease() / 5;
        let mut may_continue = |pid| {
            if self.stop.is_requested() {
                return Ok(false);
            }
            if !lease.names_player(pid) && renewed.elapsed() < interval {
                return Ok(true);
            }
            renewed = Instant::now();
            lease.renew()
        };
        let (sweep, program) = (self.folder, self.program);
        let failed = child::play(sweep, &trial.id, program, arguments, limits, &mut may_continue)?;
        Ok(failed)
    }
}

/// The reason why the run at `directory` is not the one that was planned.
fn unplanned(directory: &Path, trial: &Trial) -> Result<Option<String>, FileError> {
    let resolved = directory.join("resolved.ron");
    let hash = blake3::hash(&crate::files::read(&resolved).at(&resolved)?).to_hex();
    Ok((hash.as_str() != trial.hash).then(|| {
        format!(
            "{} isn't the planned scenario: this version of simic-engine differs from the one that planned the sweep",
            resolved.display()
        )
    }))
}

impl Evaluation {
    /// Arguments of the process that evaluates the run at `directory` and writes the outcome to `place`.
    fn arguments(&self, directory: &Path, place: &Path, threads: usize) -> Vec<String> {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let mode = match self.mode {
            EvaluationMode::Greedy => "--greedy",
            EvaluationMode::Sample => "--sample",
        };
        let words = [
            "eval",
            &directory.to_string_lossy(),
            "--against",
            "none",
            mode,
            "--episodes",
            &self.episodes.to_string(),
            "--seed",
            &seeds.join(","),
            "--save",
            &place.to_string_lossy(),
            "--threads",
            &threads.to_string(),
            "--ends-with-input",
        ];
        words.map(String::from).to_vec()
    }
}

/// The episodes of an evaluation of a single player, as `eval --save` writes it.
fn read_episodes(place: &Path) -> Result<Vec<EpisodeOutcome>, FileError> {
    let mut evaluated: Value = serde_json::from_slice(&crate::files::read(place).at(place)?).at(place)?;
    let episodes = evaluated.pointer_mut("/players/0/episodes").map(Value::take);
    serde_json::from_value(episodes.unwrap_or_default()).at(place)
}
