//! Workers: they take trials that nobody plays, play them, and write down what came of them, until nothing is left.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::child::{self, ChildEnd, Limits};
use super::file::Evaluation;
use super::folder::SweepFolder;
use super::lease::{Holder, Lease};
use super::outcome::{Results, RungScore, TrialEnd, TrialResult};
use super::plan::{Plan, Trial};
use super::state::{Segment, SweepState, TrialState};
use crate::compare::{EpisodeOutcome, TrainingRecord};
use crate::health::{AtPath, FileError};
use crate::run::StopSignal;
use crate::scenario::EvaluationMode;
use crate::telemetry::ReadError;

/// Between two looks at a folder in which everything is being played by others.
const PAUSE: Duration = Duration::from_millis(500);
/// The end of a process whose worker was killed is awaited for so long.
const ORPHANS: Duration = Duration::from_secs(30);

/// Which part of a sweep a worker begins with: the `index`-th of `count` equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: usize,
    /// At least `index`.
    pub count: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    fn holds(self, trial: usize) -> bool {
        trial % self.count == self.index - 1
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .map(|(index, count)| (index.parse(), count.parse()));
        match numbers {
            Some((Ok(index), Ok(count))) if 1 <= index && index <= count => Ok(Self { index, count }),
            _ => Err(format!("`{text}` is no shard; valid: i/n with 1 <= i <= n, e.g. 2/8")),
        }
    }
}

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkOptions {
    /// What it begins with; when nothing of that is left it helps with the rest.
    pub shard: Shard,
    /// Only this trial.
    pub only: Option<String>,
    /// Trials at once.
    pub parallel: usize,
    /// Worker threads of a trial.
    pub threads: usize,
    /// Whether it ends when nothing is free, instead of waiting for trials whose workers may be lost.
    pub leaves: bool,
}

