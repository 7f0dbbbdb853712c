//! The record of an earlier run: what later runs play again, or start from.

use std::path::{Path, PathBuf};

use super::event::{Event, Payload};
use super::payload::{EpisodeEnd, EpisodeFinished, RunStarted};
use super::reader::{EventReader, ReadError};
use super::sinks::JsonLinesSink;
use crate::files::follow_latest;

/// Why a run's record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// There is no such folder.
    #[error("there is no run {0}; give the folder of a recorded run")]
    NoRun(PathBuf),
    /// There is no record in it.
    #[error("{0} holds no events of a run: it is no run directory, or the run ended before it began to train")]
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
    let path = folder.join(JsonLinesSink::FILE_NAME);
    if !path.is_file() {
        return Err(RecordingError::NoEvents(folder.into()));
    }
    let mut began = None;
    for event in EventReader::open(&path).map_err(ReadError::from)? {
        let event = event?;
        take(&event);
        if let (None, Payload::RunStarted(started)) = (&began, event.payload) {
            began = Some(started);
        }
    }
    began.ok_or_else(|| RecordingError::NoEvents(folder.into()))
}

/// An episode that was played to its end, as `(round, env)` with how it ended; `None` for any other event.
pub fn finished_episode(event: &Event) -> Option<((u32, u32), &EpisodeFinished)> {
    match &event.payload {
        Payload::EpisodeFinished(episode) if !matches!(episode.end, EpisodeEnd::Stopped | EpisodeEnd::Failed) => {
            Some(((event.round?, event.env?), episode))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
