//! The lives of a run: it is interrupted, and continues in another engine, until it is over.

use std::path::{Path, PathBuf};
use std::time::Duration;

use simic_engine::internals::checkpoint::{CheckpointError, CheckpointName, PastRun, ResumeError};
use simic_engine::internals::engine::{Prepared, RunReport};
use simic_engine::internals::record::Recording;
use simic_engine::internals::run::{DriverStep, RoundLimit, StopRequest};
use simic_engine::internals::scenario::Catalog;
use simic_engine::internals::storage::{Fault, StorageFaults};
use simic_engine::prelude::*;

use super::laws::{Broken, LawsPlugin};
use super::unruly;

/// No one repairs a storage while the run waits.
const BRIEF_PATIENCE: Duration = Duration::from_millis(20);
/// More than a storage that works ever needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// The run's own folder in that of its life.
const RUN: &str = "runs/run";

/// What keeps a life from being the last.
#[derive(Clone, Copy, Debug)]
pub enum Interruption {
    /// It stops after this number of rounds.
    Rounds(u32),
    /// It is asked to stop after this number of steps of this life.
    Steps(u64),
    /// This operation on its files fails, at this many thousandths of those that an undisturbed run needs.
    Storage { fault: Fault, permille: u64 },
}

/// A run that is over.
pub struct Played {
    pub run: PathBuf,
    /// What it failed with, if it did.
    pub failure: Option<String>,
    /// Operations on its files in its first life.
    pub operations: u64,
    /// Interruptions that came to pass.
    pub interruptions: Vec<String>,
}

/// How one life ended.
struct Ended {
    /// Or why it could not begin.
    report: Result<RunReport, String>,
    broken: Vec<String>,
    struck: Option<String>,
}

impl Ended {
    fn failure(&self) -> Option<String> {
        match &self.report {
            Ok(report) => report.failure.as_ref().map(ToString::to_string),
            Err(refusal) => Some(refusal.clone()),
        }
    }

    /// What became of it is told: nothing is lost in silence.
    fn tells_of(&self, fault: Fault, root: &Path) -> bool {
        match &self.report {
            Ok(report) if report.failure.is_none() => true,
            Ok(report) => !report.gaps.is_empty() || fault.is_deadly() || self.blames(root),
            Err(_) => self.blames(root),
        }
    }

    fn blames(&self, root: &Path) -> bool {
        self.failure()
            .is_some_and(|failure| failure.contains(&*root.to_string_lossy()))
    }
}

/// What all lives of a run share.
pub struct Lives<'a> {
    pub scenario: &'a str,
    pub catalog: &'a Catalog,
    pub threads: usize,
    /// What an undisturbed run failed with, if it did.
    pub expected_failure: Option<&'a str>,
    /// Operations on files that an undisturbed run needs.
    pub operations: u64,
}

