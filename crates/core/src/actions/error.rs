//! What can go wrong between a measured step and a command.

use std::fmt;

use super::heads::Head;
use crate::growth::LifecycleOp;
use crate::schema::NameError;
use crate::torch::TorchError;

/// Where in the run an error arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionPoint {
    /// Index in the run.
    pub env: usize,
    /// Number in the run: `round · E + env` with E envs.
    pub episode: u64,
    /// 1-based.
    pub step: u32,
}

impl fmt::Display for DecisionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "env {}, episode {}, step {}", self.env, self.episode, self.step)
    }
}

/// What keeps a controller from being built, deciding, evaluating, saving or loading.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
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
    /// `list`: where the command was written down before the run.
    #[error("{at}: the {list} orders {op}, which is not legal: {why}")]
    ScheduleIllegal {
        at: DecisionPoint,
        list: &'static str,
        op: LifecycleOp,
        why: String,
    },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("{at}: the observation's feature {index}, {feature}, is not finite")]
    NonFiniteFeature {
        at: DecisionPoint,
        index: usize,
        feature: String,
    },
    #[error("the rollout's observations have no finite mean or variance; their statistics stay as they were")]
    NonFiniteStatistics,
    #[error("{at}: the controller needs an observation, and none was made")]
    NoObservation { at: DecisionPoint },
    /// The weights have diverged; `None` is the value head.
    #[error("{at}: the policy's {} is not finite", .head.map_or("value".to_string(), |head| format!("logit of {head}")))]
    PolicyNonFinite { at: DecisionPoint, head: Option<Head> },
    #[error("{count} stored steps hold an action that their masks forbid")]
    MaskedActionEvaluated { count: u64 },
    #[error("{what}: expected {expected:?}, found {found:?}")]
    ShapeMismatch {
        what: &'static str,
        expected: Vec<i64>,
        found: Vec<i64>,
    },
    #[error("the policy in {folder} does not fit this run:{}", .diffs.iter().map(|diff| format!("\n  {diff}")).collect::<String>())]
    IncompatiblePolicy { folder: String, diffs: Vec<String> },
    #[error("{path}: {why}")]
    Storage { path: String, why: String },
    #[error(transparent)]
    Torch(#[from] TorchError),
    #[error("`{path}`: {why}")]
    InvalidConfig { path: String, why: String },
}

impl PolicyError {
    pub(crate) fn config(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self::InvalidConfig {
            path: path.into(),
            why: why.into(),
        }
    }
}
