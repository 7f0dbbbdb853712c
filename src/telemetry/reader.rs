//! Reads an event file back, line by line, so that files of any size need little memory: the same major version only,
//! unknown types and a torn last line passed over, every other fault named by file and line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::event::{Event, Payload, SCHEMA_MAJOR};
use crate::health::{AtPath, FileError};

/// Bytes that are read at once from the end of a file.
const BLOCK_BYTES: u64 = 64 * 1024;

/// Why an event file could not be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// It cannot be opened or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line is no event.
    #[error("{path}:{line}: {problem}")]
    Line {
        path: PathBuf,
        line: usize,
        problem: String,
    },
    /// It follows another version of the schema.
    #[error("{path}: written with telemetry schema {found}; this version reads schema {SCHEMA_MAJOR}.x")]
    Major { path: PathBuf, found: u32 },
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    name: String,
    /// Headers only.
    major: Option<u32>,
}

/// The events of a file, one after the other; only one line of it is in memory at a time. After an error there is no more.
/// Events of types that this version does not know are passed over, as is an incomplete last line.
pub struct EventReader {
    path: PathBuf,
    file: BufReader<File>,
    line: Vec<u8>,
    /// Lines so far.
    number: usize,
    /// Bytes so far.
    position: u64,
}

impl EventReader {
    /// Opens the event file at `path`.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            path: path.into(),
            file: BufReader::new(File::open(path).at(path)?),
            line: Vec::new(),
            number: 0,
            position: 0,
        })
    }

    /// Bytes up to the end of the line that was read last.
    pub fn position(&self) -> u64 {
        self.position
    }

    fn read_next(&mut self) -> Result<Option<Event>, ReadError> {
        loop {
            self.line.clear();
            self.position += self.file.read_until(b'\n', &mut self.line).at(&self.path)? as u64;
            self.number += 1;
            // An incomplete line is the last one of a writer that was killed.
            let Some(line) = self.line.strip_suffix(b"\n") else {
                return Ok(None);
            };
            let problem = |problem: String| ReadError::Line {
                path: self.path.clone(),
                line: self.number,
                problem,
            };
            let kind: Kind = serde_json::from_slice(line).map_err(|error| problem(error.to_string()))?;
            if self.number == 1 && kind.name != "header" {
                return Err(problem("the first line is no header".into()));
            }
            if kind.name == "header" {
                match kind.major {
                    Some(SCHEMA_MAJOR) => {}
                    Some(found) => {
                        let path = self.path.clone();
                        return Err(ReadError::Major { path, found });
                    }
                    None => return Err(problem("the header has no field `major`".into())),
                }
            } else if Payload::KINDS.contains(&kind.name.as_str()) {
                let event = serde_json::from_slice(line).map_err(|error| problem(error.to_string()))?;
                return Ok(Some(event));
            }
        }
    }
}

impl Iterator for EventReader {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_next().transpose()
    }
}

/// The last event of a file that can be read as one, found from its end; whatever a killed writer left behind it is passed
/// over.
///
/// # Errors
/// If the file cannot be read.
pub fn last_event(path: &Path) -> Result<Option<Event>, FileError> {
    let mut file = File::open(path).at(path)?;
    let mut start = file.metadata().at(path)?.len();
    // Of the line that began before `start`.
    let mut tail = Vec::new();
    while start > 0 {
        let before = start;
        // As much as is kept of a line that began earlier: it is copied a few times, however long it is.
        start = start.saturating_sub(BLOCK_BYTES.max(tail.len() as u64));
        let mut block = vec![0; usize::try_from(before - start).unwrap_or_default()];
        file.seek(SeekFrom::Start(start)).at(path)?;
        file.read_exact(&mut block).at(path)?;
        block.append(&mut tail);
        let mut lines: Vec<&[u8]> = block.split(|&byte| byte == b'\n').collect();
        let first = if start > 0 {
            lines.remove(0).to_vec()
        } else {
            Vec::new()
        };
        if let Some(event) = lines.iter().rev().find_map(|line| serde_json::from_slice(line).ok()) {
            return Ok(Some(event));
        }
        tail = first;
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
