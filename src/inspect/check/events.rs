//! The events of a run: every line readable, every number there once and in order, and every byte as the checkpoints knew
//! it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{Part, Weight};
use crate::checkpoint::Progress;
use crate::files::name_of;
use crate::record::STATUS_FILE;
use crate::telemetry::{EVENTS_FILE, Event, EventLines, EventsHasher, EventsMark, LiveState, Payload, SCHEMA_MAJOR};

/// What is known of the events.
#[derive(Default)]
pub(super) struct EventFacts {
    pub part: Part,
    /// All that could be read, folded.
    pub live: LiveState,
    /// The file is there, and of a version that this one can continue.
    pub is_open: bool,
    /// From its first line to its last.
    pub can_be_read: bool,
    /// No number is missing, repeated, or out of order, and no byte is known to be changed.
    pub is_intact: bool,
    pub has_decisions: bool,
    /// The last event says how the run ended.
    pub is_closed: bool,
    /// Rounds before which a checkpoint was saved since the run was begun or taken up last, in order.
    pub saved: Vec<u32>,
    /// The number behind that of the last event.
    pub next_seq: u64,
    /// As recorded when the run began, by name.
    pub file_hashes: BTreeMap<String, String>,
}

/// Reads the events, and compares them with what the checkpoints have seen of them, and with all of them at the `end` of
/// the run, by its status.
pub(super) fn check(folder: &Path, checkpoints: &[Progress], end: Option<EventsMark>, is_played: bool) -> EventFacts {
    let mut reader = Reader::new(checkpoints, end);
    match EventLines::open(folder) {
        Ok(lines) => reader.read_all(lines, is_played),
        Err(error) => reader.facts.part.problem(EVENTS_FILE, error.source.to_string()),
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    facts: EventFacts,
    hasher: EventsHasher,
    /// What is not compared yet, by length, and who says so.
    marks: Vec<(EventsMark, String)>,
    /// Bytes that a checkpoint, the end of the run or its status vouches for.
    vouched: u64,
    /// The number that is expected; `None` behind a line that could not be read.
    expected: Option<u64>,
    round: u32,
    events: u64,
    unknown: u64,
    /// The segment.
    file: String,
    /// The line in it, and the bytes before it.
    place: (usize, u64),
    /// Bytes up to the end of the line.
    read: u64,
}

impl Reader {
    fn new(checkpoints: &[Progress], end: Option<EventsMark>) -> Self {
        let of_checkpoint = |progress: &Progress| {
            let name = format!("the checkpoint after {} rounds", progress.next_round);
            Some((progress.recorded.clone()?, name))
        };
        let end = end.map(|mark| (mark, STATUS_FILE.to_owned()));
        let mut marks: Vec<_> = checkpoints.iter().filter_map(of_checkpoint).chain(end).collect();
        // The nearest last: it is taken first.
        marks.sort_by_key(|(mark, _)| std::cmp::Reverse(mark.bytes));
        Self {
            facts: EventFacts {
                part: Part::new("events"),
                is_intact: true,
                ..EventFacts::default()
            },
            marks,
            expected: Some(0),
            file: EVENTS_FILE.into(),
            ..Self::default()
        }
    }

    fn problem(&mut self, what: String) {
        self.facts
            .part
            .add(Weight::Problem, self.file.clone(), Some(self.place), what);
    }

    fn read_all(&mut self, mut lines: EventLines, is_played: bool) {
        (self.facts.is_open, self.facts.can_be_read) = (true, true);
        loop {
            match lines.advance() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.facts.can_be_read = false;
                    return self.problem(error.source.to_string());
                }
            }
            self.place = (lines.number(), lines.start());
            if self.place.0 == 1 {
                self.file = name_of(lines.path());
            }
            if !lines.is_whole() {
                self.take_torn_line(is_played);
                break;
            }
            self.take_line(lines.line());
            self.hasher.take(lines.line());
            self.read += lines.line().len() as u64;
            self.compare_marks();
        }
        if lines.number() == 1 {
            self.problem("it is empty: a header was expected".into());
        }
        for (mark, name) in std::mem::take(&mut self.marks) {
            self.facts.is_intact = false;
            self.problem(format!("it ends too soon: {name} has seen {} bytes", mark.bytes));
        }
    }

    /// Of a run that was closed nothing was still to be written.
    fn take_torn_line(&mut self, is_played: bool) {
        if is_played {
            return;
        }
        let what = "the last line has no end: its writer was killed; a resume moves it aside";
        let weight = if self.facts.is_closed {
            Weight::Problem
        } else {
            Weight::Note
        };
        self.facts
            .part
            .add(weight, self.file.clone(), Some(self.place), what.into());
    }

    /// The hash of the lines so far against those of as many bytes.
    fn compare_marks(&mut self) {
        let read = self.read;
        while let Some((mark, name)) = self.marks.pop_if(|(mark, _)| mark.bytes <= read) {
            if mark == self.hasher.mark() {
                self.vouched = mark.bytes;
                continue;
            }
            self.facts.is_intact = false;
            let (from, to) = (self.vouched, mark.bytes);
            self.problem(format!(
                "a byte between {from} and {to} is not what it was when {name} was written"
            ));
        }
    }

    fn take_line(&mut self, line: &[u8]) {
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => return self.take_unreadable(format!("it is no JSON: {error}")),
        };
        let kind = value["type"].as_str().unwrap_or_default();
        if (self.place.0 == 1) != (kind == "header") && value["resumed"] != true {
            let expected = if self.place.0 == 1 { "a header" } else { "an event" };
            return self.take_unreadable(format!("{expected} was expected, not `{kind}`"));
        }
        if kind == "header" {
            return self.take_header(&value);
        }
        if !Payload::KINDS.contains(&kind) {
            self.unknown += 1;
            if let Some(seq) = value["seq"].as_u64() {
                self.take_number(seq);
            }
            return;
        }
        match serde_json::from_slice::<Event>(line) {
            Ok(event) => self.take_event(&event),
            Err(error) => self.take_unreadable(format!("it is no `{kind}`: {error}")),
        }
    }

    fn take_unreadable(&mut self, what: String) {
        self.problem(what);
        self.facts.can_be_read = false;
        self.expected = None;
    }

    fn take_header(&mut self, header: &Value) {
        // Of the part after a resume.
        self.facts.is_closed = false;
        let major = header["major"].as_u64();
        if major != Some(SCHEMA_MAJOR.into()) {
            let found = major.map_or("none".into(), |major| major.to_string());
            self.problem(format!(
                "telemetry schema {found}; this version reads schema {SCHEMA_MAJOR}"
            ));
            (self.facts.can_be_read, self.facts.is_open) = (false, false);
        }
    }

    fn take_event(&mut self, event: &Event) {
        self.events += 1;
        self.take_number(event.seq);
        if let Some(round) = event.round {
            if round < self.round {
                self.problem(format!("round {} again, after round {}", round + 1, self.round + 1));
            }
            self.round = self.round.max(round);
        }
        let facts = &mut self.facts;
        facts.is_closed = matches!(event.payload, Payload::RunFinished(_));
        match &event.payload {
            Payload::Decision(_) => facts.has_decisions = true,
            Payload::RunStarted(run) if !run.file_hashes.is_empty() => facts.file_hashes.clone_from(&run.file_hashes),
            // Those inside a round go as soon as there is a newer one.
            Payload::CheckpointSaved(saved) if saved.step.is_none() => facts.saved.push(saved.round),
            Payload::CheckpointLoaded(loaded) if loaded.step.is_none() => facts.saved = vec![loaded.round],
            Payload::CheckpointLoaded(loaded) => facts.saved.retain(|&round| round <= loaded.round),
            Payload::RunFinished(run) => {
                let is_as_told = run
                    .recorded
                    .as_ref()
                    .is_none_or(|recorded| *recorded == self.hasher.mark());
                if !is_as_told && self.facts.is_intact {
                    self.facts.is_intact = false;
                    let (from, to) = (self.vouched, self.read);
                    self.problem(format!(
                        "a byte between {from} and {to} is not what it was when the run ended"
                    ));
                } else {
                    self.vouched = self.read;
                }
            }
            Payload::RoundFinished(_) => {
                let (ended, expected) = (event.round.unwrap_or_default(), facts.live.rounds.len());
                if ended as usize != expected {
                    let what = format!("round {} ended where round {} was expected to", ended + 1, expected + 1);
                    self.facts.is_intact = false;
                    self.problem(what);
                }
            }
            _ => {}
        }
        self.facts.live.apply(event);
    }

    fn take_number(&mut self, seq: u64) {
        if let Some(expected) = self.expected.filter(|&expected| expected != seq) {
            self.facts.is_intact = false;
            let what = if seq > expected {
                format!(
                    "event {seq} where {expected} was expected: {} are missing",
                    seq - expected
                )
            } else {
                format!("event {seq} again, or out of order: {expected} was expected")
            };
            self.problem(what);
        }
        self.facts.next_seq = self.facts.next_seq.max(seq.saturating_add(1));
        self.expected = Some(self.facts.next_seq);
    }

    fn finish(mut self) -> EventFacts {
        let (events, rounds, vouched) = (self.events, self.facts.live.rounds.len(), self.vouched);
        self.facts.part.seen = format!("{events} events of {rounds} rounds; {vouched} bytes are vouched for");
        if self.unknown > 0 {
            let what = format!("{} events of types that this version does not know", self.unknown);
            self.facts.part.note(EVENTS_FILE, what);
        }
        self.facts
    }
}
