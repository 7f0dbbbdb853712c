//! The record of an earlier run: what later runs play again, or start from.

use std::path::{Path, PathBuf};

use super::event::{Event, Payload};
use super::payload::{EpisodeEnd, EpisodeFinished, RunStarted};
use super::reader::{ReadError, read_events};
use super::sinks::JsonLinesSink;

/// The events of a recorded run.
#[derive(Clone, Debug)]
pub struct Recording {
    /// How the run began.
    pub started: RunStarted,
    /// In the order of the record.
    pub events: Vec<Event>,
}

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

impl Recording {
    /// Reads the events of the run in `folder`.
    ///
    /// # Errors
    /// No such folder, nothing recorded in it, or a file that cannot be read.
    pub fn open(folder: &Path) -> Result<Self, RecordingError> {
        if !folder.is_dir() {
            return Err(RecordingError::NoRun(folder.into()));
        }
        let path = folder.join(JsonLinesSink::FILE_NAME);
        if !path.is_file() {
            return Err(RecordingError::NoEvents(folder.into()));
        }
        let events = without_abandoned(read_events(&path)?.events);
        let started = events.iter().find_map(|event| match &event.payload {
            Payload::RunStarted(started) => Some(started.clone()),
            _ => None,
        });
        Ok(Self {
            started: started.ok_or_else(|| RecordingError::NoEvents(folder.into()))?,
            events,
        })
    }

    /// The episodes that were played to their end, as `(round, env)` with how they ended.
    pub fn episodes(&self) -> impl Iterator<Item = ((u32, u32), &EpisodeFinished)> {
        self.events.iter().filter_map(|event| match &event.payload {
            Payload::EpisodeFinished(episode) if !matches!(episode.end, EpisodeEnd::Stopped | EpisodeEnd::Failed) => {
                Some(((event.round?, event.env?), episode))
            }
            _ => None,
        })
    }
}

/// Leaves out what envs did in rounds before those began anew.
fn without_abandoned(events: Vec<Event>) -> Vec<Event> {
    let mut kept: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        if matches!(event.payload, Payload::RoundRestarted(_)) {
            kept.retain(|told| told.env.is_none() || told.round != event.round);
        }
        kept.push(event);
    }
    kept
}

#[cfg(test)]
mod tests;
