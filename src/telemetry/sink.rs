//! What a consumer of events implements, and the list in which plugins register theirs (spec 07 §10).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::prelude::Resource;
use serde::{Deserialize, Serialize};

use super::event::Event;
use super::live::LiveState;
use super::payload::RunFinished;

/// What a sink may do when it cannot keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkClass {
    /// Loses nothing: the run waits for it.
    Durable,
    /// Never delays the run: step rows are dropped and counted.
    Live,
}

/// What a sink knows before the first event.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    pub run_id: String,
    pub directory: PathBuf,
    /// `None` for a run that begins.
    pub earlier: Option<Earlier>,
}

/// What a resumed run has told already.
#[derive(Clone, Debug, PartialEq)]
pub struct Earlier {
    /// All of it, folded.
    pub live: LiveState,
    /// Number of the next event.
    pub next_seq: u64,
}

/// Why a sink could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("output stream: {0}")]
    Stream(#[from] std::io::Error),
    #[error("an event could not be encoded: {0}")]
    Encoding(#[from] serde_json::Error),
    /// Anything a plugin's sink has to say.
    #[error("{0}")]
    Other(String),
}

/// Why telemetry could not start; nothing was trained (exit code 2).
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("telemetry sink `{name}` could not start: {source}")]
    Start { name: String, source: SinkError },
    #[error("no thread for telemetry sink `{name}`: {source}")]
    Thread { name: String, source: std::io::Error },
}

/// A consumer of events. It runs on a thread of its own; nothing it does can disturb the training.
///
/// ```
/// use std::sync::Arc;
/// use simic_engine::telemetry::{Event, Payload, Sink, SinkClass, SinkError, Sinks};
///
/// struct CountsSeeds(u32);
///
/// impl Sink for CountsSeeds {
///     fn name(&self) -> &str {
///         "counts_seeds"
///     }
///     fn class(&self) -> SinkClass {
///         SinkClass::Live
///     }
///     fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
///         let germinated = |event: &&Arc<Event>| matches!(event.payload, Payload::SeedGerminated(_));
///         self.0 += events.iter().filter(germinated).count() as u32;
///         Ok(())
///     }
/// }
///
/// let mut sinks = Sinks::default();
/// sinks.add(CountsSeeds(0));
/// ```
pub trait Sink: Send {
    fn name(&self) -> &str;

    fn class(&self) -> SinkClass;

    /// Called before the training; an error aborts the run.
    fn start(&mut self, _run: &RunInfo) -> Result<(), SinkError> {
        Ok(())
    }

    /// Takes the events of one flush, in order. After an error it is called once more with the same events.
    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError>;

    /// Called when no event has come for a while.
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Called once after the last event.
    fn finish(&mut self, _run: &RunFinished) -> Result<(), SinkError> {
        Ok(())
    }
}

/// The sinks that plugins want the run to have.
#[derive(Default, Resource)]
pub struct Sinks(Mutex<Vec<Box<dyn Sink>>>);

impl Sinks {
    pub fn add(&mut self, sink: impl Sink + 'static) {
        self.list().push(Box::new(sink));
    }

    /// Hands the registered sinks to the hub.
    pub fn take(&mut self) -> Vec<Box<dyn Sink>> {
        std::mem::take(self.list())
    }

    fn list(&mut self) -> &mut Vec<Box<dyn Sink>> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
