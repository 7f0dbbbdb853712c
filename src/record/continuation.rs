//! A record that goes on: what was told after a checkpoint is moved aside, and the rest is folded.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use super::RunDirectory;
use crate::health::{AtPath, FileError};
use crate::storage::{self, sync_folder};
use crate::telemetry::sinks::JsonLinesSink;
use crate::telemetry::{CheckpointLoaded, Earlier, Event, EventReader, LiveState, Note, Payload, ReadError};

/// Where a record goes on.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The folder of the run.
    pub directory: RunDirectory,
    /// The checkpoint, relative to the run directory.
    pub checkpoint: String,
    /// To be played next.
    pub next_round: u32,
    /// Steps of this round that have been played.
    pub step: u32,
    /// Events below belong to what has been played.
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
            step: (self.step > 0).then_some(self.step),
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
    let Kept { bytes, live, told } = kept_part(&path, next_seq)?;
    if bytes < path.metadata().at(&path)?.len() {
        move_tail_aside(directory, &path, bytes)?;
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
        let mut tail = storage::File::create(&unfinished)?;
        io::copy(&mut events, &mut tail)?;
        tail.sync()
    };
    let copied = copy().inspect_err(|_| {
        // Of a full disk: where nothing can be removed either, the error below tells.
        let _ = storage::remove_file(&unfinished);
    });
    copied.at(&unfinished)?;
    storage::rename(&unfinished, &place).at(&place)?;
    // Its name first: a power cut must not find the tail in neither file.
    sync_folder(directory).at(directory)?;
    let events = storage::File::change(path).at(path)?;
    events.set_len(kept).at(path)?;
    events.sync().at(path)
}

/// What of an event file belongs to the rounds before a checkpoint.
#[derive(Default)]
struct Kept {
    /// Its length, in bytes from the file's beginning.
    bytes: u64,
    /// All of it, folded.
    live: LiveState,
    /// Number of the event behind it.
    told: u64,
}

/// What belongs to the rounds before event `next_seq`. That the checkpoint of these rounds was saved belongs to them; a
/// header that opens a part of which nothing is kept does not, and nothing behind a line that cannot be read.
fn kept_part(path: &Path, next_seq: u64) -> Result<Kept, ReadError> {
    let mut events = EventReader::open(path)?;
    let mut kept = Kept::default();
    while let Some(event) = events.next() {
        match event {
            Ok(event) if event.seq < next_seq || matches!(event.payload, Payload::CheckpointSaved(_)) => {
                kept.live.apply(&event);
                kept.told = event.seq + 1;
                kept.bytes = events.position();
            }
            Ok(_) => break,
            Err(error @ ReadError::Line { .. }) => {
                tracing::warn!("{error}; this line and what stands behind it are moved aside");
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests;
