//! The events of a run: every line readable, every number there once and in order, and every byte as checkpoints, the end of
//! the run and its status knew it.

use std::cmp::Reverse;
use std::path::Path;

use super::{Part, Weight};
use crate::checkpoint::Progress;
use crate::files::name_of;
use crate::health::FileError;
use crate::record::STATUS_FILE;
use crate::telemetry::{EVENTS_FILE, Event, EventLines, EventsHasher, EventsMark, LineError, Payload, RunStarted};

/// Facts about the events.
#[derive(Default)]
pub(super) struct EventFacts {
    pub part: Part,
    /// The beginning of the run.
    pub started: Option<RunStarted>,
    /// Rounds that have ended.
    pub rounds: usize,
    /// Rounds before which a checkpoint was saved since the run was begun or taken up last.
    pub saved: Vec<u32>,
    pub count: u64,
    pub has_decisions: bool,
    /// The file is there, and of the schema that this version continues.
    pub is_open: bool,
    /// Every line can be read, no number is missing or out of order, and no byte is known to be changed.
    pub is_whole: bool,
    /// Bytes whose hash is known and right.
    pub vouched: u64,
}

/// Reads the events, and compares them with what `checkpoints` have seen of them, and with all of them at the `end` of
/// the run, by its status.
pub(super) fn check(folder: &Path, checkpoints: &[Progress], end: Option<EventsMark>, is_played: bool) -> EventFacts {
    let of_checkpoint = |progress: &Progress| {
        let name = format!("the checkpoint {} was written", progress.id());
        Some((progress.recorded.clone()?, name))
    };
    let end = end.map(|mark| (mark, format!("{STATUS_FILE} was written")));
    let mut marks: Vec<_> = checkpoints.iter().filter_map(of_checkpoint).chain(end).collect();
    marks.sort_by_key(|(mark, _)| Reverse(mark.bytes));
    let mut reader = Reader {
        facts: EventFacts {
            part: Part::new("events"),
            ..EventFacts::default()
        },
        marks,
        expected: Some(0),
        file: EVENTS_FILE.into(),
        ..Reader::default()
    };
    match EventLines::open(folder) {
        Ok(lines) => {
            (reader.facts.is_open, reader.facts.is_whole) = (true, true);
            if let Err(error) = reader.read_all(lines, is_played) {
                reader.damage(error.source.to_string());
            }
        }
        Err(error) => reader.facts.part.problem(EVENTS_FILE, error.source.to_string()),
    }
    reader.facts
}

#[derive(Default)]
struct Reader {
    facts: EventFacts,
    hasher: EventsHasher,
    /// Marks not compared yet, the longest first, and when they were true.
    marks: Vec<(EventsMark, String)>,
    /// The number that is expected; `None` after a line that could not be read.
    expected: Option<u64>,
    /// The segment.
    file: String,
    /// The line in it, and the bytes before it.
    place: (usize, u64),
    /// Bytes before the line, of all segments.
    read: u64,
}

impl Reader {
    fn damage(&mut self, what: String) {
        self.facts.is_whole = false;
        let (file, place) = (self.file.clone(), Some(self.place));
        self.facts.part.add(Weight::Problem, file, place, what);
    }

    fn read_all(&mut self, mut lines: EventLines, is_played: bool) -> Result<(), FileError> {
        while lines.advance()? {
            self.place = (lines.number(), lines.start());
            self.file = name_of(lines.path());
            if !lines.is_whole() {
                let what = "the last line is incomplete: its writer was killed; a resume moves it aside".into();
                let (file, place) = (self.file.clone(), Some(self.place));
                if !is_played {
                    self.facts.part.add(Weight::Note, file, place, what);
                }
                break;
            }
            match lines.event() {
                Ok(event) => event.into_iter().for_each(|event| self.take(event)),
                Err(error) => {
                    self.facts.is_open &= !matches!(error, LineError::Schema(_));
                    self.expected = None;
                    self.damage(error.to_string());
                }
            }
            self.hasher.take(lines.line());
            self.read += lines.line().len() as u64;
            self.compare_marks();
        }
        if self.place.0 == 0 {
            self.damage("it is empty: a header was expected".into());
        }
        for (mark, when) in std::mem::take(&mut self.marks) {
            self.damage(format!("it ends too soon: it had {} bytes when {when}", mark.bytes));
        }
        Ok(())
    }

    /// The hash of the lines so far against those of as many bytes.
    fn compare_marks(&mut self) {
        let read = self.read;
        while let Some((mark, when)) = self.marks.pop_if(|(mark, _)| mark.bytes <= read) {
            if mark == self.hasher.mark() {
                self.facts.vouched = mark.bytes;
                continue;
            }
            let (from, to) = (self.facts.vouched, mark.bytes);
            self.damage(format!("a byte between {from} and {to} has changed since {when}"));
        }
    }

    fn take(&mut self, event: Event) {
        self.take_number(event.seq);
        let facts = &mut self.facts;
        facts.count += 1;
        match event.payload {
            Payload::RunStarted(run) if run.resumed_from.is_none() => facts.started = Some(run),
            Payload::Decision(_) => facts.has_decisions = true,
            Payload::RoundFinished(_) => facts.rounds += 1,
            // Those inside a round go as soon as there is a newer one.
            Payload::CheckpointSaved(saved) if saved.step.is_none() => facts.saved.push(saved.round),
            Payload::CheckpointLoaded(loaded) if loaded.step.is_none() => facts.saved = vec![loaded.round],
            Payload::CheckpointLoaded(loaded) => facts.saved.retain(|&round| round <= loaded.round),
            Payload::RunFinished(run) => {
                self.marks
                    .extend(run.recorded.map(|mark| (mark, String::from("the run ended"))));
                self.compare_marks();
            }
            _ => {}
        }
    }

    fn take_number(&mut self, seq: u64) {
        match self.expected {
            Some(expected) if seq > expected => {
                let missing = seq - expected;
                self.damage(format!(
                    "event {seq} where {expected} was expected: {missing} are missing"
                ));
            }
            Some(expected) if seq < expected => {
                self.damage(format!("event {seq} again, or out of order: {expected} was expected"));
            }
            _ => {}
        }
        self.expected = Some(self.expected.unwrap_or_default().max(seq.saturating_add(1)));
    }
}
