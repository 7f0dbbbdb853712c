//! The lives of a run: it is interrupted, and continues in another engine, until it is over.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use simic_engine::internals::checkpoint::{CheckpointError, CheckpointId, CheckpointName, Checkpoints, ResumeError};
use simic_engine::internals::engine::{Names, RunReport};
use simic_engine::internals::keep::{KeptFile, NetworkShelf};
use simic_engine::internals::record::Recording;
use simic_engine::internals::run::{DriverStep, RoundLimit, StopRequest};
use simic_engine::internals::storage::{Fault, StorageFaults};
use simic_engine::prelude::*;

use super::application::register;
use super::laws::Broken;
use super::record;
use super::shared::{files, unpaired};
use crate::recorded::resumed;
use crate::support::{builder, first_difference, lines};

/// No one repairs a storage while the run waits.
const BRIEF_PATIENCE: Duration = Duration::from_millis(1);
/// More than a storage that works ever needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Folders whose files are the same byte for byte.
const EXACT: [&str; 2] = ["networks/", "episodes.traj/"];

/// Columns of the matrix: how a run is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// It is asked to stop, and leaves its round unfinished.
    StopInside,
    /// It stops after a round.
    StopBetween,
    /// Its process ends without a shutdown, and the one that resumes it, too.
    Dropped,
    /// It is stopped, taken back to its oldest checkpoint, and ends without a shutdown a step later.
    TakenBack,
    /// It is asked to stop inside a round, and is resumed with another number of threads.
    OtherThreads,
    /// An operation on its files fails, or is the last of its process.
    Storage(Fault),
}

/// With their names.
const COLUMNS: [(Interruption, &str); 11] = [
    (Interruption::StopInside, "stopped inside a round"),
    (Interruption::StopBetween, "stopped between rounds"),
    (Interruption::Dropped, "dropped twice"),
    (Interruption::TakenBack, "taken back"),
    (Interruption::OtherThreads, "other threads"),
    (Interruption::Storage(Fault::InputOutput), "failing operation"),
    (Interruption::Storage(Fault::NoSpace), "full disk"),
    (Interruption::Storage(Fault::ReadOnly), "read-only disk"),
    (Interruption::Storage(Fault::Kill), "killed"),
    (Interruption::Storage(Fault::Torn), "killed within a write"),
    (Interruption::Storage(Fault::PowerCut), "lost pages"),
];

impl Interruption {
    pub fn all() -> [Self; 11] {
        COLUMNS.map(|(column, _)| column)
    }

    pub fn name(self) -> &'static str {
        let named = COLUMNS.into_iter().find(|(column, _)| *column == self);
        named.map_or("", |(_, name)| name)
    }

    /// The end of a run's first life, and of the second if it isn't the last; threads of the first, and of the others.
    fn lives(self, whole: &Whole, when: Moment) -> (Until, Option<(Start, Until)>, [usize; 2]) {
        let inside = when.among(whole.steps - 1);
        // After the first round, so that there is something to forget.
        let late = inside.max(whole.steps / whole.rounds + 1);
        match self {
            Self::StopInside => (Until::Stop(inside), None, [2, 2]),
            Self::StopBetween => (Until::Rounds(when.among(whole.rounds - 1) as u32), None, [2, 2]),
            Self::Dropped => (Until::Drop(inside), Some((Start::Newest, Until::Drop(2))), [2, 2]),
            Self::TakenBack => (Until::Stop(late), Some((Start::Oldest, Until::Drop(1))), [2, 2]),
            Self::OtherThreads => (Until::Stop(inside), None, [1, 3]),
            Self::Storage(_) => (Until::End, None, [2, 2]),
        }
    }
}

/// The time of an interruption: this part of `of` equal ones of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub part: u64,
    pub of: u64,
}

impl Moment {
    /// A number from 1 to `count`.
    fn among(self, count: u64) -> u64 {
        1 + count * self.part / self.of
    }
}

/// The checkpoint that a life begins with.
#[derive(Clone, Copy, Debug)]
enum Start {
    Newest,
    /// The oldest one between rounds.
    Oldest,
}

/// End of a life; all but one leave another to follow.
#[derive(Clone, Copy, Debug)]
enum Until {
    End,
    Stop(u64),
    Rounds(u32),
    Drop(u64),
}

/// A run that was left alone.
pub struct Whole {
    run: PathBuf,
    steps: u64,
    rounds: u64,
    operations: u64,
}

/// The end of one life.
struct Ended {
    /// `None` of one that was dropped.
    report: Option<RunReport>,
    steps: u64,
    rounds: u64,
    /// The newest checkpoint that the life knew to be on disk.
    kept: Option<CheckpointId>,
}

impl Ended {
    fn failure(&self) -> Option<String> {
        let failure = self.report.as_ref()?.failure.as_ref()?;
        Some(failure.to_string())
    }

