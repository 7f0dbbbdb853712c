//! Gaps in a record: their part, their beginning and their cause.

use std::fmt;

use serde::Serialize;

/// A part of a run's record that is not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordGap {
    /// `events.jsonl` or `checkpoint`.
    pub part: String,
    /// Events that are missing, as far as they can be counted.
    pub lost_events: u64,
    /// The round of the first one, from 0; absent where none was lost or none belongs to a round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The message of the operating system or of the sink.
    pub why: String,
}

impl fmt::Display for RecordGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            part,
            lost_events,
            round,
            why,
        } = self;
        match lost_events {
            0 => write!(f, "`{part}` is incomplete")?,
            1 => write!(f, "`{part}` is missing an event")?,
            _ => write!(f, "`{part}` is missing {lost_events} events")?,
        }
        if let Some(round) = round {
            write!(f, ", from round {} on", round + 1)?;
        }
        write!(f, ": {why}")
    }
}

/// The record cannot be written, and a run without one is not worth its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the record cannot be written, so the run was stopped: `{}`: {}",
    .0.part,
    .0.why
)]
pub struct RecordFails(pub RecordGap);

#[cfg(test)]
mod tests;
