//! A record that goes on: what was told after a checkpoint is moved aside, and the rest is folded.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::Deserialize;

use super::RunDirectory;
use crate::health::AtPath;
use crate::telemetry::sinks::JsonLinesSink;
use crate::telemetry::{CheckpointLoaded, Earlier, Event, LiveState, Note, ReadError, read_events};

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
/// in `events.discarded-{n}.jsonl`: the rounds it tells of are played again.
///
/// # Errors
/// Files that cannot be read or written.
fn cut_back(directory: &Path, next_seq: u64) -> Result<Earlier, ReadError> {
    let path = directory.join(JsonLinesSink::FILE_NAME);
    let content = fs::read(&path).at(&path)?;
    let kept = kept_bytes(&content, next_seq);
    if kept < content.len() {
        let tail = (1..)
            .map(|n| directory.join(format!("events.discarded-{n}.jsonl")))
            .find(|path| !path.exists())
            .unwrap_or_else(|| directory.join("events.discarded.jsonl"));
        let mut file = File::create_new(&tail).at(&tail)?;
        file.write_all(&content[kept..]).at(&tail)?;
        file.sync_all().at(&tail)?;
        let events = OpenOptions::new().write(true).open(&path).at(&path)?;
        events.set_len(kept as u64).at(&path)?;
        events.sync_all().at(&path)?;
    }
    let events = read_events(&path)?.events;
    let told = events.last().map_or(0, |event| event.seq + 1);
    if told < next_seq {
        tracing::warn!(
            "{} lacks the events from number {told} to {}",
            path.display(),
            next_seq - 1
        );
    }
    let mut live = LiveState::default();
    events.iter().for_each(|event| live.apply(event));
    Ok(Earlier {
        live,
        next_seq: told.max(next_seq),
    })
}

/// How much of an event file belongs to the rounds before event `next_seq`. That the checkpoint of these rounds was saved
/// belongs to them; a header that opens a part of which nothing is kept does not.
fn kept_bytes(content: &[u8], next_seq: u64) -> usize {
    #[derive(Deserialize)]
    struct Line {
        seq: Option<u64>,
        #[serde(rename = "type")]
        kind: String,
    }
    let (mut position, mut kept) = (0, 0);
    for line in content.split_inclusive(|&byte| byte == b'\n') {
        position += line.len();
        let is_whole = line.ends_with(b"\n");
        let Ok(Line { seq, kind }) = serde_json::from_slice(line) else {
            break;
        };
        match seq {
            None if kept == 0 => kept = position,
            None => {}
            Some(seq) if is_whole && (seq < next_seq || kind == "checkpoint_saved") => kept = position,
            Some(_) => break,
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "{\"type\":\"header\",\"schema\":\"simic.telemetry\",\"major\":1,\"minor\":0}\n";
    const RESUMED: &str = "{\"type\":\"header\",\"schema\":\"simic.telemetry\",\"major\":1,\"resumed\":true}\n";

    fn note(seq: u64) -> String {
        format!(
            "{{\"seq\":{seq},\"t\":\"2026-01-01T00:00:00.000Z\",\"type\":\"note\",\"sev\":\"info\",\
             \"data\":{{\"text\":\"{seq}\"}}}}\n"
        )
    }

    fn saved(seq: u64) -> String {
        format!(
            "{{\"seq\":{seq},\"t\":\"2026-01-01T00:00:00.000Z\",\"type\":\"checkpoint_saved\",\"sev\":\"info\",\
             \"data\":{{\"path\":\"checkpoints/round-000001\",\"round\":1,\"reason\":\"periodic\",\"size_bytes\":1,\
             \"wall_ms\":1.0}}}}\n"
        )
    }

    fn cut(text: &str, next_seq: u64) -> (tempfile::TempDir, Earlier) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("events.jsonl"), text).unwrap();
        let earlier = cut_back(folder.path(), next_seq).unwrap();
        (folder, earlier)
    }

    #[test]
    fn events_of_a_round_that_will_be_played_again_are_moved_aside() {
        let (before, after) = (
            format!("{HEADER}{}{}{}", note(0), note(1), saved(2)),
            format!("{}{}", note(3), note(4)),
        );

        let (folder, earlier) = cut(&format!("{before}{after}{{\"seq\":5,\"ty"), 2);

        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("events.jsonl"), before);
        assert_eq!(read("events.discarded-1.jsonl"), format!("{after}{{\"seq\":5,\"ty"));
        assert_eq!(earlier.next_seq, 3);
    }

    #[test]
    fn a_part_of_which_nothing_is_kept_loses_its_header_too() {
        let before = format!("{HEADER}{}", note(0));

        let (folder, earlier) = cut(&format!("{before}{RESUMED}{}", note(1)), 1);

        assert_eq!(fs::read_to_string(folder.path().join("events.jsonl")).unwrap(), before);
        assert_eq!(earlier.next_seq, 1);
    }

    #[test]
    fn nothing_is_moved_where_nothing_is_too_much() {
        let (folder, earlier) = cut(&format!("{HEADER}{}{RESUMED}{}", note(0), note(1)), 2);

        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(earlier.next_seq, 2);
    }
}
