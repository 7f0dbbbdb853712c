//! Reads the events of a run back, line by line, so that records of any size need little memory: the same major version only,
//! unknown types and a torn last line passed over, every other fault named by file and line.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::event::{Event, Payload, SCHEMA_MAJOR};
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
    /// A line is no event.
    #[error("{path}:{line}: {problem}")]
    Line {
        path: PathBuf,
        line: usize,
        problem: String,
    },
    /// It follows another version of the schema.
    #[error("{path}: written with telemetry schema {found}; this version reads schema {SCHEMA_MAJOR}")]
    Major { path: PathBuf, found: u32 },
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    name: String,
    /// Headers only.
    major: Option<u32>,
}

/// The events of a run, one after the other; only one line is in memory at a time. After an error there is no more.
/// Events of types that this version does not know are passed over, as is an incomplete last line.
pub struct EventReader {
    lines: EventLines,
}

impl EventReader {
    /// Opens the events of the run in `folder`.
    ///
    /// # Errors
    /// If there are none, or they cannot be opened.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        EventLines::open(folder).map(|lines| Self { lines })
    }

    /// Behind the event that was read last.
    pub(crate) const fn place(&self) -> Place {
        self.lines.place()
    }

    /// `take` gets every line up to the next event, headers and unknown ones included.
    ///
    /// # Errors
    /// What ends the events too soon.
    pub(crate) fn next_with(&mut self, mut take: impl FnMut(&[u8])) -> Result<Option<Event>, ReadError> {
        // An incomplete line is the last one of a writer that was killed.
        while self.lines.advance()? && self.lines.is_whole() {
            let event = self.event();
            if event.is_ok() {
                take(self.lines.line());
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
        while self.lines.follow()? {
            if let Some(event) = self.event()? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Whether another record has taken the place of the one that is followed, as when a run is resumed from before its end.
    pub fn is_replaced(&self) -> bool {
        self.lines.is_replaced()
    }

    /// The line as an event; `None` for a header, and for types that this version does not know.
    fn event(&mut self) -> Result<Option<Event>, ReadError> {
        let lines = &self.lines;
        let line = lines.line();
        let problem = |problem: String| ReadError::Line {
            path: lines.path().into(),
            line: lines.number(),
            problem,
        };
        if lines.number() > 1
            && let Ok(event) = serde_json::from_slice(line)
        {
            return Ok(Some(event));
        }
        let kind: Kind = serde_json::from_slice(line).map_err(|error| problem(error.to_string()))?;
        if lines.number() == 1 && kind.name != "header" {
            return Err(problem("the first line is no header".into()));
        }
        if kind.name == "header" {
            match kind.major {
                Some(SCHEMA_MAJOR) => {}
                Some(found) => {
                    let path = lines.path().into();
                    return Err(ReadError::Major { path, found });
                }
                None => return Err(problem("the header has no field `major`".into())),
            }
            return Ok(None);
        }
        if !Payload::KINDS.contains(&kind.name.as_str()) {
            return Ok(None);
        }
        serde_json::from_slice(line)
            .map(Some)
            .map_err(|error| problem(error.to_string()))
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
