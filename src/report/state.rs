//! The state behind every view: the events of a run, from its beginning or while they are written, folded into plain data of
//! bounded size. Reports, the terminal, `show` and the summary are drawn from it and from nothing else that happened.

mod episodes;
mod choices;
mod anomalies;
mod feed;

use std::collections::VecDeque;

use super::lines::event_line;
use super::thinned::Thinned;
use crate::telemetry::{Event, LearnerUpdate, LiveState, Payload, Severity, Timestamp};

pub use anomalies::Anomalies;
pub use choices::{Choices, OpCounts};
pub use episodes::{DecisionPoint, EpisodePoint, EpisodeTrace, Episodes, Mark, ModalOrder, StepPoint};
pub use feed::{Feed, FeedError};

/// Updates of the policy that are kept.
const UPDATES: usize = 400;
/// Lines of the log.
const LOG: usize = 200;

/// An event that people read.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// When.
    pub t: Timestamp,
    /// How much it matters.
    pub severity: Severity,
    /// Index of the env, if it is about one.
    pub env: Option<u32>,
    /// The event, and where it happened.
    pub text: String,
}

/// Everything that a view of a run shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewState {
    /// How the run stands: its rounds, its commits, the front of accuracy and size.
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

#[cfg(test)]
mod tests;