    /// # Errors
    /// It came to its end.
    fn is_stopped(&self) -> Result<(), String> {
        match &self.report {
            Some(report) if report.stopped_by.is_none() => Err(format!("it was not stopped: {:?}", self.failure())),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// Something can't be kept, and nothing says so.
    fn tells_of(&self, fault: Fault, storage: &Path) -> Result<(), String> {
        let Some(failure) = self.failure() else { return Ok(()) };
        let has_gaps = self.report.as_ref().is_some_and(|report| !report.gaps.is_empty());
        let is_reported = fault.is_deadly() || has_gaps || blames(&failure, storage);
        is_reported.then_some(()).ok_or(failure)
    }
}

fn blames(failure: &str, storage: &Path) -> bool {
    failure.contains(&*storage.to_string_lossy())
}

/// A scenario, and the names that it may use.
pub struct Stage<'a> {
    pub scenario: &'a str,
    pub names: &'a Names,
    /// An event that the run must tell.
    pub shows: &'a str,
}

impl Stage<'_> {
    /// Plays the run in `home` and leaves it alone.
    ///
    /// # Errors
    /// A problem with it.
    pub fn whole(&self, home: &Path) -> Result<Whole, String> {
        let faults = StorageFaults::under(home, u64::MAX, Fault::InputOutput);
        let run = home.join("runs/run");
        let ended = live(self.begin(home, PATIENCE, 2)?, Until::End, &faults, &run)?;
        if let Some(failure) = ended.failure() {
            return Err(format!("left alone it fails: {failure}"));
        }
        self.check(&run)?;
        Ok(Whole {
            run,
            steps: ended.steps,
            rounds: ended.rounds,
            operations: faults.operations(),
        })
    }

    /// Plays the run in `home`, interrupted at that moment, and compares it with the one that was left alone.
    ///
    /// # Errors
    /// A problem, or a difference.
    pub fn interrupted(&self, whole: &Whole, how: Interruption, when: Moment, home: &Path) -> Result<(), String> {
        let (first, second, threads) = how.lives(whole, when);
        let life = home.join("life-0");
        let storage = life.join("runs");
        let (fault, strikes_at) = match how {
            Interruption::Storage(fault) => (Some(fault), when.among(whole.operations - 1)),
            _ => (None, u64::MAX),
        };
        let faults = StorageFaults::under(&storage, strikes_at, fault.unwrap_or(Fault::InputOutput));
        let kept = match self.begin(&life, BRIEF_PATIENCE, threads[0]) {
            Ok(engine) => {
                let ended = live(engine, first, &faults, &storage.join("run"))?;
                match fault {
                    Some(fault) => ended.tells_of(fault, &storage)?,
                    None => ended.is_stopped()?,
                }
                ended.kept
            }
            Err(refusal) if blames(&refusal, &storage) || fault.is_some_and(Fault::is_deadly) => None,
            Err(refusal) => return Err(refusal),
        };
        let what = match (fault, faults.struck()) {
            // How often the status is written depends on the time that a run takes.
            (Some(_), None) if strikes_at + 5 > whole.operations => return Ok(()),
            (Some(_), None) => return Err(format!("operation {strikes_at} was not struck")),
            (_, Some(struck)) => struck.replace(&format!("{}/", storage.display()), ""),
            (None, None) => format!("{first:?}"),
        };
        // Threads of an earlier life linger, and find their storage dead.
        drop(faults);
        let _dead = StorageFaults::under(&storage, 1, Fault::Kill);
        let next = home.join("life-1");
        std::fs::rename(&life, &next).map_err(|error| format!("{}: {error}", life.display()))?;
        // A storage that fails may leave gaps; everything else, nothing that is half of it.
        if kept.is_some()
            && fault.is_none_or(Fault::is_deadly)
            && let Some(problem) = record::problem(&next.join("runs/run"), &self.names.catalog)
        {
            return Err(format!("{what}: {problem}"));
        }
        let resumed = self.resume(&next, second, threads[1], kept);
        let compared = resumed.and_then(|run| self.compare(whole, &run));
        compared.map_err(|why| format!("{what}: {why}"))
    }

