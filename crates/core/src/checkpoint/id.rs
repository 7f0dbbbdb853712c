//! Position of a checkpoint in a run, which names its folder.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::files::counted;

/// The beginning of every checkpoint's name.
pub(super) const PREFIX: &str = "round-";
/// The separator of round and step in the name of a checkpoint inside a round.
const INSIDE: &str = "-step-";

/// Position of a checkpoint in a run. The order is that of play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CheckpointId {
    /// The round that is played next, or is being played. The same number of rounds is finished.
    pub round: u32,
    /// Steps of this round that have been played. 0 if it hasn't begun.
    pub step: u32,
}

impl CheckpointId {
    /// Creates the position before a round.
    pub const fn before(round: u32) -> Self {
        Self { round, step: 0 }
    }

    /// Returns whether a round has begun and isn't over.
    pub const fn is_inside_round(self) -> bool {
        self.step > 0
    }

    /// Name of the checkpoint's folder.
    pub(super) fn name(self) -> String {
        let Self { round, step } = self;
        if self.is_inside_round() {
            format!("{PREFIX}{round:06}{INSIDE}{step:04}")
        } else {
            format!("{PREFIX}{round:06}")
        }
    }

    /// Parses the name of a checkpoint's folder. `None` if no checkpoint can have that name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let place = name.strip_prefix(PREFIX)?;
        let Some((round, step)) = place.split_once(INSIDE) else {
            return place.parse().map(Self::before).ok();
        };
        let (round, step) = (round.parse().ok()?, step.parse().ok()?);
        Some(Self { round, step }).filter(|id| id.is_inside_round())
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { round, step } = *self;
        if self.is_inside_round() {
            write!(f, "after {} of round {}", counted(step, "step"), round + 1)
        } else {
            write!(f, "after {}", counted(round, "round"))
        }
    }
}

#[cfg(test)]
mod tests;
