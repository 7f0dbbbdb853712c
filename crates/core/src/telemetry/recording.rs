//! The record of an earlier run: what later runs play again, or start from.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use super::event::{Event, Payload};
use super::payload::{EndReason, EpisodeFinished, RunFinished, RunStarted};
use super::reader::{EVENTS_FILE, EventReader, ReadError, find_last};
use crate::files::follow_latest;
use crate::health::FileError;

/// The reason why a run's record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// There is no such folder.
    #[error("there is no run {0}; give the folder of a recorded run")]
    NoRun(PathBuf),
    /// There is no record in it.
    #[error("{0} holds no events of a run: it isn't a run directory, or the run ended before it began to train")]
    NoEvents(PathBuf),
    /// The record is damaged.
    #[error(transparent)]
    Events(#[from] ReadError),
}

/// Shows `take` every event of the run in `folder`, or of the one that a file called `latest` names, in the order of its
/// record, and returns how the run began. No event is kept.
///
/// # Errors
/// No such folder, nothing recorded in it, or a file that cannot be read.
pub fn read_recording(folder: &Path, mut take: impl FnMut(&Event)) -> Result<RunStarted, RecordingError> {
    let folder = &follow_latest(folder);
    if !folder.is_dir() {
        return Err(RecordingError::NoRun(folder.into()));
    }
    if !folder.join(EVENTS_FILE).is_file() {
        return Err(RecordingError::NoEvents(folder.into()));
    }
    let mut began = None;
    for event in EventReader::open(folder).map_err(ReadError::from)? {
        let event = event?;
        take(&event);
        if let (None, Payload::RunStarted(started)) = (&began, event.payload) {
            began = Some(started);
        }
    }
    began.ok_or_else(|| RecordingError::NoEvents(folder.into()))
}

/// The end of a record so far.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordEnd {
    /// The end of the run, if its last event has it. Otherwise the run is still played, or its process was killed.
    pub finished: Option<RunFinished>,
    /// Rounds that were played to their end.
    pub rounds: u32,
}

/// Looks at the end of the record of the run in `folder`; `None` if it has no round and no end.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn record_end(folder: &Path) -> Result<Option<RecordEnd>, FileError> {
    let is_last = Cell::new(true);
    find_last(folder, |event| {
        let is_last = is_last.replace(false);
        let (finished, rounds) = match (&event.payload, event.round) {
            (Payload::RunFinished(run), _) => (is_last.then(|| run.clone()), run.rounds_done),
            (Payload::RoundFinished(_), Some(round)) => (None, round.saturating_add(1)),
            (_, Some(round)) => (None, round),
            (_, None) => return None,
        };
        Some(RecordEnd { finished, rounds })
    })
}

/// An episode that was played to its end, as `(round, env)` with how it ended; `None` for any other event.
pub fn finished_episode(event: &Event) -> Option<((u32, u32), &EpisodeFinished)> {
    match &event.payload {
        Payload::EpisodeFinished(episode) if !matches!(episode.end, EndReason::Stopped | EndReason::Failed) => {
            Some(((event.round?, event.env?), episode))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
