//! Keeps a [`ViewState`] up to date with the record of a run that is played elsewhere: by another process, on another machine
//! over a common file system, or by none any more.

use std::path::{Path, PathBuf};

use super::ViewState;
use crate::telemetry::{EVENTS_FILE, EventReader, ReadError};

/// Why a record cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The folder is gone.
    #[error("{0} is gone: the run's folder was moved or removed while it was watched")]
    Gone(PathBuf),
    /// A file that cannot be read, or a line that is no event.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Reads existing events and then new ones.
pub struct Feed {
    folder: PathBuf,
    events: Option<EventReader>,
    /// State after the events so far.
    pub state: ViewState,
}

impl Feed {
    /// Of the run in `folder`, which need not have begun. Nothing is read yet.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            events: None,
            state: ViewState::default(),
        }
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the events added since the last time; returns whether there were any.
    ///
    /// # Errors
    /// The folder is gone, a file cannot be read, a line is no event, or the record follows a schema that this version does
    /// not know. What was read before stays.
    pub fn poll(&mut self) -> Result<bool, FeedError> {
        self.poll_some(usize::MAX)
    }

    /// [`Self::poll`] that stops after `most` events, for a view that has to stay awake.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub fn poll_some(&mut self, most: usize) -> Result<bool, FeedError> {
        if !self.folder.is_dir() {
            return Err(FeedError::Gone(self.folder.clone()));
        }
        if self.events.as_ref().is_some_and(EventReader::is_replaced) {
            // The run was resumed from an earlier point, and what came behind it was taken out of its record.
            self.events = None;
            self.state = ViewState::default();
        }
        let events = match &mut self.events {
            Some(events) => events,
            None if self.folder.join(EVENTS_FILE).exists() => {
                let opened = EventReader::open(&self.folder).map_err(ReadError::from)?;
                self.events.insert(opened)
            }
            None => return Ok(false),
        };
        let mut read = 0;
        while read < most
            && let Some(event) = events.follow()?
        {
            self.state.apply(&event);
            read += 1;
        }
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests;
