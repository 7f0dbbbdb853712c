//! A record that goes on: what was told after a checkpoint is moved aside, and the rest is folded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;

use super::RunDirectory;
use crate::health::{AtPath, FileError};
use crate::telemetry::sinks::JsonLinesSink;
use crate::telemetry::{CheckpointLoaded, Earlier, Event, EventReader, LiveState, Note, ReadError};

/// Where a record goes on.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The folder of the run.
    pub directory: RunDirectory,
    /// The checkpoint, relative to the run directory.
    pub checkpoint: String,
    /// To be played next.
    pub next_round: u32,
    /// Events below belong to the rounds played.
    pub next_seq: u64,
    /// What differs from the scenario that was played until then, in words.
    pub changed: Vec<String>,
}

impl Continuation {
    /// What a resumed run tells before it starts.
    pub(super) fn loaded(&self) -> impl Iterator<Item = Event> {
        let loaded = CheckpointLoaded {
            path: self.checkpoint.clone(),
            round: self.next_round,
        };
        let changes = self.changed.iter().map(|text| {
            Event::run(Note {
                text: text.clone(),
                author: None,
            })
        });
        std::iter::once(Event::run(loaded)).chain(changes)
    }

    /// Moves aside what was told after the checkpoint and folds the rest.
    ///
    /// # Errors
    /// Files that cannot be read, written or moved.
    pub(super) fn cut_back(&self) -> Result<Earlier, ReadError> {
        cut_back(self.directory.path(), self.next_seq)
    }
}

/// Cuts a run's events back to those with numbers below `next_seq` and folds them. What is cut off is kept beside them,
/// in `events.discarded-{n}.jsonl`: the rounds it tells of are played again. Files of any size need little memory.
///
/// # Errors
/// Files that cannot be read or written.
fn cut_back(directory: &Path, next_seq: u64) -> Result<Earlier, ReadError> {
    let path = directory.join(JsonLinesSink::FILE_NAME);
    let kept = kept_bytes(&path, next_seq)?;
    if kept < path.metadata().at(&path)?.len() {
        move_tail_aside(directory, &path, kept)?;
    }
    let (mut live, mut told) = (LiveState::default(), 0);
    for event in EventReader::open(&path)? {
        let event = event?;
        live.apply(&event);
        told = event.seq + 1;
    }
    if told < next_seq {
        tracing::warn!(
            "{} lacks the events from number {told} to {}",
            path.display(),
            next_seq - 1
        );
    }
    Ok(Earlier {
        live,
        next_seq: told.max(next_seq),
    })
}

/// Moves what stands behind the first `kept` bytes of the events into a file of its own, which appears whole or not at all.
fn move_tail_aside(directory: &Path, path: &Path, kept: u64) -> Result<(), FileError> {
    let place = (1..)
        .map(|n| directory.join(format!("events.discarded-{n}.jsonl")))
        .find(|place| !place.exists())
        .unwrap_or_else(|| directory.join("events.discarded.jsonl"));
    let unfinished = place.with_extension("jsonl.tmp");
    let copy = || {
        let mut events = File::open(path)?;
        events.seek(SeekFrom::Start(kept))?;
        let mut tail = File::create(&unfinished)?;
        io::copy(&mut events, &mut tail)?;
        tail.sync_all()
    };
    let copied = copy().inspect_err(|_| {
        // Of a full disk: where nothing can be removed either, the error below tells.
        let _ = fs::remove_file(&unfinished);
    });
    copied.at(&unfinished)?;
    fs::rename(&unfinished, &place).at(&place)?;
    let events = OpenOptions::new().write(true).open(path).at(path)?;
    events.set_len(kept).at(path)?;
    events.sync_all().at(path)
}

/// How much of an event file belongs to the rounds before event `next_seq`. That the checkpoint of these rounds was saved
/// belongs to them; a header that opens a part of which nothing is kept does not, and nothing behind a line that cannot be
/// read.
fn kept_bytes(path: &Path, next_seq: u64) -> Result<u64, FileError> {
    #[derive(Deserialize)]
    struct Line {
        seq: Option<u64>,
        #[serde(rename = "type")]
        kind: String,
    }
    let mut events = BufReader::new(File::open(path).at(path)?);
    let mut line = Vec::new();
    let (mut position, mut kept) = (0, 0);
    loop {
        line.clear();
        let length = events.read_until(b'\n', &mut line).at(path)? as u64;
        if length == 0 {
            return Ok(kept);
        }
        position += length;
        let is_whole = line.ends_with(b"\n");
        match serde_json::from_slice(&line) {
            Ok(Line { seq: None, .. }) if kept == 0 && is_whole => kept = position,
            Ok(Line { seq: None, .. }) => {}
            Ok(Line { seq: Some(seq), kind }) if is_whole && (seq < next_seq || kind == "checkpoint_saved") => {
                kept = position;
            }
            Ok(_) => return Ok(kept),
            Err(error) => {
                tracing::warn!(
                    "{} is damaged at byte {}: {error}; what stands there and behind it is moved aside",
                    path.display(),
                    position - length
                );
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests;
