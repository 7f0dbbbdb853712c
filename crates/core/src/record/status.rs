//! `status.json`: a heartbeat with the progress of a run, for people and scripts that look at it from outside.
//!
//! A sink keeps it: its thread writes it even during a long step. The events say how a run ended, and the status vouches
//! for them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::files::write_json;
use crate::health::{AtPath, FileError};
use crate::run::Command;
use crate::telemetry::{
    Event, EventsMark, LiveState, Note, Num, Payload, RunFinished, RunInfo, RunState, Sink, SinkError, Timestamp,
    round_if_any,
};

/// The file in which a run reports its progress.
pub const STATUS_FILE: &str = "status.json";
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// The content of `status.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStatus {
    /// The run's state.
    pub state: RunState,
    /// The id of the process that plays it.
    pub pid: u32,
    /// The time at which this was written.
    pub heartbeat: Timestamp,
    /// The round, from 0; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "round_if_any")]
    pub round: Option<u32>,
    /// The step, from 1; `None` before the first of a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Name of the scenario. It and the following fields are absent where they were not written yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Played to their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Rounds of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_rounds: Option<u32>,
    /// Episodes that have ended.
    pub episodes: u64,
    /// The best validation accuracy that any env has reached, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_accuracy: Option<Num>,
    /// Steps of all envs per second, over all finished rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_steps_per_s: Option<Num>,
    /// Mean final accuracy of the last rounds, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_accuracy: Option<Num>,
    /// Seconds left, estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<Num>,
    /// The record of a run that has ended, its last event among it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<EventsMark>,
    /// The reason why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl RunStatus {
    /// The status of a run with only its state known.
    pub fn new(state: RunState) -> Self {
        Self {
            state,
            pid: std::process::id(),
            heartbeat: Timestamp::now(),
            ..Self::default()
        }
    }

    /// Counts the progress of the run, by its events.
    fn count(&mut self, live: &LiveState) {
        self.heartbeat = Timestamp::now();
        if let Some(run) = &live.started {
            let progress = live.progress();
            self.round = Some(progress.round);
            self.step = Some(progress.step);
            self.scenario = Some(run.scenario.clone());
            self.n_rounds = Some(run.n_rounds);
            self.rounds = u32::try_from(live.rounds.len()).ok();
        }
        self.best_accuracy = live.best_accuracy();
        self.env_steps_per_s = live.env_steps_per_s().map(Num);
        self.episodes = live.episodes_done;
        self.rolling_accuracy = live.rolling_accuracy();
        self.eta_s = live.eta_s().map(Num);
    }

    /// Writes it into a run directory, in one step.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, directory: &Path) -> std::io::Result<()> {
        write_json(&directory.join(STATUS_FILE), self)
    }

    /// Reads the one in a run directory.
    ///
    /// # Errors
    /// If there is none, or none that can be read.
    pub fn read(directory: &Path) -> Result<Self, FileError> {
        let path = directory.join(STATUS_FILE);
        let text = crate::files::read(&path).at(&path)?;
        serde_json::from_slice(&text).at(&path)
    }
}

/// Returns whether a run may go from one state to another.
pub const fn is_legal_transition(from: RunState, to: RunState) -> bool {
    use RunState::*;
    match to {
        Starting => false,
        Running => matches!(from, Starting | Paused),
        Paused => matches!(from, Running),
        Stopping => matches!(from, Running | Paused),
        Completed => matches!(from, Running),
        Interrupted => matches!(from, Stopping),
        Failed => !matches!(from, Completed | Interrupted | Failed),
    }
}

/// Keeps `status.json` up to date: at every round, at the end, and every ten seconds in between.
pub struct StatusSink {
    directory: PathBuf,
    live: LiveState,
    status: RunStatus,
    written_at: Option<Instant>,
}

impl Default for StatusSink {
    fn default() -> Self {
        Self {
            directory: PathBuf::new(),
            live: LiveState::default(),
            status: RunStatus::new(RunState::Starting),
            written_at: None,
        }
    }
}

impl StatusSink {
    fn enter(&mut self, state: RunState) {
        if is_legal_transition(self.status.state, state) {
            self.status.state = state;
        }
    }

    fn write_now(&mut self) -> Result<(), SinkError> {
        self.status.count(&self.live);
        self.written_at = Some(Instant::now());
        Ok(self
            .status
            .write(&self.directory)
            .at(&self.directory.join(STATUS_FILE))?)
    }

    fn write_if_due(&mut self) -> Result<(), SinkError> {
        let is_due = self.written_at.is_none_or(|at| at.elapsed() >= HEARTBEAT_INTERVAL);
        if is_due { self.write_now() } else { Ok(()) }
    }
}

impl Sink for StatusSink {
    fn name(&self) -> &str {
        "status"
    }

    fn start(&mut self, run: &RunInfo) -> Result<(), SinkError> {
        self.directory = run.directory.clone();
        if let Some(earlier) = &run.earlier {
            self.live = earlier.live.clone();
        }
        self.write_now()
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        let mut is_milestone = false;
        for event in events {
            self.live.apply(event);
            match &event.payload {
                Payload::RunStarted(_) => {
                    self.enter(RunState::Running);
                    is_milestone = true;
                }
                Payload::Note(Note {
                    command: Some(word), ..
                }) => {
                    match Command::of_word(word) {
                        Some(Command::Pause) => self.enter(RunState::Paused),
                        Some(Command::Continue) => self.enter(RunState::Running),
                        _ => {}
                    }
                    is_milestone = true;
                }
                Payload::RoundFinished(_) => is_milestone = true,
                _ => {}
            }
        }
        if is_milestone {
            self.write_now()
        } else {
            self.write_if_due()
        }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.write_if_due()
    }

    fn finish(&mut self, run: &RunFinished) -> Result<(), SinkError> {
        if run.status == RunState::Interrupted {
            self.enter(RunState::Stopping);
        }
        self.enter(run.status);
        self.status.recorded.clone_from(&run.recorded);
        self.status.error.clone_from(&run.error);
        self.write_now()
    }
}

#[cfg(test)]
mod tests;
