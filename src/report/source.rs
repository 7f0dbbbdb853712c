//! Sources of a run's pages: its events as they come, the best network that it has kept, and how it was begun.

use std::path::Path;

use serde::Deserialize;

use super::state::Feed;
use crate::health::FileError;
use crate::keep::NetworkShelf;
use crate::network::GrownNetwork;
use crate::record::{MANIFEST_FILE, RunEntry, SOURCE_FILE};

/// A run of which pages are made.
pub struct RunSource {
    /// Its events, as far as they were read.
    pub feed: Feed,
    /// The best network that it has kept, or why they cannot be listed.
    pub best: Result<Option<GrownNetwork>, FileError>,
    /// How it was begun, as typed; empty where that is not known.
    pub command: String,
    /// The scenario as it was written.
    pub scenario: String,
    /// The problem that kept some of the record from being read.
    pub problem: Option<String>,
    /// Grows whenever there is more to see.
    pub version: u64,
}

impl RunSource {
    /// Of the run in `place`; its events are not read yet.
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

    /// Whether more is to be expected: a process says that it plays the run.
    pub fn is_played(&self) -> bool {
        self.problem.is_none() && RunEntry::read(self.feed.folder()).state.is_played()
    }
}
