//! The runs of a folder. Only the end of the events, the manifest, the lock and the heartbeat of a run are read, so thousands
//! of runs are listed at once. A folder that can't be read is listed with the reason.

use std::cmp::Reverse;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::directory::{MANIFEST_FILE, ManifestHead, RESOLVED_FILE, RunDirectory, SOURCE_FILE};
use super::files::bytes_below;
use super::status::{RunStatus, STATUS_FILE};
use crate::health::{AtPath, FileError};
use crate::telemetry::{EVENTS_FILE, Num, RunState, Timestamp, record_end};

/// Silence after which a run may be gone: six heartbeats.
const SILENCE_MS: i64 = 60_000;

/// State of a run, as seen from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedState {
    /// It says that it plays, but no process has claimed it; on a file system without locks: its heartbeat is old and its
    /// process is gone.
    Stale,
    /// The folder does not say.
    #[default]
    Unreadable,
    /// The state that the run reports.
    #[serde(untagged)]
    Known(RunState),
}

impl ListedState {
    /// State of a run whose record does not say that it has ended. `is_claimed`: as [`RunDirectory::is_claimed`] says.
    fn of(status: &RunStatus, is_claimed: Option<bool>, now: Timestamp) -> Self {
        let silence = now.milliseconds() - status.heartbeat.milliseconds();
        let is_gone = is_claimed.map_or_else(|| silence > SILENCE_MS && !is_alive(status.pid), |claimed| !claimed);
        match status.state {
            _ if is_gone => Self::Stale,
            RunState::Completed | RunState::Interrupted | RunState::Failed => Self::Known(RunState::Stopping),
            state => Self::Known(state),
        }
    }

    const fn of_end(state: RunState) -> Self {
        match state {
            RunState::Completed | RunState::Interrupted => Self::Known(state),
            _ => Self::Known(RunState::Failed),
        }
    }

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Unreadable => "unreadable",
            Self::Known(state) => state.name(),
        }
    }

    /// Returns whether a process says that it plays the run.
    pub const fn is_played(self) -> bool {
        use RunState::*;
        matches!(self, Self::Known(Starting | Running | Paused | Stopping))
    }
}

/// Returns whether there is such a process on this machine. Where the system does not say, a run is known by its heartbeat
/// alone.
fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// One run of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunEntry {
    /// Name of its folder.
    pub run_id: String,
    /// The folder of the run.
    pub directory: PathBuf,
    /// The state of the run.
    pub state: ListedState,
    /// Name of its scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Played to their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Rounds to be played in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_rounds: Option<u32>,
    /// The best accuracy of any env in any round, percent of the validation part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_accuracy: Option<Num>,
    /// The user's tags.
    pub tags: Vec<String>,
    /// The time at which it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The time of its last report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Timestamp>,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// The reason why a run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The part of its folder that is missing or cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RunEntry {
    /// The run as its folder describes it.
    pub fn read(directory: &Path) -> Self {
        Self::read_at(directory, Timestamp::now())
    }

    fn read_at(directory: &Path, now: Timestamp) -> Self {
        let named = directory.canonicalize();
        let name = named.as_deref().unwrap_or(directory).file_name().unwrap_or_default();
        let mut entry = Self {
            run_id: name.to_string_lossy().into_owned(),
            directory: directory.into(),
            size_bytes: bytes_below(directory),
            ..Self::default()
        };
        match ManifestHead::read(directory) {
            Ok(head) => (entry.created, entry.tags) = (head.created, head.tags),
            Err(error) => entry.problem = Some(why(&error, MANIFEST_FILE, "it ended before it began to train")),
        }
        // Asks before it looks for the end: a run that ends in between has ended, and isn't one whose process is gone.
        let is_claimed = RunDirectory::is_claimed(directory);
        let status = RunStatus::read(directory);
        let end = record_end(directory);
        let has_record = end.is_ok();
        let end = end.ok().flatten();
        let finished = end.as_ref().and_then(|end| end.finished.as_ref());
        match (finished, &status) {
            (Some(run), _) => entry.state = ListedState::of_end(run.status),
            // It could not begin, or its end could not be recorded: only this says why.
            (None, Ok(status)) if status.state == RunState::Failed && is_claimed != Some(true) => {
                entry.state = ListedState::Known(RunState::Failed);
            }
            (None, Ok(status)) => entry.state = ListedState::of(status, is_claimed, now),
            (None, Err(_)) if has_record && is_claimed == Some(false) => entry.state = ListedState::Stale,
            (None, Err(error)) => entry.problem = Some(why(error, STATUS_FILE, "it ended while its folder was made")),
        }
        entry.error = finished.and_then(|run| run.error.clone());
        if let Ok(status) = status {
            entry.take(status);
        }
        if let Some(end) = end {
            entry.rounds = Some(end.rounds);
        }
        entry
    }

    /// Takes over the progress of the run when its heartbeat was written.
    fn take(&mut self, status: RunStatus) {
        self.rounds = status.rounds;
        self.scenario = status.scenario;
        self.n_rounds = status.n_rounds;
        self.best_accuracy = status.best_accuracy;
        self.heartbeat = Some(status.heartbeat);
        self.error = self.error.take().or(status.error);
    }

    /// The time at which the run began, as far as known.
    pub fn began(&self) -> Option<Timestamp> {
        self.created.or(self.heartbeat)
    }
}

fn why(error: &FileError, file: &str, meaning: &str) -> String {
    match error.source.kind() {
        ErrorKind::NotFound => format!("it has no {file}: {meaning}"),
        _ => format!("its {file} cannot be read: {}", error.source),
    }
}

/// The runs in `root`, the newest first.
///
/// # Errors
/// If the folder cannot be read.
pub fn list_runs(root: &Path) -> Result<Vec<RunEntry>, FileError> {
    let now = Timestamp::now();
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(root).at(root)? {
        let entry = entry.at(root)?;
        // Neither links, as older engines noted the newest run, nor what is still being made.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && holds_run(&entry.path()) {
            folders.push(entry.path());
        }
    }
    let mut runs: Vec<RunEntry> = folders
        .par_iter()
        .map(|folder| RunEntry::read_at(folder, now))
        .collect();
    runs.sort_by_cached_key(|run| Reverse((run.began(), run.run_id.clone())));
    Ok(runs)
}

/// A folder that holds something of a run, or that was made for one and holds nothing yet.
fn holds_run(folder: &Path) -> bool {
    let files = [STATUS_FILE, MANIFEST_FILE, RESOLVED_FILE, SOURCE_FILE, EVENTS_FILE];
    let is_empty = || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    files.iter().any(|file| folder.join(file).exists()) || is_empty() && is_named_by_time(folder)
}

/// `20260131-120000-…`
fn is_named_by_time(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut parts = name
        .split('-')
        .map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then_some(part.len()));
    parts.next() == Some(Some(8)) && parts.next() == Some(Some(6))
}

#[cfg(test)]
mod tests;