impl Lives<'_> {
    /// Plays the run in `folder`, interrupted in each life by the next of `interruptions`, until one is not.
    ///
    /// # Errors
    /// What is wrong with a life.
    pub fn play(&self, folder: &Path, interruptions: &[Interruption]) -> Result<Played, String> {
        // Threads of an earlier life linger, and must find their storage dead.
        let mut storages = Vec::new();
        let mut interrupted = Vec::new();
        let mut interruptions = interruptions.iter().copied();
        for life in 0.. {
            let home = folder.join(format!("life-{life}"));
            let storage = home.join("runs");
            let interruption = interruptions.next();
            let faults = self.faults(&storage, interruption);
            let mut ended = self.live(&home, interruption)?;
            ended.struck = faults.struck();
            let operations = faults.operations();
            drop(faults);
            storages.push(StorageFaults::under(&storage, 1, Fault::Kill));
            if let Some(law) = ended.broken.first() {
                return Err(format!("life {life}: {law}"));
            }
            let what = self.judge(&ended, interruption, &storage);
            let what = what.map_err(|what| format!("life {life}: {what}"))?;
            let Some(what) = what else {
                return Ok(Played {
                    run: home.join(RUN),
                    failure: ended.failure(),
                    operations,
                    interruptions: interrupted,
                });
            };
            interrupted.push(what);
            let next = folder.join(format!("life-{}", life + 1));
            std::fs::rename(&home, &next).map_err(|error| format!("{}: {error}", home.display()))?;
        }
        Err("lives have no end".into())
    }

    fn faults(&self, storage: &Path, interruption: Option<Interruption>) -> StorageFaults {
        match interruption {
            Some(Interruption::Storage { fault, permille }) => {
                StorageFaults::under(storage, 1 + self.operations * permille / 1000, fault)
            }
            _ => StorageFaults::under(storage, u64::MAX, Fault::InputOutput),
        }
    }

    /// Whether the run was interrupted, and how; `None` if it is over.
    fn judge(&self, ended: &Ended, asked: Option<Interruption>, storage: &Path) -> Result<Option<String>, String> {
        if let (Some(struck), Some(Interruption::Storage { fault, .. })) = (&ended.struck, asked) {
            let place = struck.replace(&format!("{}/", storage.display()), "");
            let what = format!("{fault:?} at {place}");
            let failure = ended.failure();
            let is_told = ended.tells_of(fault, storage) || failure.as_deref() == self.expected_failure;
            let silence = || format!("{what}: {}", failure.as_deref().unwrap_or("nothing is told"));
            return if is_told { Ok(Some(what)) } else { Err(silence()) };
        }
        match &ended.report {
            Err(refusal) => Err(format!("it cannot begin: {refusal}")),
            Ok(report) if report.failure.is_none() && report.stopped_by.is_some() => {
                Ok(asked.map(|asked| format!("{asked:?}")))
            }
            Ok(report) => match (report.gaps.is_empty(), asked) {
                // It was not struck, but had no patience with a disk that was only slow: events may be lost, or the last
                // word of its status.
                (false, Some(Interruption::Storage { .. })) => Ok(Some("impatience".into())),
                (true, Some(Interruption::Storage { .. })) if report.failure.is_none() => Ok(Some("impatience".into())),
                (false, _) => Err(format!("its record is missing {:?}", report.gaps)),
                (true, _) => Ok(None),
            },
        }
    }

    /// From where the run stands to its end, or to the interruption.
    fn live(&self, home: &Path, interruption: Option<Interruption>) -> Result<Ended, String> {
        let patience = match interruption {
            Some(Interruption::Storage { .. }) => BRIEF_PATIENCE,
            _ => PATIENCE,
        };
        let mut engine = match self.begin(home, patience)? {
            Ok(engine) => engine,
            Err(refusal) => {
                return Ok(Ended {
                    report: Err(refusal),
                    broken: Vec::new(),
                    struck: None,
                });
            }
        };
        let mut steps_left = u64::MAX;
        match interruption {
            Some(Interruption::Rounds(rounds)) => engine.world_mut().insert_resource(RoundLimit(rounds)),
            Some(Interruption::Steps(steps)) => steps_left = steps,
            _ => {}
        }
        let report = loop {
            match engine.advance() {
                std::ops::ControlFlow::Break(report) => break report,
                std::ops::ControlFlow::Continue(DriverStep::StepPlayed) => steps_left -= 1,
                std::ops::ControlFlow::Continue(_) => {}
            }
            if steps_left == 0 {
                engine.world().resource::<StopSignal>().request(StopRequest::Interrupt);
                steps_left = u64::MAX;
            }
        };
        let broken = engine.world_mut().remove_resource::<Broken>().unwrap_or_default();
        Ok(Ended {
            report: Ok(report),
            broken: broken.0,
            struck: None,
        })
    }

    /// The engine of the next life, or why the storage lets none begin. Where nothing has been kept the run starts again.
    fn begin(&self, home: &Path, outage_patience: Duration) -> Result<Result<Engine, String>, String> {
        let (run, root) = (home.join(RUN), home.join("runs"));
        let builder = Engine::builder()
            .with((unruly::register, LawsPlugin))
            .threads(self.threads);
        let builder = builder.recording(Recording {
            id: Some("run".into()),
            outage_patience,
            ..Recording::under(&root)
        });
        let past = match PastRun::open(&run, CheckpointName::Last) {
            Ok(past) => past,
            Err(
                ResumeError::NoRun(_)
                | ResumeError::NoCheckpoint(_)
                | ResumeError::Checkpoint(CheckpointError::None(_))
                | ResumeError::File(_)
                | ResumeError::Directory(_),
            ) => {
                if run.exists() {
                    std::fs::remove_dir_all(&run).map_err(|error| format!("{}: {error}", run.display()))?;
                }
                return Ok(builder.from_ron(self.scenario).map_err(|error| error.to_string()));
            }
            Err(refusal) => return Err(refusal.to_string()),
        };
        let prepared = Prepared::from_ron("resolved.ron", &past.resolved, &[], self.catalog);
        let mut prepared = prepared.map_err(|error| error.to_string())?;
        prepared.file = past.file.clone();
        let before = prepared.loaded.scenario.clone();
        let point = past.resume(&before, &prepared.loaded, &[], &[]);
        let point = point.map_err(|error| error.to_string())?;
        Ok(builder
            .resumed(point)
            .build(&prepared)
            .map_err(|error| error.to_string()))
    }
}
