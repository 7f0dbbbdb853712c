//! Reads the events of a run back: one per line in `events.jsonl`, and what stood there before it grew too long in closed
//! segments, `events-0001.jsonl.zst` and on. The lines of all of them come in order, one in memory at a time, so that records of
//! any size need little: a torn last line is passed over, every other fault named by file and line.

use std::fs::Metadata;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::event::{Event, SCHEMA};
use crate::files;
use crate::health::{AtPath, FileError};
use crate::storage;

/// Name of the open segment: the only one of most runs.
pub const EVENTS_FILE: &str = "events.jsonl";
/// Longest line that is read: a longer one can't be an event.
const LINE_BYTES: u64 = 64 << 20;
/// Bytes that are read at once from the end of a file.
const BLOCK_BYTES: u64 = 64 * 1024;

/// The file of closed segment `number`, from 1.
pub(super) fn closed_segment(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("events-{number:04}.jsonl.zst"))
}

/// The reason why the events of a run could not be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// A file cannot be opened or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line that isn't an event.
    #[error("{path}:{line}: {problem}")]
    Line {
        path: PathBuf,
        line: usize,
        problem: LineError,
    },
}

/// The reason why a line of a record isn't an event.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It opens events of another schema.
    #[error("written with telemetry schema {0}; this version reads schema {SCHEMA}")]
    Schema(u32),
    /// Anything else, in words.
    #[error("{0}")]
    Content(String),
}

/// Between two lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the segment, from 1.
    pub segment: u32,
    /// Bytes of its lines up to there.
    pub bytes: u64,
}

/// The lines of all segments.
pub struct EventLines {
    folder: PathBuf,
    path: PathBuf,
    file: Box<dyn BufRead + Send>,
    /// Number of the segment, from 1; the last one is open.
    pub(super) segment: u32,
    pub(super) segments: u32,
    line: Vec<u8>,
    number: usize,
    start: u64,
    /// The file of the open segment, once it is read.
    opened: Option<Metadata>,
}

impl EventLines {
    /// # Errors
    /// There is no `events.jsonl` in `folder`, or a file that cannot be opened.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        let segments = closed_segments(folder)?.saturating_add(1);
        let SegmentFile { path, file, opened } = open_segment(folder, 1, segments)?;
        Ok(Self {
            folder: folder.into(),
            path,
            file,
            segment: 1,
            segments,
            line: Vec::new(),
            number: 0,
            start: 0,
            opened,
        })
    }

    /// Moves on to the next line; false at the end of the last segment.
    ///
    /// # Errors
    /// A file that cannot be read, or decompressed.
    pub fn advance(&mut self) -> Result<bool, FileError> {
        loop {
            self.start += self.line.len() as u64;
            self.number += 1;
            self.line.clear();
            let read = (&mut self.file).take(LINE_BYTES).read_until(b'\n', &mut self.line);
            if read.at(&self.path)? as u64 == LINE_BYTES && !self.is_whole() {
                let what = format!("line {} is longer than {} MiB", self.number, LINE_BYTES >> 20);
                return Err(io::Error::new(ErrorKind::InvalidData, what)).at(&self.path);
            }
            if !self.line.is_empty() {
                return Ok(true);
            }
            if self.segment == self.segments {
                return Ok(false);
            }
            self.enter_next()?;
        }
    }

    fn enter_next(&mut self) -> Result<(), FileError> {
        self.segment += 1;
        let next = open_segment(&self.folder, self.segment, self.segments)?;
        (self.path, self.file, self.opened) = (next.path, next.file, next.opened);
        (self.number, self.start) = (0, 0);
        Ok(())
    }

    /// Moves on to the next whole line of a record that is still written; false if there is none yet.
    ///
    /// # Errors
    /// Those of [`Self::advance`].
    pub fn follow(&mut self) -> Result<bool, FileError> {
        loop {
            if self.is_whole() {
                self.start += self.line.len() as u64;
                self.line.clear();
            }
            if self.line.is_empty() {
                self.number += 1;
            }
            // The part of a line that is still being written stays until the rest comes.
            let room = LINE_BYTES.saturating_sub(self.line.len() as u64);
            let read = (&mut self.file).take(room).read_until(b'\n', &mut self.line);
            read.at(&self.path)?;
            if self.is_whole() {
                return Ok(true);
            }
            if self.line.is_empty() {
                self.number -= 1;
                if self.segment < self.segments {
                    self.enter_next()?;
                    continue;
                }
            }
            // A segment that was closed in the meantime is still open here: it is read to its end first.
            let segments = closed_segments(&self.folder)?.saturating_add(1);
            if segments <= self.segments {
                return Ok(false);
            }
            self.segments = segments;
        }
    }

    /// Returns whether another record has taken the place of the one that is followed: that of a run that was resumed from
    /// before its end.
    pub fn is_replaced(&self) -> bool {
        let Ok(now) = self.folder.join(EVENTS_FILE).metadata() else {
            return false;
        };
        // Asked after the file, which is another one as soon as a segment is closed.
        let Ok(closed) = closed_segments(&self.folder) else {
            return false;
        };
        let is_same = self
            .opened
            .as_ref()
            .is_none_or(|opened| storage::are_one_file(opened, &now));
        let is_open = self.segment == self.segments && closed.saturating_add(1) == self.segments;
        closed.saturating_add(1) < self.segments || is_open && !(is_same && now.len() >= self.place().bytes)
    }

    /// The line with its end.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns whether it has an end: the last line of a writer that was killed has none.
    pub fn is_whole(&self) -> bool {
        self.line.ends_with(b"\n")
    }

    /// The file that it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of the line in that file, from 1.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Bytes of the segment before it.
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// The place after the line.
    pub(crate) const fn place(&self) -> Place {
        Place {
            segment: self.segment,
            bytes: self.start + self.line.len() as u64,
        }
    }

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
            _ => "the first line isn't a header".into(),
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

