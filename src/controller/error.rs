//! What can go wrong between a measured step and a command (spec 03 §16).

use std::fmt;

use super::action::Head;
use crate::seed::LifecycleOp;

/// Where in the run an error arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionPoint {
    pub env: usize,
    pub episode: u64,
    pub step: u32,
}

impl fmt::Display for DecisionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "env {}, episode {}, step {}", self.env, self.episode, self.step)
    }
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// A head that the chosen op needs offers nothing: a bug in a mask or in one of its modifiers. Slots: `dump`.
    #[error("{at}: no valid {head}{} is left; slots: {dump}", .op.map(|op| format!(" for {op}")).unwrap_or_default())]
    EmptyMask {
        at: DecisionPoint,
        head: Head,
        op: Option<LifecycleOp>,
        dump: String,
    },
    #[error("{at}: {reports} slots are reported, the host has {slots}")]
    WrongSlotCount {
        at: DecisionPoint,
        reports: usize,
        slots: usize,
    },
    #[error("a mask modifier asks to keep only choices of {head} that are not valid")]
    NothingLeft { head: Head },
    #[error("index {index} is no member of the action head {head}")]
    NoSuchMember { head: Head, index: usize },
    #[error("{at}: the schedule orders {op}, which is not legal: {why}")]
    ScheduleIllegal {
        at: DecisionPoint,
        op: LifecycleOp,
        why: String,
    },
    #[error("no controller is called `{name}`; there are: {}", .available.join(", "))]
    UnknownController { name: String, available: Vec<String> },
    #[error("a controller called `{name}` is already registered")]
    DuplicateRegistration { name: String },
    #[error("`{path}`: {why}")]
    InvalidConfig { path: String, why: String },
}

impl PolicyError {
    pub(super) fn config(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self::InvalidConfig {
            path: path.into(),
            why: why.into(),
        }
    }
}
