//! Position of a checkpoint in a run, which names its folder.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::files::counted;

/// Every checkpoint's name begins with it.
pub(super) const PREFIX: &str = "round-";
/// Between round and step in the name of one inside a round.
const INSIDE: &str = "-step-";

/// Position of a checkpoint in a run; ordered as runs are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CheckpointId {
    /// Played next, or being played: as many rounds have been played to their end.
    pub round: u32,
    /// Steps of this round that have been played; 0: it has not begun.
    pub step: u32,
}

impl CheckpointId {
    /// Before a round.
    pub const fn before(round: u32) -> Self {
        Self { round, step: 0 }
    }

    /// Whether a round has begun and is not over.
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

    /// `None`: no checkpoint is called that.
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
