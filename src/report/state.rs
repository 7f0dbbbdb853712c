//! The state of every view: the events of a run, from its beginning or while they are written, folded into plain data of
//! bounded size. Reports, the terminal, `show` and the summary are drawn from it and from nothing else that happened; pages also
//! from the best network that was kept.

mod episodes;
mod choices;
mod anomalies;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::lines::event_line;
use super::thinned::Thinned;
use crate::health::FileError;
use crate::keep::NetworkShelf;
use crate::network::GrownNetwork;
use crate::record::{MANIFEST_FILE, RunEntry, SOURCE_FILE};
use crate::telemetry::{
    EVENTS_FILE, Event, EventReader, LearnerUpdate, LiveState, Payload, ReadError, Severity, Timestamp,
};

pub use anomalies::Anomalies;
pub use choices::{Choices, OpCounts};
pub use episodes::{DecisionPoint, EpisodePoint, EpisodeTrace, Episodes, Mark, ModalOrder, StepPoint};

/// Updates of the policy that are kept.
const UPDATES: usize = 400;
/// Lines of the log.
const LOG: usize = 200;

/// An event that people read.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// Time of the event.
    pub t: Timestamp,
    /// Its importance.
    pub severity: Severity,
    /// Index of the env, if it is about one.
    pub env: Option<u32>,
    /// The event, and where it happened.
    pub text: String,
}

/// Everything that a view of a run shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewState {
    /// The run so far: its rounds, its commits, the front of accuracy and size.
    pub live: LiveState,
    /// Episodes as points, and some of them whole.
    pub episodes: Episodes,
    /// Choices by place and time.
    pub choices: Choices,
    /// Updates of the policy, with their round, thinned.
    pub updates: Thinned<(u32, LearnerUpdate), UPDATES>,
    /// Findings of detectors.
    pub anomalies: Anomalies,
    /// The newest events that people read, the newest last.
    pub log: VecDeque<LogLine>,
}

impl ViewState {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        self.live.apply(event);
        self.episodes.apply(event);
        self.choices.apply(event);
        self.anomalies.apply(event);
        match (&event.payload, event.env) {
            (Payload::EpisodeFinished(_), Some(env)) => {
                if let Some(trace) = self.episodes.playing.get(&env) {
                    self.choices.take(trace);
                }
            }
            (Payload::LearnerUpdate(update), _) => {
                self.updates.push((event.round.unwrap_or_default(), update.clone()));
            }
            _ => {}
        }
        self.note(event);
    }

    fn note(&mut self, event: &Event) {
        if event.severity < Severity::Info || event.payload.is_step_row() {
            return;
        }
        let Some(text) = event_line(event) else { return };
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(LogLine {
            t: event.t,
            severity: event.severity,
            env: event.env,
            text,
        });
    }
}

/// The reason why a record can't be followed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The folder is gone.
    #[error("{0} is gone: the run's folder was moved or removed while it was watched")]
    Gone(PathBuf),
    /// A file that cannot be read, or a line that isn't an event.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Keeps a [`ViewState`] up to date with the record of a run that is played elsewhere: by another process, on another machine over
/// a common file system, or by none any more.
pub struct Feed {
    folder: PathBuf,
    events: Option<EventReader>,
    /// State after the events so far.
    pub state: ViewState,
}

impl Feed {
    /// The feed of the run in `folder`, which need not have begun. Nothing is read yet.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            events: None,
            state: ViewState::default(),
        }
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the events added since the last time; returns whether there were any.
    ///
    /// # Errors
    /// The folder is gone, a file cannot be read, a line isn't an event, or the record follows a schema that this version does
    /// not know. What was read before stays.
    pub fn poll(&mut self) -> Result<bool, FeedError> {
        self.poll_some(usize::MAX)
    }

    /// [`Self::poll`] that stops after `most` events, for a view that has to stay awake.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub fn poll_some(&mut self, most: usize) -> Result<bool, FeedError> {
        if !self.folder.is_dir() {
            return Err(FeedError::Gone(self.folder.clone()));
        }
        if self.events.as_ref().is_some_and(EventReader::is_replaced) {
            // The run was resumed from an earlier point, and its record was cut after that point.
            self.events = None;
            self.state = ViewState::default();
        }
        let events = match &mut self.events {
            Some(events) => events,
            None if self.folder.join(EVENTS_FILE).exists() => {
                let opened = EventReader::open(&self.folder).map_err(ReadError::from)?;
                self.events.insert(opened)
            }
            None => return Ok(false),
        };
        let mut read = 0;
        while read < most
            && let Some(event) = events.follow()?
        {
            self.state.apply(&event);
            read += 1;
        }
        Ok(read > 0)
    }
}

/// A run for which pages are made: its events as they come, the best network that it has kept, and how it was begun.
pub struct RunSource {
    /// Its events, as far as they were read.
    pub feed: Feed,
    /// The best network that it has kept, or why they cannot be listed.
    pub best: Result<Option<GrownNetwork>, FileError>,
    /// The command that began it, as typed; empty if that isn't known.
    pub command: String,
    /// The scenario as it was written.
    pub scenario: String,
    /// The problem that kept some of the record from being read.
    pub problem: Option<String>,
    /// Grows whenever there is more to see.
    pub version: u64,
}

impl RunSource {
    /// The source of the run in `place`; its events aren't read yet.
    pub fn new(place: &Path) -> Self {
        #[derive(Default, Deserialize)]
        struct Typed {
            command_line: Vec<String>,
        }
        // Of a run that ended before it had written them there is nothing to show.
        let text = |file: &str| crate::files::read_text(&place.join(file)).unwrap_or_default();
        let typed: Typed = serde_json::from_str(&text(MANIFEST_FILE)).unwrap_or_default();
        Self {
            feed: Feed::new(place),
            best: Ok(None),
            command: typed.command_line.join(" "),
            scenario: text(SOURCE_FILE),
            problem: None,
            version: 0,
        }
    }

    /// Reads new events.
    pub fn poll(&mut self) {
        let rounds = self.feed.state.live.rounds.len();
        let problem = self.feed.poll().map_or_else(
            |error| Some(error.to_string()),
            |is_new| {
                self.version += u64::from(is_new);
                None
            },
        );
        self.version += u64::from(problem != self.problem);
        self.problem = problem;
        if !matches!(self.best, Ok(Some(_))) || rounds != self.feed.state.live.rounds.len() {
            // None of files that cannot be read; `check` says why.
            self.best = NetworkShelf::of(self.feed.folder()).best();
        }
    }

    /// Returns whether to expect more: a process says that it plays the run.
    pub fn is_played(&self) -> bool {
        self.problem.is_none() && RunEntry::read(self.feed.folder()).state.is_played()
    }
}

#[cfg(test)]
mod feed_tests;
#[cfg(test)]
mod tests;
