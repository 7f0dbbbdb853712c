//! A file of events that only grows: an interrupted write neither loses nor repeats a byte, a repeated one no event.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::health::{AtPath, FileError};
use crate::storage::{File, sync_folder_of};
use crate::telemetry::event::Event;
use crate::telemetry::sink::SinkError;

/// Where a sink writes; nowhere until it is opened.
#[derive(Debug, Default)]
pub struct AppendFile {
    path: PathBuf,
    file: Option<File>,
    /// Encoded, not yet written.
    pub pending: Vec<u8>,
    /// Events below are encoded already.
    next_seq: u64,
}

impl AppendFile {
    /// Creates `path`, which must not exist; its name survives a power cut.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let file = Self::of(path, File::create_new(path))?;
        sync_folder_of(path).at(path)?;
        Ok(file)
    }

    /// Goes on with `path`, which must exist.
    pub fn go_on(path: &Path) -> Result<Self, FileError> {
        Self::of(path, File::append(path))
    }

    fn of(path: &Path, file: io::Result<File>) -> Result<Self, FileError> {
        Ok(Self {
            path: path.to_owned(),
            file: Some(file.at(path)?),
            ..Self::default()
        })
    }

    /// Whether `event` has not been encoded yet: a write that is tried again must not repeat it.
    pub fn lacks(&self, event: &Event) -> bool {
        event.seq >= self.next_seq
    }

    /// `event` has been encoded.
    pub fn has(&mut self, event: &Event) {
        self.next_seq = event.seq + 1;
    }

    /// Writes what is pending, keeping what an error left over.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_out(&mut self) -> Result<(), SinkError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut done = 0;
        let outcome = loop {
            match file.write(&self.pending[done..]) {
                Ok(0) if done == self.pending.len() => break Ok(()),
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.pending.drain(..done);
        Ok(outcome.at(&self.path)?)
    }

    /// Writes what is pending and waits until the device has it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn sync(&mut self) -> Result<(), SinkError> {
        self.write_out()?;
        let Some(file) = &self.file else { return Ok(()) };
        Ok(file.sync().at(&self.path)?)
    }
}
