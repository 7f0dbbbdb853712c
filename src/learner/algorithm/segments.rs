//! Segments: unbroken stretches of one env's row inside one episode.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What follows the last step of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum SegmentEnd {
    /// Nothing: the env was rolled back, or the episode is over for good.
    Terminal,
    /// The episode was stopped.
    Truncated {
        /// Raw value of the state after the last step.
        bootstrap: f32,
    },
}

impl SegmentEnd {
    /// Raw value of what follows.
    pub const fn bootstrap(self) -> f32 {
        match self {
            Self::Terminal => 0.0,
            Self::Truncated { bootstrap } => bootstrap,
        }
    }

    /// The same end with values in units that are `factor` times as many.
    pub(super) fn rescale(&mut self, factor: f64) {
        if let Self::Truncated { bootstrap } = self {
            *bootstrap = (f64::from(*bootstrap) * factor) as f32;
        }
    }
}

/// Steps `start..end` of one env's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Segment {
    pub env: usize,
    pub start: usize,
    pub end: usize,
    /// `None` while it is being filled.
    pub closed: Option<SegmentEnd>,
    /// False: it contributes to nothing.
    pub valid: bool,
    /// Stored recurrent states that enter its chunks from the second on; zeros enter the first.
    pub chunk_states: Vec<usize>,
}

impl Segment {
    pub fn steps(&self) -> Range<usize> {
        self.start..self.end
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// It has steps, and its end is not known yet.
    pub fn is_open(&self) -> bool {
        self.closed.is_none() && !self.is_empty()
    }
}
