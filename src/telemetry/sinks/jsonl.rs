//! `events.jsonl`: one event a line behind a header line (spec 07 §4.3, §11.1).

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::append::AppendFile;
use crate::telemetry::event::{Event, Payload, Severity};
use crate::telemetry::payload::RunFinished;
use crate::telemetry::sink::{RunInfo, Sink, SinkClass, SinkError};
use crate::telemetry::{SCHEMA_MAJOR, SCHEMA_MINOR};

/// Bytes held back at most.
const BUFFER_BYTES: usize = 64 * 1024;
/// Time a line is held back at most while events come.
const FLUSH_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: &'static str,
    major: u32,
    minor: u32,
    run_id: &'a str,
    engine: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resumed: bool,
}

/// Writes every event to `events.jsonl` in the run directory. Durable: the run waits rather than lose a line.
#[derive(Default)]
pub struct JsonLinesSink {
    file: Option<AppendFile>,
    /// Events below are encoded already: a write that is tried again does not repeat them.
    next_seq: u64,
    written_at: Option<Instant>,
}

impl JsonLinesSink {
    /// Name of the file inside the run directory.
    pub const FILE_NAME: &'static str = "events.jsonl";

    fn encode(&mut self, line: &impl Serialize) -> Result<(), SinkError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let before = file.pending.len();
        if let Err(error) = serde_json::to_writer(&mut file.pending, line) {
            file.pending.truncate(before);
            return Err(error.into());
        }
        file.pending.push(b'\n');
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), SinkError> {
        self.written_at = Some(Instant::now());
        self.file.as_mut().map_or(Ok(()), AppendFile::write_out)
    }

    fn is_due(&self, events: &[Arc<Event>]) -> bool {
        let pending = self.file.as_ref().map_or(0, |file| file.pending.len());
        pending >= BUFFER_BYTES
            || self.written_at.is_none_or(|at| at.elapsed() >= FLUSH_INTERVAL)
            || events
                .iter()
                .any(|event| event.severity >= Severity::Error || matches!(event.payload, Payload::RoundFinished(_)))
    }
}

impl Sink for JsonLinesSink {
    fn name(&self) -> &str {
        "jsonl"
    }

    fn class(&self) -> SinkClass {
        SinkClass::Durable
    }

    fn start(&mut self, run: &RunInfo) -> Result<(), SinkError> {
        let path = run.directory.join(Self::FILE_NAME);
        let is_resumed = run.earlier.is_some();
        let open = if is_resumed {
            AppendFile::go_on
        } else {
            AppendFile::create
        };
        self.file = Some(open(&path).map_err(|source| SinkError::File {
            path: path.clone(),
            source,
        })?);
        self.encode(&Header {
            kind: "header",
            schema: "simic.telemetry",
            major: SCHEMA_MAJOR,
            minor: SCHEMA_MINOR,
            run_id: &run.run_id,
            engine: env!("CARGO_PKG_VERSION"),
            resumed: is_resumed,
        })?;
        self.write_out()
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        for event in events {
            if event.seq >= self.next_seq {
                self.encode(event.as_ref())?;
                self.next_seq = event.seq + 1;
            }
        }
        if self.is_due(events) {
            self.write_out()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.write_out()
    }

    fn finish(&mut self, _run: &RunFinished) -> Result<(), SinkError> {
        self.file.as_mut().map_or(Ok(()), AppendFile::settle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{Earlier, LiveState, examples, read_events};

    fn run_info(directory: &std::path::Path) -> RunInfo {
        RunInfo {
            run_id: "20260101-000000-test-abcd".into(),
            directory: directory.into(),
            earlier: None,
        }
    }

    fn numbered(events: Vec<Event>) -> Vec<Arc<Event>> {
        events
            .into_iter()
            .enumerate()
            .map(|(seq, mut event)| {
                event.seq = seq as u64;
                Arc::new(event)
            })
            .collect()
    }

    /// Check C15, first half.
    #[test]
    fn folding_the_file_gives_the_state_of_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let events = numbered(examples::events());
        let mut watched = LiveState::default();
        events.iter().for_each(|event| watched.apply(event));

        let mut sink = JsonLinesSink::default();
        sink.start(&run_info(folder.path())).unwrap();
        sink.write(&events).unwrap();
        sink.finish(&examples::run_finished()).unwrap();

        let file = read_events(&folder.path().join("events.jsonl")).unwrap();
        let mut replayed = LiveState::default();
        file.events.iter().for_each(|event| replayed.apply(event));
        assert_eq!(replayed, watched);
        assert_eq!(file.events.len(), events.len());
    }

    #[test]
    fn the_header_comes_first_and_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = JsonLinesSink::default();

        sink.start(&run_info(folder.path())).unwrap();

        let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
        assert_eq!(
            text,
            "{\"type\":\"header\",\"schema\":\"simic.telemetry\",\"major\":1,\"minor\":0,\
             \"run_id\":\"20260101-000000-test-abcd\",\"engine\":\"0.1.0\"}\n"
        );
    }

    #[test]
    fn a_round_is_on_disk_when_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
        let mut sink = JsonLinesSink::default();
        sink.start(&run_info(folder.path())).unwrap();
        let events = numbered(vec![
            Event::run(examples::note()),
            Event::round(0, examples::round_finished()),
        ]);

        sink.write(&events[..1]).unwrap();
        assert_eq!(lines(), 1);
        sink.write(&events[1..]).unwrap();
        assert_eq!(lines(), 3);
    }

    #[test]
    fn a_write_that_is_tried_again_repeats_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = JsonLinesSink::default();
        sink.start(&run_info(folder.path())).unwrap();
        let events = numbered(vec![Event::run(examples::note())]);

        sink.write(&events).unwrap();
        sink.write(&events).unwrap();
        sink.flush().unwrap();

        let file = read_events(&folder.path().join("events.jsonl")).unwrap();
        assert_eq!(file.events.len(), 1);
    }

    #[test]
    fn a_resumed_run_goes_on_behind_a_header_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let info = run_info(folder.path());
        let mut sink = JsonLinesSink::default();
        sink.start(&info).unwrap();
        sink.finish(&examples::run_finished()).unwrap();

        let earlier = Some(Earlier {
            live: LiveState::default(),
            next_seq: 0,
        });
        JsonLinesSink::default().start(&RunInfo { earlier, ..info }).unwrap();

        let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
        let resumed: Vec<bool> = text.lines().map(|line| line.contains("\"resumed\":true")).collect();
        assert_eq!(resumed, [false, true]);
    }

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("events.jsonl"), "precious").unwrap();

        let error = JsonLinesSink::default().start(&run_info(folder.path())).unwrap_err();

        assert!(error.to_string().contains("events.jsonl"), "{error}");
    }
}
