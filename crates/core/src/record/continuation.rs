//! A record that continues: events after the checkpoint are moved aside, and the others are folded.

use std::path::Path;

use super::{RunDirectory, RunStatus, STATUS_FILE};
use crate::health::AtPath;
use crate::telemetry::{
    CheckpointLoaded, DetectorBank, EVENTS_FILE, Earlier, Event, EventReader, EventsHasher, LineError, LiveState, Note,
    Payload, Place, ReadError, RunState, WrittenRecord, cut_record,
};

/// The point at which a record continues.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The folder of the run.
    pub directory: RunDirectory,
    /// The checkpoint, relative to the run directory.
    pub checkpoint: String,
    /// The round to be played next.
    pub next_round: u32,
    /// Steps of this round that have been played.
    pub step: u32,
    /// Events below belong to finished rounds.
    pub next_seq: u64,
    /// Differences from the scenario that was played until then, in words.
    pub changed: Vec<String>,
}

impl Continuation {
    /// The events of a resumed run before it starts.
    pub(super) fn loaded(&self) -> impl Iterator<Item = Event> {
        let loaded = CheckpointLoaded {
            path: self.checkpoint.clone(),
            round: self.next_round,
            step: (self.step > 0).then_some(self.step),
        };
        let changes = self.changed.iter().cloned().map(Note::of_engine).map(Event::run);
        std::iter::once(Event::run(loaded)).chain(changes)
    }

    /// Moves events after the checkpoint aside and folds the others, into `detectors` too.
    ///
    /// # Errors
    /// Files that cannot be read, written or moved.
    pub(super) fn cut_back(&self, detectors: &mut DetectorBank) -> Result<Earlier, ReadError> {
        let folder = self.directory.path();
        // First: the status of the run's end vouches for events that are cut off.
        let written = RunStatus::new(RunState::Starting).write(folder);
        written.at(&folder.join(STATUS_FILE))?;
        cut_back(folder, self.next_seq, detectors)
    }
}

/// Cuts a run's events back to those with numbers below `next_seq` and folds them. The rest is kept in the same folder,
/// in `events.discarded-{n}.jsonl`: its rounds are played again. Files of any size need little memory.
///
/// # Errors
/// Files that cannot be read or written.
fn cut_back(directory: &Path, next_seq: u64, detectors: &mut DetectorBank) -> Result<Earlier, ReadError> {
    let Kept {
        place,
        hasher,
        live,
        recorded,
    } = kept_part(directory, next_seq, detectors)?;
    cut_record(directory, place)?;
    if recorded < next_seq {
        tracing::warn!(
            "{} is missing the events from number {recorded} to {}",
            directory.join(EVENTS_FILE).display(),
            next_seq - 1
        );
    }
    Ok(Earlier {
        live,
        next_seq: recorded.max(next_seq),
        written: WrittenRecord {
            hasher,
            closed_segments: place.segment - 1,
            bytes: place.bytes,
        },
    })
}

/// The part of a record that belongs to the rounds before a checkpoint.
struct Kept {
    /// The end of the part.
    place: Place,
    /// The hash of all its lines.
    hasher: EventsHasher,
    /// The state that all of it folds to.
    live: LiveState,
    /// Number of the event after it.
    recorded: u64,
}

/// The part that belongs to the rounds before event `next_seq`. The event that saved the checkpoint of these rounds belongs to
/// them. A header that opens a part without kept events doesn't, and neither does anything after a line that can't be read.
fn kept_part(directory: &Path, next_seq: u64, detectors: &mut DetectorBank) -> Result<Kept, ReadError> {
    let mut events = EventReader::open(directory)?;
    let mut hasher = EventsHasher::default();
    let mut kept = Kept {
        place: Place { segment: 1, bytes: 0 },
        hasher: hasher.clone(),
        live: LiveState::default(),
        recorded: 0,
    };
    loop {
        match events.next_with(|line| hasher.take(line)) {
            Ok(Some(event)) if event.seq < next_seq || matches!(event.payload, Payload::CheckpointSaved(_)) => {
                kept.live.apply(&event);
                // The anomalies that it begins or ends follow in the record.
                let _ = detectors.fold(&event);
                kept.recorded = event.seq + 1;
                kept.place = events.place();
                kept.hasher = hasher.clone();
            }
            Ok(_) => break,
            Err(
                error @ ReadError::Line {
                    problem: LineError::Content(_),
                    ..
                },
            ) => {
                tracing::warn!("{error}; this line and all later ones are moved aside");
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests;
