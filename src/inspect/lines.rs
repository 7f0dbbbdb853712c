//! The lines of a file of any size, one of them in memory at a time, with their places.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::health::{AtPath, FileError};

/// A file that is read line by line.
pub(super) struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    line: Vec<u8>,
    number: usize,
    start: u64,
}

impl Lines {
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            path: path.into(),
            file: BufReader::new(File::open(path).at(path)?),
            line: Vec::new(),
            number: 0,
            start: 0,
        })
    }

    /// Moves on to the next line; false at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn advance(&mut self) -> Result<bool, FileError> {
        self.start += self.line.len() as u64;
        self.number += 1;
        self.line.clear();
        Ok(self.file.read_until(b'\n', &mut self.line).at(&self.path)? > 0)
    }

    /// The line with its end.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// Whether it has an end: the last line of a writer that was killed has none.
    pub fn is_whole(&self) -> bool {
        self.line.ends_with(b"\n")
    }

    /// From 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Bytes of the file before the line.
    pub fn start(&self) -> u64 {
        self.start
    }
}
