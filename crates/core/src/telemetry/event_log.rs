//! The writer of a run's record: at every flush, at once, by the thread that plays. Events that cannot be written stay
//! in memory and are tried again with every flush; only a checkpoint and the end of the run wait for it.
//!
//! Everything since the last synchronisation that succeeded stays in memory: after one that failed the content of the device
//! is unknown, even if a later one succeeds, and all of it is written again.

use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::encoding::is_default;
use super::event::{Event, Payload, SCHEMA};
use super::gap::RecordGap;
use super::mark::{EventsHasher, EventsMark, WrittenRecord};
use super::reader::{EVENTS_FILE, EventLines, Place, closed_segment};
use super::sink::SinkError;
use crate::files;
use crate::health::{AtPath, FileError};
use crate::storage::{self, File, rename, sync_folder};

/// A segment that has grown to this size is closed.
const SEGMENT_BYTES: u64 = 16 << 20;
/// Size at which events that are not known to be on disk are synchronised, bytes.
const UNSYNCED_BYTES: usize = 4 << 20;
/// The most that a run keeps in memory while its disk fails, bytes; later events are lost.
const KEPT_BYTES: usize = 64 << 20;
/// The first pause before a disk that fails is tried again while the run waits. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The level at which compression is fast and gets most of its effect.
const LEVEL: i32 = 3;

/// The newest attempt to write failed.
#[derive(Debug)]
struct Outage {
    why: String,
    /// The run has waited for its end.
    is_waited_for: bool,
}

/// Writes the events of one run.
#[derive(Debug)]
pub(super) struct EventLog {
    folder: PathBuf,
    run_id: String,
    /// `None` once it cannot be trusted: it is opened again, and rewritten from `synced` on.
    file: Option<File>,
    closed_segments: u32,
    /// The hash of every line that was taken.
    hasher: EventsHasher,
    /// Bytes of the segment that are on disk.
    synced: u64,
    /// Lines after them.
    unsynced: Vec<u8>,
    /// Bytes of these lines that the file has taken.
    written: usize,
    /// The round of the first of these lines that has one.
    since: Option<u32>,
    outage: Option<Outage>,
    /// The file was deleted, replaced or cut from outside.
    is_lost: bool,
    lost_events: u64,
    lost_since: Option<u32>,
    /// Size in bytes at which the segment is closed.
    close_at: u64,
}

impl EventLog {
    /// Begins the record of run `run_id` in `folder`, which must have none.
    ///
    /// # Errors
    /// The file is there, or cannot be written.
    pub fn create(folder: &Path, run_id: &str) -> Result<Self, SinkError> {
        let path = folder.join(EVENTS_FILE);
        let file = File::create_new(&path).at(&path)?;
        sync_folder(folder).at(folder)?;
        Self::begin(folder, run_id, file, false, WrittenRecord::default())
    }

