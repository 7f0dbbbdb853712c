//! Reads the events of a run back, line by line, so that records of any size need little memory: a torn last line is passed
//! over, every other fault named by file and line.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::event::{Event, SCHEMA};
use super::segments::{EVENTS_FILE, EventLines, Place, last_closed};
use crate::health::{AtPath, FileError};

/// Bytes that are read at once from the end of a file.
const BLOCK_BYTES: u64 = 64 * 1024;

/// Why the events of a run could not be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// A file cannot be opened or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line that is no event.
    #[error("{path}:{line}: {problem}")]
    Line {
        path: PathBuf,
        line: usize,
        problem: LineError,
    },
}

/// Why a line of a record is no event.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It opens events of another schema.
    #[error("written with telemetry schema {0}; this version reads schema {SCHEMA}")]
    Schema(u32),
    /// Anything else, in words.
    #[error("{0}")]
    Content(String),
}

impl EventLines {
    /// The line as an event; `None` for a header.
    ///
    /// # Errors
    /// It is neither, or another schema follows.
    pub fn event(&self) -> Result<Option<Event>, LineError> {
        #[derive(Deserialize)]
        struct Header {
            #[serde(rename = "type")]
            kind: String,
            schema: u32,
        }
        let problem = match serde_json::from_slice(self.line()) {
            Ok(event) if self.number() > 1 => return Ok(Some(event)),
            Err(error) if self.number() > 1 => error.to_string(),
            _ => "the first line is no header".into(),
        };
        match serde_json::from_slice(self.line()) {
            Ok(Header { kind, schema }) if kind == "header" => match schema {
                SCHEMA => Ok(None),
                other => Err(LineError::Schema(other)),
            },
            _ => Err(LineError::Content(problem)),
        }
    }
}

/// The events of a run, one after the other; only one line is in memory at a time. After an error there is no more. An
/// incomplete last line is passed over.
pub struct EventReader(EventLines);

impl EventReader {
    /// Opens the events of the run in `folder`.
    ///
    /// # Errors
    /// If there are none, or they cannot be opened.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        EventLines::open(folder).map(Self)
    }

    /// Behind the event that was read last.
    pub(crate) const fn place(&self) -> Place {
        self.0.place()
    }

    /// `take` gets every line up to the next event, headers included.
    ///
    /// # Errors
    /// What ends the events too soon.
    pub(crate) fn next_with(&mut self, mut take: impl FnMut(&[u8])) -> Result<Option<Event>, ReadError> {
        // An incomplete line is the last one of a writer that was killed.
        while self.0.advance()? && self.0.is_whole() {
            let event = self.event();
            if event.is_ok() {
                take(self.0.line());
            }
            if let Some(event) = event? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The next event of a record that is still written; `None`: there is none yet, and there may be one later.
    ///
    /// # Errors
    /// What ends the events too soon.
    pub fn follow(&mut self) -> Result<Option<Event>, ReadError> {
        while self.0.follow()? {
            if let Some(event) = self.event()? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Whether another record has taken the place of the one that is followed, as when a run is resumed from before its end.
    pub fn is_replaced(&self) -> bool {
        self.0.is_replaced()
    }

    fn event(&self) -> Result<Option<Event>, ReadError> {
        self.0.event().map_err(|problem| ReadError::Line {
            path: self.0.path().into(),
            line: self.0.number(),
            problem,
        })
    }
}

impl Iterator for EventReader {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_with(|_| {}).transpose()
    }
}

/// What `wanted` finds in the last event of the run in `folder` in which it finds anything, searched from the end;
/// anything that a killed writer left after it is passed over. Of closed segments the last is read, where `events.jsonl` has
/// nothing.
///
/// # Errors
/// If a file cannot be read.
pub fn find_last<T>(folder: &Path, wanted: impl Fn(&Event) -> Option<T>) -> Result<Option<T>, FileError> {
    let find = |lines: &[&[u8]]| {
        let events = lines.iter().rev().filter_map(|line| serde_json::from_slice(line).ok());
        events.into_iter().find_map(|event| wanted(&event))
    };
    let path = &folder.join(EVENTS_FILE);
    let mut file = crate::files::open(path).at(path)?;
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
        if let Some(found) = find(&lines) {
            return Ok(Some(found));
        }
        tail = first;
    }
    let closed = last_closed(folder)?;
    Ok(find(&closed.split(|&byte| byte == b'\n').collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests;
