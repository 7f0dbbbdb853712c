//! A file that only grows, and what is to be added to it: an interrupted write neither loses nor repeats a byte.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::telemetry::sink::SinkError;

#[derive(Debug)]
pub struct AppendFile {
    path: PathBuf,
    file: File,
    /// Encoded, not yet written.
    pub pending: Vec<u8>,
}

impl AppendFile {
    /// Creates `path`, which must not exist.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        Self::open(path, OpenOptions::new().append(true).create_new(true))
    }

    /// Goes on with `path`, which must exist.
    pub fn go_on(path: &Path) -> std::io::Result<Self> {
        Self::open(path, OpenOptions::new().append(true))
    }

    fn open(path: &Path, options: &OpenOptions) -> std::io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: options.open(path)?,
            pending: Vec::new(),
        })
    }

    /// Writes what is pending, keeping what an error left over.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_out(&mut self) -> Result<(), SinkError> {
        let mut done = 0;
        let outcome = loop {
            match self.file.write(&self.pending[done..]) {
                Ok(0) if done == self.pending.len() => break Ok(()),
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.pending.drain(..done);
        outcome.map_err(|source| self.failed(source))
    }

    /// Writes what is pending and waits until the device has it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn settle(&mut self) -> Result<(), SinkError> {
        self.write_out()?;
        self.file.sync_all().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> SinkError {
        SinkError::File {
            path: self.path.clone(),
            source,
        }
    }
}
