//! Segments: unbroken stretches of one env's row inside one episode (spec 04 §3.2).

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What follows the last step of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentEnd {
    /// Nothing: the env was rolled back, or the episode is over for good.
    Terminal,
    /// The episode was stopped; `bootstrap` is the raw value of the state after the last step.
    Truncated { bootstrap: f32 },
    /// The row is full or the rollout over while the episode goes on in the next rollout; `bootstrap` as above.
    Cut { bootstrap: f32 },
}

impl SegmentEnd {
    /// Raw value of what follows.
    pub const fn bootstrap(self) -> f32 {
        match self {
            Self::Terminal => 0.0,
            Self::Truncated { bootstrap } | Self::Cut { bootstrap } => bootstrap,
        }
    }

    /// The same end with values in units that are `factor` times as many.
    pub(super) fn rescaled(self, factor: f64) -> Self {
        let rescale = |bootstrap: f32| (f64::from(bootstrap) * factor) as f32;
        match self {
            Self::Terminal => Self::Terminal,
            Self::Truncated { bootstrap } => Self::Truncated {
                bootstrap: rescale(bootstrap),
            },
            Self::Cut { bootstrap } => Self::Cut {
                bootstrap: rescale(bootstrap),
            },
        }
    }
}

/// Steps `start..end` of one env's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub env: usize,
    pub start: usize,
    pub end: usize,
    /// `None` while it is being filled.
    pub closed: Option<SegmentEnd>,
    /// False: it contributes to nothing.
    pub valid: bool,
    pub episode: u64,
    /// Stored recurrent state that enters step `start`; `None`: zeros.
    pub initial_state: Option<usize>,
    /// Stored recurrent states that enter its chunks from the second on.
    pub chunk_states: Vec<usize>,
}

impl Segment {
    pub fn steps(&self) -> Range<usize> {
        self.start..self.end
    }

    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// The episode does not go on in the next rollout.
    pub fn ends_episode(&self) -> bool {
        !matches!(self.closed, None | Some(SegmentEnd::Cut { .. }))
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// What came of charging a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribution {
    /// To the step whose decision had this id; this many steps lost their own rewards before it.
    Attributed { steps_forfeited: usize, action_id: u64 },
    /// The env had no finished step since its segment began.
    Unattributed,
}

/// Rollbacks of a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackCounters {
    pub attempts: u64,
    pub attributed: u64,
    pub unattributed: u64,
    pub steps_forfeited: u64,
    pub steps_invalidated: u64,
}