/// A file of lines.
struct SegmentFile {
    path: PathBuf,
    file: Box<dyn BufRead + Send>,
    /// Metadata of the open file.
    opened: Option<Metadata>,
}

fn open_segment(folder: &Path, number: u32, segments: u32) -> Result<SegmentFile, FileError> {
    if number == segments {
        let path = folder.join(EVENTS_FILE);
        let file = files::open(&path).at(&path)?;
        let opened = Some(file.metadata().at(&path)?);
        let file = Box::new(BufReader::new(file));
        return Ok(SegmentFile { path, file, opened });
    }
    let path = closed_segment(folder, number);
    let decoder = files::open(&path).and_then(zstd::stream::Decoder::new).at(&path)?;
    let file = Box::new(BufReader::new(decoder));
    Ok(SegmentFile {
        path,
        file,
        opened: None,
    })
}

/// The number of closed segments before `events.jsonl` in `folder`, from its header. A killed process has left any segment
/// there that the header does not count, and its events are in `events.jsonl`.
fn closed_segments(folder: &Path) -> Result<u32, FileError> {
    #[derive(Deserialize)]
    struct Counted {
        #[serde(default)]
        closed_segments: u32,
    }
    let path = folder.join(EVENTS_FILE);
    let file = files::open(&path).at(&path)?;
    let mut line = Vec::new();
    BufReader::new(file.take(LINE_BYTES))
        .read_until(b'\n', &mut line)
        .at(&path)?;
    // Readers of lines report a header that cannot be read.
    Ok(serde_json::from_slice(&line).map_or(0, |header: Counted| header.closed_segments))
}

/// Content of the last closed segment in `folder`; nothing if there is none.
fn last_closed(folder: &Path) -> Result<Vec<u8>, FileError> {
    let segments = closed_segments(folder)?;
    let mut text = Vec::new();
    if segments > 0 {
        let SegmentFile { path, file, .. } = open_segment(folder, segments, segments + 1)?;
        file.take(LINE_BYTES).read_to_end(&mut text).at(&path)?;
    }
    Ok(text)
}

/// The events of a run, one after the other; only one line is in memory at a time. After an error there is no more. An
/// incomplete last line is skipped.
pub struct EventReader(EventLines);

impl EventReader {
    /// Opens the events of the run in `folder`.
    ///
    /// # Errors
    /// If there are none, or they cannot be opened.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        EventLines::open(folder).map(Self)
    }

    /// The place after the event that was read last.
    pub(crate) const fn place(&self) -> Place {
        self.0.place()
    }

    /// `take` gets every line up to the next event, headers included.
    ///
    /// # Errors
    /// The failure that ends the events too soon.
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

    /// The next event of a record that is still written; `None` if there is none yet, and there may be one later.
    ///
    /// # Errors
    /// The failure that ends the events too soon.
    pub fn follow(&mut self) -> Result<Option<Event>, ReadError> {
        while self.0.follow()? {
            if let Some(event) = self.event()? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Returns whether another record has taken the place of the one that is followed, as when a run is resumed from
    /// before its end.
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

/// The result of `wanted` for the last event of the run in `folder` that has one, searched from the end; leftovers of a
/// killed writer after it are skipped. Of all closed segments only the last is read, if `events.jsonl` has nothing.
///
/// # Errors
/// A file that cannot be read.
pub fn find_last<T>(folder: &Path, wanted: impl Fn(&Event) -> Option<T>) -> Result<Option<T>, FileError> {
    let find = |lines: &[&[u8]]| {
        let events = lines.iter().rev().filter_map(|line| serde_json::from_slice(line).ok());
        events.into_iter().find_map(|event| wanted(&event))
    };
    let path = &folder.join(EVENTS_FILE);
    let mut file = files::open(path).at(path)?;
    let mut start = file.metadata().at(path)?.len();
    // The part of a line that began before `start`.
    let mut tail = Vec::new();
    while start > 0 {
        let before = start;
        // Blocks grow with the kept part of a line that began earlier: it is copied a few times, however long it is.
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
