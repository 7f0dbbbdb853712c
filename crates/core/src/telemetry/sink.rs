//! The trait of consumers of events, and the list in which plugins register theirs.

use std::path::PathBuf;
use std::sync::Arc;

use bevy_ecs::prelude::Resource;
use bevy_platform::cell::SyncCell;

use super::event::Event;
use super::live::LiveState;
use super::mark::WrittenRecord;
use super::payload::RunFinished;
use crate::health::FileError;

/// The run as a sink knows it before the first event.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// Name of the run directory.
    pub run_id: String,
    /// The folder in which the run is recorded.
    pub directory: PathBuf,
    /// `None` for a run that begins.
    pub earlier: Option<Earlier>,
}

/// The earlier part of a resumed run's record.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The state that all of it folds to.
    pub live: LiveState,
    /// Number of the next event.
    pub next_seq: u64,
    /// The place where the record continues.
    pub written: WrittenRecord,
}

/// The reason why a sink could not do its work. An error of [`Sink::start`] aborts the run before it trains. Later ones are
/// warned of and reported at the end, and never stop it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SinkError {
    /// A file could not be written: its folder must exist, be writable and have room.
    #[error(transparent)]
    File(#[from] FileError),
    /// A stream could not be written, as a pipe whose reader has ended.
    #[error("output stream: {0}")]
    Stream(#[from] std::io::Error),
    /// An event could not be encoded: an application's event holds what JSON cannot say.
    #[error("an event could not be encoded: {0}")]
    Encoding(#[from] serde_json::Error),
    /// An error of a plugin's sink, in its words.
    #[error("{0}")]
    Other(String),
}

/// The reason why telemetry could not start; nothing was trained.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TelemetryError {
    /// A sink refused to start.
    #[error("telemetry sink `{name}` could not start: {source}")]
    Start { name: String, source: SinkError },
    /// The system gave no thread.
    #[error("no thread for telemetry sink `{name}`: {source}")]
    Thread { name: String, source: std::io::Error },
}

/// A consumer of events. It runs on its own thread; nothing it does can disturb the training.
///
/// A call that fails is not repeated, and later calls are made as if it had not failed: a sink that must have everything keeps
/// what it could not write. One that is slow misses step rows, and nothing else.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use std::sync::Arc;
/// use simic_engine::extend::{Event, Payload, Sink, SinkError, Sinks};
///
/// struct CountsSeeds(u32);
///
/// impl Sink for CountsSeeds {
///     fn name(&self) -> &str {
///         "counts_seeds"
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
    /// The name in messages and in the shutdown report.
    fn name(&self) -> &str;

    /// Called before the training; an error aborts the run.
    fn start(&mut self, _run: &RunInfo) -> Result<(), SinkError> {
        Ok(())
    }

    /// Takes the events of one flush, in order.
    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError>;

    /// Called when no event has come for a while.
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Called after the last event. `recorded` describes the record with that event, if all of it is on disk.
    fn finish(&mut self, _run: &RunFinished) -> Result<(), SinkError> {
        Ok(())
    }
}

/// The sinks that plugins want the run to have.
#[derive(Resource)]
pub struct Sinks(SyncCell<Vec<Box<dyn Sink>>>);

impl Default for Sinks {
    fn default() -> Self {
        Self(SyncCell::new(Vec::new()))
    }
}

impl Sinks {
    /// Registers a sink.
    pub fn add(&mut self, sink: impl Sink + 'static) {
        self.0.get().push(Box::new(sink));
    }

    /// Hands the registered sinks to the hub.
    pub fn take(&mut self) -> Vec<Box<dyn Sink>> {
        std::mem::take(self.0.get())
    }
}