/// Something that a worker tells.
#[derive(Clone, Debug)]
pub enum Told<'a> {
    /// It has taken a trial.
    Begun(&'a Trial),
    /// A trial has ended.
    Ended(&'a Trial, &'a TrialResult),
    /// A trial has reached a rung, and scored so much.
    Scored(&'a Trial, Segment, f64),
    /// A trial has failed and is tried again.
    Again(&'a Trial, &'a str),
}

/// What a worker fails with; a trial that fails is none of it.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// A file of the sweep.
    #[error("the sweep's folder: {0}")]
    Folder(#[from] FileError),
    /// What a trial has told cannot be read.
    #[error("a trial's events: {0}")]
    Events(#[from] ReadError),
}

/// Works on a sweep until nothing is left of it, or `stop` is asked for.
///
/// # Errors
/// A folder that cannot be read or written.
pub fn work(
    folder: &SweepFolder,
    plan: &Plan,
    options: &WorkOptions,
    stop: &StopSignal,
    tell: &(dyn Fn(Told) + Sync),
) -> Result<(), WorkError> {
    let worker = Worker {
        folder,
        plan,
        options,
        stop,
        tell,
        choosing: Mutex::new(()),
    };
    std::thread::scope(|scope| {
        let players: Vec<_> = (0..options.parallel)
            .map(|_| scope.spawn(|| worker.play_all()))
            .collect();
        let ended = players
            .into_iter()
            .map(|player| player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

struct Worker<'a> {
    folder: &'a SweepFolder,
    plan: &'a Plan,
    options: &'a WorkOptions,
    stop: &'a StopSignal,
    tell: &'a (dyn Fn(Told) + Sync),
    /// One thread at a time looks for a trial.
    choosing: Mutex<()>,
}

/// What a worker does next.
enum Next<'a> {
    Play(&'a Trial, Segment, Lease),
    Wait,
    Over,
}

impl Worker<'_> {
    fn play_all(&self) -> Result<(), WorkError> {
        while !self.stop.is_requested() {
            match self.next()? {
                Next::Play(trial, segment, lease) => self.play(trial, segment, lease)?,
                Next::Wait => std::thread::sleep(PAUSE),
                Next::Over => break,
            }
        }
        Ok(())
    }

    fn next(&self) -> Result<Next<'_>, WorkError> {
        let _choosing = self.choosing.lock().unwrap_or_else(PoisonError::into_inner);
        let state = SweepState::read(self.folder, self.plan)?;
        if state.is_called_off() {
            return Ok(Next::Over);
        }
        let (own, others): (Vec<_>, Vec<_>) = self
            .plan
            .trials
            .iter()
            .enumerate()
            .filter(|(_, trial)| self.options.only.as_ref().is_none_or(|only| *only == trial.id))
            .partition(|(index, _)| self.options.shard.holds(*index));
        let mut is_over = true;
        for (_, trial) in own.into_iter().chain(others) {
            match state.of(trial)? {
                TrialState::Ended(_) => {}
                _ if state.is_given_up(trial) => self.give_up(trial, &state)?,
                TrialState::Waiting(segment) => match state.leases.take(&trial.id)? {
                    // Between the look and the lease somebody may have ended it.
                    Some(lease) if self.is_still_to_do(trial, segment)? => {
                        return Ok(Next::Play(trial, segment, lease));
                    }
                    Some(lease) => lease.release()?,
                    None => is_over = false,
                },
                TrialState::Playing(_) | TrialState::AtRung(_) => is_over = false,
            }
        }
        Ok(if is_over || self.options.leaves {
            Next::Over
        } else {
            Next::Wait
        })
    }

    fn is_still_to_do(&self, trial: &Trial, segment: Segment) -> Result<bool, FileError> {
        let results = Results::read(self.folder)?;
        Ok(results.end(&trial.id).is_none() && !results.has_rung(&trial.id, segment.rung))
    }

    /// A trial that others have left behind at a rung.
    fn give_up(&self, trial: &Trial, state: &SweepState) -> Result<(), WorkError> {
        let training = TrainingRecord::of_run(&self.folder.trial(&trial.id))?;
        let played_s = match state.leases.holder(&trial.id)? {
            Holder::Lost(Some(lease)) | Holder::Playing(lease) => lease.played_s,
            Holder::Lost(None) | Holder::Nobody => 0.0,
        };
        let result = TrialResult {
            training: Some(training),
            ..TrialResult::new(TrialEnd::GivenUp, state.leases.newest(&trial.id), played_s)
        };
        result.write(self.folder, &trial.id)?;
        (self.tell)(Told::Ended(trial, &result));
        Ok(())
    }

    /// Plays a segment, as often as it may fail; the lease is let go at the end.
    fn play(&self, trial: &Trial, segment: Segment, mut lease: Lease) -> Result<(), WorkError> {
        (self.tell)(Told::Begun(trial));
        let allowed = (Results::read(self.folder)?.retried(&trial.id) + 1) * (self.plan.sweep.budget.retries + 1);
        loop {
            let began = Instant::now();
            let ended = self.play_once(trial, segment, &lease)?;
            lease.content.played_s += began.elapsed().as_secs_f64();
            let (reason, timed_out, is_final) = match ended {
                Attempt::Done(training) if segment.is_last => {
                    let result = TrialResult {
                        training: Some(training),
                        ..TrialResult::new(TrialEnd::Done, lease.attempt(), lease.content.played_s)
                    };
                    result.write(self.folder, &trial.id)?;
                    (self.tell)(Told::Ended(trial, &result));
                    break;
                }
                Attempt::Done(training) => {
                    let score = training.rolling_accuracy().unwrap_or(f64::NEG_INFINITY);
                    RungScore { score }.write(self.folder, &trial.id, segment.rung)?;
                    (self.tell)(Told::Scored(trial, segment, score));
                    break;
                }
                Attempt::LetGo => break,
                Attempt::Failed {
                    reason,
                    timed_out,
                    is_final,
                } => (reason, timed_out, is_final),
            };
            lease.content.failures += 1;
            if !lease.renew()? {
                break;
            }
            if !is_final && lease.content.failures < allowed {
                (self.tell)(Told::Again(trial, &reason));
                continue;
            }
            let result = TrialResult {
                reason: Some(reason),
                timed_out,
                training: TrainingRecord::of_run(&self.folder.trial(&trial.id)).ok(),
                ..TrialResult::new(TrialEnd::Failed, lease.attempt(), lease.content.played_s)
            };
            result.write(self.folder, &trial.id)?;
            (self.tell)(Told::Ended(trial, &result));
            break;
        }
        // What was played counts, whoever goes on with it.
        lease.renew()?;
        Ok(lease.release()?)
    }

    fn play_once(&self, trial: &Trial, segment: Segment, lease: &Lease) -> Result<Attempt, WorkError> {
        let waited = Instant::now();
        while child::is_played(self.folder, trial) && waited.elapsed() < ORPHANS {
            std::thread::sleep(PAUSE);
        }
        let arguments = child::arguments(self.folder, self.plan, trial, segment, self.options.threads)?;
        match self.run(trial, &arguments, lease)? {
            ChildEnd::Done => {}
            other => return Ok(Attempt::from(other)),
        }
        let resolved = self.folder.trial(&trial.id).join("resolved.ron");
        if blake3::hash(&std::fs::read(&resolved).at(&resolved)?).to_hex().as_str() != trial.hash {
            return Ok(Attempt::Failed {
                reason: format!(
                    "{} is not the scenario that was planned: this is another version of simic-engine than the one that \
                     planned the sweep",
                    resolved.display()
                ),
                timed_out: false,
                is_final: true,
            });
        }
        let mut training = TrainingRecord::of_run(&self.folder.trial(&trial.id))?;
        if let (Some(evaluation), true) = (&self.plan.sweep.evaluation, segment.is_last) {
            let place = self.folder.trial(&trial.id).join("evaluation.json");
            let arguments = evaluation.arguments(&self.folder.trial(&trial.id), &place, self.options.threads);
            match self.run(trial, &arguments, lease)? {
                ChildEnd::Done => training.evaluated(read_episodes(&place)?),
                other => return Ok(Attempt::from(other)),
            }
        }
        Ok(Attempt::Done(training))
    }

    fn run(&self, trial: &Trial, arguments: &[String], lease: &Lease) -> Result<ChildEnd, WorkError> {
        let limits = Limits {
            budget: self.plan.sweep.budget,
            played_s: lease.content.played_s,
        };
        let mut renewed = Instant::now();
        let interval = Duration::from_secs(self.plan.sweep.budget.lease_s) / 5;
        let mut goes_on = || {
            if self.stop.is_requested() {
                return Ok(false);
            }
            if renewed.elapsed() < interval {
                return Ok(true);
            }
            renewed = Instant::now();
            lease.renew()
        };
        Ok(child::play(self.folder, &trial.id, arguments, limits, &mut goes_on)?)
    }
}

/// What came of an attempt.
enum Attempt {
    Done(TrainingRecord),
    Failed {
        reason: String,
        timed_out: bool,
        /// Another attempt would end in the same way.
        is_final: bool,
    },
    LetGo,
}

impl From<ChildEnd> for Attempt {
    fn from(end: ChildEnd) -> Self {
        match end {
            ChildEnd::Done | ChildEnd::LetGo => Self::LetGo,
            ChildEnd::Failed {
                reason,
                is_worth_a_retry,
            } => Self::Failed {
                reason,
                timed_out: false,
                is_final: !is_worth_a_retry,
            },
            ChildEnd::OverLimit { reason, timed_out } => Self::Failed {
                reason,
                timed_out,
                is_final: true,
            },
        }
    }
}

impl Evaluation {
    /// What evaluates the run at `directory` and writes the outcome to `place`.
    fn arguments(&self, directory: &Path, place: &Path, threads: usize) -> Vec<String> {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let mode = match self.mode {
            EvaluationMode::Greedy => "--greedy",
            EvaluationMode::Sample => "--sample",
        };
        let words = [
            "eval",
            &directory.to_string_lossy(),
            "--controllers",
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

/// The episodes of an evaluation, as `eval --save` writes it.
fn read_episodes(place: &Path) -> Result<Vec<EpisodeOutcome>, FileError> {
    #[derive(Deserialize)]
    struct Evaluated {
        players: Vec<Player>,
    }
    #[derive(Deserialize)]
    struct Player {
        episodes: Vec<EpisodeOutcome>,
    }
    let evaluated: Evaluated = serde_json::from_slice(&std::fs::read(place).at(place)?).at(place)?;
    Ok(evaluated
        .players
        .into_iter()
        .flat_map(|player| player.episodes)
        .collect())
}
