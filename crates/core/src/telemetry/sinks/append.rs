//! A file that only grows: an interrupted write neither loses nor repeats a byte.

use std::path::{Path, PathBuf};

use crate::health::{AtPath, FileError};
use crate::storage::File;
use crate::telemetry::sink::SinkError;

/// Where a sink writes; nowhere until it is opened.
#[derive(Debug, Default)]
pub struct AppendFile {
    path: PathBuf,
    file: Option<File>,
    /// Encoded, not yet written.
    pub pending: Vec<u8>,
}

impl AppendFile {
    /// Creates `path`, which must not exist.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let file = File::create_new(path).at(path)?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            pending: Vec::new(),
        })
    }

    /// Writes what is pending, keeping what an error left over.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_out(&mut self) -> Result<(), SinkError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let (written, outcome) = file.write_most(&self.pending);
        self.pending.drain(..written);
        Ok(outcome.at(&self.path)?)
    }
}
