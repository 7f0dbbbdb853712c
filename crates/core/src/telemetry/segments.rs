//! Where a run keeps its events: one a line in `events.jsonl`, and what stood there before it grew too long in closed
//! segments, `events-0001.jsonl.zst` and on. Readers see the lines of all of them in order, one in memory at a time.

use std::fs::Metadata;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::encoding::is_default;
use super::event::SCHEMA;
use crate::files;
use crate::health::{AtPath, FileError};
use crate::storage::{self, rename, sync_folder};

/// Name of the open segment: the only one of most runs.
pub const EVENTS_FILE: &str = "events.jsonl";
/// Longest line that is read: what is longer is no event.
const LINE_BYTES: u64 = 64 << 20;
/// Where compression is fast and most of its worth is had.
const LEVEL: i32 = 3;

/// The file of closed segment `number`, from 1.
fn closed_segment(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("events-{number:04}.jsonl.zst"))
}

/// The first line of every segment, and of every part that a resumed run adds.
#[derive(Serialize)]
pub(super) struct Header<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: u32,
    run_id: &'a str,
    engine: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resumed: bool,
    #[serde(skip_serializing_if = "is_default")]
    closed_segments: u32,
}

/// The line that opens a segment behind `closed_segments` others, or a resumed part.
pub(super) fn header_line(run_id: &str, resumed: bool, closed_segments: u32) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(&Header {
        kind: "header",
        schema: SCHEMA,
        run_id,
        engine: env!("CARGO_PKG_VERSION"),
        resumed,
        closed_segments,
    })?;
    line.push(b'\n');
    Ok(line)
}

/// How many closed segments precede `events.jsonl` in `folder`: its header says so. A segment beside it that the header
/// does not count is what a killed process left, and its events are in `events.jsonl`.
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
pub(super) fn last_closed(folder: &Path) -> Result<Vec<u8>, FileError> {
    let segments = closed_segments(folder)?;
    let mut text = Vec::new();
    if segments > 0 {
        let SegmentFile { path, file, .. } = open_segment(folder, segments, segments + 1)?;
        file.take(LINE_BYTES).read_to_end(&mut text).at(&path)?;
    }
    Ok(text)
}

/// Compresses the open segment into closed segment `number`, and puts one with `header` alone in its place. A kill at any
/// point leaves either the old or the new `events.jsonl`, whole.
pub(super) fn close_segment(folder: &Path, number: u32, header: &[u8]) -> Result<(), FileError> {
    let open = folder.join(EVENTS_FILE);
    let closed = closed_segment(folder, number);
    let compress = |draft: &Path| {
        let mut encoder = zstd::stream::Encoder::new(storage::File::create(draft)?, LEVEL)?;
        encoder.include_checksum(true)?;
        io::copy(&mut files::open(&open)?, &mut encoder)?;
        encoder.finish()?.sync()
    };
    let draft = closed.with_extension("zst.tmp");
    compress(&draft).at(&draft)?;
    rename(&draft, &closed).at(&closed)?;
    sync_folder(folder).at(folder)?;
    storage::replace_synced(&open, header).at(&open)
}

/// Makes everything before `place` the whole record of the run in `folder`; everything behind it is first written, whole, to
/// another file.
///
/// # Errors
/// Files that cannot be read, written or moved.
pub(crate) fn cut_record(folder: &Path, place: Place) -> Result<(), FileError> {
    let mut lines = EventLines::open(folder)?;
    let open = folder.join(EVENTS_FILE);
    if place.segment == lines.segments && open.metadata().at(&open)?.len() <= place.bytes {
        return Ok(());
    }
    let aside = (1..)
        .map(|n| folder.join(format!("events.discarded-{n}.jsonl")))
        .find(|path| !path.exists())
        .unwrap_or_else(|| folder.join("events.discarded.jsonl"));
    let draft = aside.with_extension("jsonl.tmp");
    let kept_draft = folder.join("events.jsonl.tmp");
    let mut split = || -> Result<(), FileError> {
        let mut tail = storage::File::create(&draft).at(&draft)?;
        let mut kept = storage::File::create(&kept_draft).at(&kept_draft)?;
        while lines.advance()? {
            let is_kept = lines.segment() == place.segment && lines.start() < place.bytes;
            if is_kept {
                io::Write::write_all(&mut kept, lines.line()).at(&kept_draft)?;
            } else if lines.segment() >= place.segment {
                io::Write::write_all(&mut tail, lines.line()).at(&draft)?;
            }
        }
        tail.sync().at(&draft)?;
        kept.sync().at(&kept_draft)
    };
    split().inspect_err(|_| {
        // On a full disk; where removing fails as well, the error says why.
        let _ = (storage::remove_file(&draft), storage::remove_file(&kept_draft));
    })?;
    rename(&draft, &aside).at(&aside)?;
    // Its name first: a power cut must not find the tail in neither file.
    sync_folder(folder).at(folder)?;
    rename(&kept_draft, &open).at(&open)?;
    sync_folder(folder).at(folder)?;
    for number in place.segment..lines.segments {
        let closed = closed_segment(folder, number);
        storage::remove_file(&closed).at(&closed)?;
    }
    Ok(())
}

/// Between two lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// From 1.
    pub segment: u32,
    /// Bytes of its lines up to there.
    pub bytes: u64,
}

/// The lines of all segments.
pub struct EventLines {
    folder: PathBuf,
    path: PathBuf,
    file: Box<dyn BufRead + Send>,
    /// From 1; the last one is open.
    segment: u32,
    segments: u32,
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
    /// As [`Self::advance`].
    pub fn follow(&mut self) -> Result<bool, FileError> {
        loop {
            if self.is_whole() {
                self.start += self.line.len() as u64;
                self.line.clear();
            }
            if self.line.is_empty() {
                self.number += 1;
            }
            // What is there of a line that is being written stays until the rest comes.
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
            // A segment that was closed meanwhile is still open here: it is read to its end first.
            let segments = closed_segments(&self.folder)?.saturating_add(1);
            if segments <= self.segments {
                return Ok(false);
            }
            self.segments = segments;
        }
    }

    /// Whether another record has taken the place of the one that is followed: that of a run that was resumed from before its
    /// end.
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

    /// Whether it has an end: the last line of a writer that was killed has none.
    pub fn is_whole(&self) -> bool {
        self.line.ends_with(b"\n")
    }

    /// The file that it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its number in that file, from 1.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Bytes of the segment before it.
    pub const fn start(&self) -> u64 {
        self.start
    }

    const fn segment(&self) -> u32 {
        self.segment
    }

    /// Behind the line.
    pub(crate) const fn place(&self) -> Place {
        Place {
            segment: self.segment,
            bytes: self.start + self.line.len() as u64,
        }
    }
}

/// A file of lines.
struct SegmentFile {
    path: PathBuf,
    file: Box<dyn BufRead + Send>,
    /// Of the open one.
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

#[cfg(test)]
mod tests;