    /// Resumes the run in `home` until it is over, and gives its folder; `kept` was on disk.
    fn resume(
        &self,
        home: &Path,
        again: Option<(Start, Until)>,
        threads: usize,
        kept: Option<CheckpointId>,
    ) -> Result<PathBuf, String> {
        let run = home.join("runs/run");
        let shelf = Checkpoints::of(&run);
        let there = shelf.ids();
        for &id in &there {
            // It appears whole under its name or not at all.
            let opened = shelf.open(id);
            opened.map_err(|error| format!("half of a checkpoint: {error}"))?;
        }
        if there.first() < kept.as_ref() {
            return Err(format!("a checkpoint is lost: {kept:?}, there are {there:?}"));
        }
        let faults = StorageFaults::under(home, u64::MAX, Fault::InputOutput);
        if let Some((start, until)) = again {
            let oldest = there.iter().rfind(|id| !id.is_inside_round());
            let from = match (start, oldest) {
                (Start::Oldest, Some(id)) => CheckpointName::Round(id.round),
                _ => CheckpointName::Last,
            };
            let engine = resumed(&run, from, register, threads).map_err(|error| error.to_string())?;
            live(engine, until, &faults, &run)?;
            let networks = NetworkShelf::of(&run).list().map_err(|error| error.to_string())?;
            let of_later = |file: &KeptFile| oldest.is_some_and(|id| file.round >= id.round);
            if let (Start::Oldest, Some(file)) = (start, networks.into_iter().find(of_later)) {
                return Err(format!("left of a round to be played: {}", file.path.display()));
            }
        }
        let engine = match resumed(&run, CheckpointName::Last, register, threads) {
            Ok(engine) => engine,
            // Nothing was kept: it is begun again.
            Err(
                ResumeError::NoRun(_)
                | ResumeError::NoCheckpoint(_)
                | ResumeError::Checkpoint(CheckpointError::None(_))
                | ResumeError::File(_)
                | ResumeError::Directory(_),
            ) if kept.is_none() => {
                if run.exists() {
                    std::fs::remove_dir_all(&run).map_err(|error| format!("{}: {error}", run.display()))?;
                }
                self.begin(home, PATIENCE, threads)?
            }
            Err(refusal) => return Err(refusal.to_string()),
        };
        match live(engine, Until::End, &faults, &run)?.failure() {
            Some(failure) => Err(format!("resumed it fails: {failure}")),
            None => Ok(run),
        }
    }

    /// In a folder that is there, as its name is not watched and would be lost with the power.
    fn begin(&self, home: &Path, outage_patience: Duration, threads: usize) -> Result<Engine, String> {
        let root = home.join("runs");
        std::fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        let recording = Recording {
            id: Some("run".into()),
            outage_patience,
            ..Recording::under(&root)
        };
        let builder = builder().with(register).threads(threads).recording(recording);
        builder.from_ron(self.scenario).map_err(|problems| problems.to_string())
    }

    /// The laws of a record hold, and it tells what it is about.
    fn check(&self, run: &Path) -> Result<(), String> {
        let mut events = lines(run);
        events.retain(|event| event["type"] != "header");
        if !events.iter().any(|event| event["type"] == self.shows) {
            return Err(format!("the run tells no {}", self.shows));
        }
        let broken = record::broken_law(&events).or_else(|| record::problem(run, &self.names.catalog));
        broken.map_or(Ok(()), Err)
    }

    /// Scenario, events, checkpoints, and the names of all files are the same; of some folders every byte.
    fn compare(&self, whole: &Whole, run: &Path) -> Result<(), String> {
        self.check(run)?;
        if let Some(difference) = first_difference(&whole.run, run) {
            return Err(difference.to_string());
        }
        let (ours, theirs) = (files(&whole.run), files(run));
        let left = unpaired(&ours, &theirs);
        if !left.is_empty() {
            return Err(format!("too many or too few of {left:?}"));
        }
        let differs = |name: &&String| std::fs::read(&ours[*name]).ok() != std::fs::read(&theirs[*name]).ok();
        let is_exact = |name: &&String| EXACT.iter().any(|folder| name.starts_with(folder));
        match ours.keys().filter(is_exact).find(differs) {
            Some(name) => Err(format!("{name} differs")),
            None => Ok(()),
        }
    }
}

/// Plays on, and stops, or lets go, as `until` says.
fn live(mut engine: Engine, until: Until, faults: &StorageFaults, run: &Path) -> Result<Ended, String> {
    if let Until::Rounds(rounds) = until {
        engine.world_mut().insert_resource(RoundLimit(rounds));
    }
    let (mut steps, mut rounds, mut kept) = (0, 0, None);
    let report = loop {
        match engine.advance() {
            ControlFlow::Break(report) => break Some(report),
            ControlFlow::Continue(DriverStep::StepPlayed) => steps += 1,
            ControlFlow::Continue(DriverStep::RoundEnded) => rounds += 1,
            ControlFlow::Continue(_) => {}
        }
        if faults.struck().is_none() {
            kept = on_disk(run);
        }
        match until {
            Until::Stop(after) if after == steps => {
                engine.world().resource::<StopSignal>().request(StopRequest::Interrupt);
            }
            Until::Drop(after) if after == steps => break None,
            _ => {}
        }
    };
    let broken = engine.world_mut().remove_resource::<Broken>().unwrap_or_default();
    match broken.0.into_iter().next() {
        Some(law) => Err(law),
        None => Ok(Ended {
            report,
            steps,
            rounds,
            kept,
        }),
    }
}

/// The newest checkpoint, looked for outside the watched storage.
fn on_disk(run: &Path) -> Option<CheckpointId> {
    let entries = std::fs::read_dir(run.join("checkpoints")).ok()?.flatten();
    let ids = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let name = name.strip_prefix("round-")?;
        let (round, step) = name.split_once("-step-").unwrap_or((name, "0"));
        let (round, step) = (round.parse().ok()?, step.parse().ok()?);
        Some(CheckpointId { round, step })
    });
    ids.max()
}