    /// Continues the record in `folder`, where `written` has been written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn resume(folder: &Path, run_id: &str, written: WrittenRecord) -> Result<Self, SinkError> {
        let path = folder.join(EVENTS_FILE);
        let file = File::append(&path).at(&path)?;
        Self::begin(folder, run_id, file, true, written)
    }

    fn begin(
        folder: &Path,
        run_id: &str,
        file: File,
        is_resumed: bool,
        written: WrittenRecord,
    ) -> Result<Self, SinkError> {
        let WrittenRecord {
            hasher,
            closed_segments,
            bytes,
        } = written;
        let mut log = Self {
            folder: folder.into(),
            run_id: run_id.into(),
            file: Some(file),
            closed_segments,
            hasher,
            synced: bytes,
            unsynced: header_line(run_id, is_resumed, closed_segments)?,
            written: 0,
            since: None,
            outage: None,
            is_lost: false,
            lost_events: 0,
            lost_since: None,
            close_at: SEGMENT_BYTES,
        };
        log.hasher.take(&log.unsynced);
        log.write_out()?;
        Ok(log)
    }

    /// Takes the events of one flush and writes them.
    pub fn append(&mut self, events: &[Arc<Event>]) {
        for event in events {
            let before = self.unsynced.len();
            // The end of a run is always written, without limit: it is the one event that says what is missing.
            let has_room = before < KEPT_BYTES || matches!(event.payload, Payload::RunFinished(_));
            if self.is_lost || !has_room || serde_json::to_writer(&mut self.unsynced, &**event).is_err() {
                self.unsynced.truncate(before);
                self.lost_events += 1;
                self.lost_since = self.lost_since.or(event.round);
                continue;
            }
            self.unsynced.push(b'\n');
            self.hasher.take(&self.unsynced[before..]);
            self.since = self.since.or(event.round);
        }
        let written = self.write_out();
        self.note(written);
        if self.unsynced.len() >= UNSYNCED_BYTES && self.outage.is_none() {
            let synced = self.sync();
            self.note(synced);
        }
    }

    /// Puts everything on disk, so that neither a kill nor a power cut from here on loses any of it. A disk that fails is
    /// tried again for as long as `patience`, once an outage, however often this is called.
    pub fn settle(&mut self, patience: Duration) {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let synced = self.sync();
            self.note(synced);
            let Some(outage) = &mut self.outage else { return };
            if self.is_lost || outage.is_waited_for || started.elapsed() + pause > patience {
                outage.is_waited_for = true;
                return;
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// The events that the record is missing: those that were lost, and those that cannot be written now.
    pub fn gap(&self) -> Option<RecordGap> {
        let unwritten = &self.unsynced[self.written..];
        let held = match self.outage {
            Some(_) => unwritten.iter().filter(|&&byte| byte == b'\n').count() as u64,
            None => 0,
        };
        let lost_events = self.lost_events + held;
        (lost_events > 0 || self.outage.is_some()).then(|| RecordGap {
            part: EVENTS_FILE.into(),
            lost_events,
            round: self.lost_since.or(self.since.filter(|_| lost_events > 0)),
            why: self.outage.as_ref().map_or_else(
                || "the disk failed until there was no memory left for them".into(),
                |outage| outage.why.clone(),
            ),
        })
    }

    /// Returns whether the newest attempt to write failed.
    pub const fn is_failing(&self) -> bool {
        self.outage.is_some()
    }

    /// Events that are gone for good.
    pub const fn lost_events(&self) -> u64 {
        self.lost_events
    }

    /// Mark of every line so far.
    pub fn mark(&self) -> EventsMark {
        self.hasher.mark()
    }

    fn path(&self) -> PathBuf {
        self.folder.join(EVENTS_FILE)
    }

    fn write_out(&mut self) -> Result<(), FileError> {
        let path = self.path();
        if self.file.is_none() {
            let file = File::append(&path).at(&path)?;
            self.is_lost |= file.metadata().is_ok_and(|found| found.len() < self.synced);
            if !self.is_lost {
                file.set_len(self.synced).at(&path)?;
                self.written = 0;
            }
            self.file = Some(file);
        }
        if self.is_lost {
            let what = "it was deleted, replaced or cut while the run wrote it; the training itself is sound";
            return Err(Error::other(what)).at(&path);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let (written, outcome) = file.write_most(&self.unsynced[self.written..]);
        self.written += written;
        outcome.at(&path)
    }

    fn sync(&mut self) -> Result<(), FileError> {
        self.write_out()?;
        let path = self.path();
        let Some(file) = &self.file else { return Ok(()) };
        let length = self.synced + self.written as u64;
        if !file.is_in_place() || file.metadata().is_ok_and(|found| found.len() != length) {
            self.is_lost = true;
            return self.write_out();
        }
        if let Err(error) = file.sync() {
            (self.file, self.written) = (None, 0);
            return Err(error).at(&path);
        }
        self.synced += self.unsynced.len() as u64;
        self.unsynced.clear();
        (self.written, self.since) = (0, None);
        if self.synced >= self.close_at {
            self.close();
        }
        Ok(())
    }

    /// A segment that cannot be closed grows on.
    fn close(&mut self) {
        let (number, path) = (self.closed_segments + 1, self.path());
        let closed = header_line(&self.run_id, false, number)
            .map_err(SinkError::from)
            .and_then(|header| {
                close_segment(&self.folder, number, &header)?;
                Ok(header)
            });
        match closed {
            Ok(header) => {
                self.hasher.take(&header);
                self.closed_segments = number;
                (self.synced, self.close_at) = (header.len() as u64, SEGMENT_BYTES);
                // Opened again by the next write.
                self.file = None;
            }
            Err(error) => {
                self.close_at = self.synced + SEGMENT_BYTES;
                tracing::warn!(%error, file = %path.display(), "the events were not compressed; the file keeps growing");
            }
        }
    }

    /// Tells the beginning and the end of an outage.
    fn note(&mut self, outcome: Result<(), FileError>) {
        match (outcome, &mut self.outage) {
            (Ok(()), outage) => {
                if outage.take().is_some() {
                    let kept = if self.lost_events == 0 { "; nothing is lost" } else { "" };
                    tracing::warn!("{EVENTS_FILE} can be written again{kept}");
                }
            }
            (Err(error), Some(outage)) => outage.why = error.to_string(),
            (Err(error), none) => {
                let why = error.to_string();
                tracing::warn!("the record cannot be written ({why}); events are kept in memory and tried again");
                *none = Some(Outage {
                    why,
                    is_waited_for: false,
                });
            }
        }
    }
}

/// The first line of every segment, and of every part that a resumed run adds.
#[derive(Serialize)]
struct Header<'a> {
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

/// The line that opens a segment after `closed_segments` others, or a resumed part.
fn header_line(run_id: &str, resumed: bool, closed_segments: u32) -> Result<Vec<u8>, serde_json::Error> {
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

/// Compresses the open segment into closed segment `number`, and puts one with only `header` in its place. A kill at any
/// point leaves either the old or the new `events.jsonl`, whole.
fn close_segment(folder: &Path, number: u32, header: &[u8]) -> Result<(), FileError> {
    let open = folder.join(EVENTS_FILE);
    let closed = closed_segment(folder, number);
    let compress = |draft: &Path| {
        let mut encoder = zstd::stream::Encoder::new(File::create(draft)?, LEVEL)?;
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

/// Makes everything before `place` the whole record of the run in `folder`. Everything after it is first written, whole, to
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
        let mut tail = File::create(&draft).at(&draft)?;
        let mut kept = File::create(&kept_draft).at(&kept_draft)?;
        while lines.advance()? {
            let is_kept = lines.segment == place.segment && lines.start() < place.bytes;
            if is_kept {
                io::Write::write_all(&mut kept, lines.line()).at(&kept_draft)?;
            } else if lines.segment >= place.segment {
                io::Write::write_all(&mut tail, lines.line()).at(&draft)?;
            }
        }
        tail.sync().at(&draft)?;
        kept.sync().at(&kept_draft)
    };
    split().inspect_err(|_| {
        // The disk may be full. If removing fails too, the error says why.
        let _ = (storage::remove_file(&draft), storage::remove_file(&kept_draft));
    })?;
    rename(&draft, &aside).at(&aside)?;
    // The tail is renamed first: a power cut must not leave it in neither file.
    sync_folder(folder).at(folder)?;
    rename(&kept_draft, &open).at(&open)?;
    sync_folder(folder).at(folder)?;
    for number in place.segment..lines.segments {
        let closed = closed_segment(folder, number);
        storage::remove_file(&closed).at(&closed)?;
    }
    Ok(())
}

#[cfg(test)]
mod segment_tests;
#[cfg(test)]
mod tests;
