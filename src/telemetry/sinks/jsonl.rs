//! `events.jsonl`: one event a line behind a header line.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::append::AppendFile;
use crate::telemetry::event::{Event, Payload, SCHEMA_MAJOR, SCHEMA_MINOR, Severity};
use crate::telemetry::payload::{RunFinished, SinkClass};
use crate::telemetry::sink::{HeldBack, RunInfo, Sink, SinkError};

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
    file: AppendFile,
    written_at: Option<Instant>,
    /// Of the first line that is held back.
    held_since: Option<u32>,
}

impl JsonLinesSink {
    /// Name of the file inside the run directory.
    pub const FILE_NAME: &'static str = "events.jsonl";

    fn encode(&mut self, line: &impl Serialize) -> Result<(), SinkError> {
        let pending = &mut self.file.pending;
        let before = pending.len();
        serde_json::to_writer(&mut *pending, line).inspect_err(|_| pending.truncate(before))?;
        pending.push(b'\n');
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), SinkError> {
        self.written_at = Some(Instant::now());
        self.file.write_out()
    }

    fn is_due(&self, events: &[Arc<Event>]) -> bool {
        self.file.pending.len() >= BUFFER_BYTES
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
        self.file = open(&path)?;
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
            if self.file.lacks(event) {
                if self.file.pending.is_empty() {
                    self.held_since = event.round;
                }
                self.encode(event.as_ref())?;
                self.file.has(event);
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

    fn sync(&mut self) -> Result<(), SinkError> {
        self.file.sync()
    }

    fn held_back(&self) -> HeldBack {
        let lines = self.file.pending.iter().filter(|&&byte| byte == b'\n').count();
        HeldBack {
            events: lines as u64,
            round: self.held_since,
        }
    }

    fn finish(&mut self, _run: &RunFinished) -> Result<(), SinkError> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests;
