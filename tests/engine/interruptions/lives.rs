//! The lives of a run: it is interrupted, and continues in another engine, until it is over.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use simic_engine::internals::checkpoint::{CheckpointError, CheckpointId, CheckpointName, Checkpoints, ResumeError};
use simic_engine::internals::engine::{Names, RunReport};
use simic_engine::internals::record::Recording;
use simic_engine::internals::run::{DriverStep, RoundLimit, StopRequest};
use simic_engine::internals::storage::{Fault, StorageFaults};
use simic_engine::prelude::*;

use super::application::register;
use super::laws::Broken;
use super::record;
use super::shared::{files, unpaired};
use crate::recorded::resumed;
use crate::support::{first_difference, lines};

/// No one repairs a storage while the run waits.
const BRIEF_PATIENCE: Duration = Duration::from_millis(1);
/// Folders whose files are the same byte for byte.
const EXACT: [&str; 2] = ["networks/", "episodes.traj/"];

/// Columns of the matrix: how a run is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// It is asked to stop, and leaves its round unfinished.
    StopInside,
    /// It stops behind a round.
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

impl Interruption {
    pub const ALL: [Self; 11] = [
        Self::StopInside,
        Self::StopBetween,
        Self::Dropped,
        Self::TakenBack,
        Self::OtherThreads,
        Self::Storage(Fault::InputOutput),
        Self::Storage(Fault::NoSpace),
        Self::Storage(Fault::ReadOnly),
        Self::Storage(Fault::Kill),
        Self::Storage(Fault::Torn),
        Self::Storage(Fault::PowerCut),
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::StopInside => "stopped inside a round",
            Self::StopBetween => "stopped between rounds",
            Self::Dropped => "dropped twice",
            Self::TakenBack => "taken back",
            Self::OtherThreads => "other threads",
            Self::Storage(fault) => fault_name(fault),
        }
    }
}

const fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::InputOutput => "failing operation",
        Fault::NoSpace => "full disk",
        Fault::ReadOnly => "read-only disk",
        Fault::Kill => "killed",
        Fault::Torn => "killed within a write",
        Fault::PowerCut => "lost pages",
    }
}

/// When an interruption comes: this part of `of` equal ones of the run.
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

/// What keeps a life from being the last.
#[derive(Clone, Copy, Debug)]
enum Until {
    End,
    Stop(u64),
    Rounds(u32),
    Drop(u64),
    Struck,
}

/// A run that was left alone.
pub struct Whole {
    run: PathBuf,
    steps: u64,
    rounds: u64,
    operations: u64,
}

/// How one life ended.
struct Ended {
    /// `None` of one that was dropped.
    report: Option<RunReport>,
    steps: u64,
    rounds: u64,
    /// The newest checkpoint of which the life knew that it was on disk.
    kept: Option<CheckpointId>,
}

impl Ended {
    fn failure(&self) -> Option<String> {
        let failure = self.report.as_ref()?.failure.as_ref()?;
        Some(failure.to_string())
    }
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
    /// What is wrong with it.
    pub fn whole(&self, home: &Path) -> Result<Whole, String> {
        let faults = StorageFaults::under(home, u64::MAX, Fault::InputOutput);
        let run = home.join("runs/run");
        let ended = live(self.begin(home, Duration::from_secs(60), 2)?, Until::End, &faults, &run)?;
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
    /// What is wrong, or differs.
    pub fn interrupted(&self, whole: &Whole, how: Interruption, when: Moment, home: &Path) -> Result<(), String> {
        let inside = when.among(whole.steps - 1);
        let (first, threads) = match how {
            Interruption::StopInside => (Until::Stop(inside), 2),
            Interruption::OtherThreads => (Until::Stop(inside), 1),
            Interruption::StopBetween => (Until::Rounds(when.among(whole.rounds - 1) as u32), 2),
            Interruption::Dropped => (Until::Drop(inside), 2),
            // Behind the first round, so that there is something to forget.
            Interruption::TakenBack => (Until::Stop(inside.max(whole.steps / whole.rounds + 1)), 2),
            Interruption::Storage(_) => (Until::Struck, 2),
        };
        let life = home.join("life-0");
        let (storage, run) = (life.join("runs"), life.join("runs/run"));
        let faults = match how {
            Interruption::Storage(fault) => StorageFaults::under(&storage, when.among(whole.operations - 1), fault),
            _ => StorageFaults::under(&storage, u64::MAX, Fault::InputOutput),
        };
        let begun = self.begin(&life, BRIEF_PATIENCE, threads);
        let ended = begun.and_then(|engine| live(engine, first, &faults, &run));
        let struck = faults
            .struck()
            .map(|what| what.replace(&format!("{}/", storage.display()), ""));
        let what = struck.clone().unwrap_or_else(|| format!("{first:?}"));
        let what = |why: String| format!("{what}: {why}");
        let kept = match (how, &ended) {
            (Interruption::Storage(fault), Err(refusal)) => {
                let is_told = fault.is_deadly() || refusal.contains(&*storage.to_string_lossy());
                is_told
                    .then_some(None)
                    .ok_or_else(|| what(format!("nothing is told: {refusal}")))?
            }
            (Interruption::Storage(fault), Ok(ended)) => {
                self.is_told(ended, fault, &storage).map_err(what)?;
                ended.kept
            }
            (_, Err(failure)) => return Err(what(failure.clone())),
            (_, Ok(ended)) => {
                let is_stopped = ended.report.as_ref().is_none_or(|report| report.stopped_by.is_some());
                if !is_stopped {
                    return Err(what(format!("it was not interrupted: {:?}", ended.failure())));
                }
                ended.kept
            }
        };
        if matches!(how, Interruption::Storage(_)) && struck.is_none() {
            return Err("no operation was struck".into());
        }
        // Threads of an earlier life linger, and find their storage dead.
        drop(faults);
        let _dead = StorageFaults::under(&storage, 1, Fault::Kill);
        let next = home.join("life-1");
        std::fs::rename(&life, &next).map_err(|error| format!("{}: {error}", life.display()))?;
        let run = self.resume(&next, how, kept).map_err(what)?;
        self.compare(whole, &run).map_err(what)
    }

    /// Everything that cannot be kept is reported.
    fn is_told(&self, ended: &Ended, fault: Fault, storage: &Path) -> Result<(), String> {
        let Some(report) = ended.report.as_ref().filter(|report| report.failure.is_some()) else {
            return Ok(());
        };
        let failure = ended.failure().unwrap_or_default();
        let is_told = fault.is_deadly() || !report.gaps.is_empty() || failure.contains(&*storage.to_string_lossy());
        is_told
            .then_some(())
            .ok_or_else(|| format!("nothing is told of the storage: {failure}"))
    }

    /// Resumes the run in `home` until it is over, and gives its folder.
    fn resume(&self, home: &Path, how: Interruption, kept: Option<CheckpointId>) -> Result<PathBuf, String> {
        let run = home.join("runs/run");
        let there = Checkpoints::of(&run);
        for id in there.ids() {
            // A checkpoint appears whole under its name or not at all.
            there
                .open(id)
                .map_err(|error| format!("half of a checkpoint is left: {error}"))?;
        }
        let newest = there.ids().first().copied();
        if newest < kept {
            return Err(format!("of the checkpoint {kept:?} {newest:?} is left"));
        }
        let faults = StorageFaults::under(home, u64::MAX, Fault::InputOutput);
        let again = match how {
            Interruption::TakenBack => {
                let oldest = there
                    .ids()
                    .last()
                    .map_or(CheckpointName::Last, |id| CheckpointName::Round(id.round));
                Some((oldest, Until::Drop(1)))
            }
            Interruption::Dropped => Some((CheckpointName::Last, Until::Drop(2))),
            _ => None,
        };
        let threads = if how == Interruption::OtherThreads { 3 } else { 2 };
        if let Some((from, until)) = again {
            let engine = resumed(&run, from, register, threads).map_err(|error| error.to_string())?;
            live(engine, until, &faults, &run)?;
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
                self.begin(home, Duration::from_secs(60), threads)?
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
        let builder = Engine::builder().with(register).threads(threads).recording(recording);
        builder.from_ron(self.scenario).map_err(|problems| problems.to_string())
    }

    /// The laws of a record hold, and it tells what it is about.
    fn check(&self, run: &Path) -> Result<Vec<serde_json::Value>, String> {
        let mut events = lines(run);
        events.retain(|event| event["type"] != "header");
        if !events.iter().any(|event| event["type"] == self.shows) {
            return Err(format!("the run tells no {}", self.shows));
        }
        match record::broken_law(run, &events, &self.names.catalog) {
            Some(broken) => Err(broken),
            None => Ok(events),
        }
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

/// Plays on, and stops, or lets go, as it is told.
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

/// The newest checkpoint, looked for beside the storage that is watched.
fn on_disk(run: &Path) -> Option<CheckpointId> {
    let names = std::fs::read_dir(run.join("checkpoints"))
        .into_iter()
        .flatten()
        .flatten();
    let ids = names.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (round, step) = match name.strip_prefix("round-")?.split_once("-step-") {
            Some((round, step)) => (round.parse().ok()?, step.parse().ok()?),
            None => (name.strip_prefix("round-")?.parse().ok()?, 0),
        };
        Some(CheckpointId { round, step })
    });
    ids.max()
}
