//! Errors that arise between a measured step and a command.

use std::fmt;

use super::heads::Head;
use crate::growth::LifecycleOp;
use crate::schema::NameError;
use crate::torch::TorchError;

/// The place in the run at which an error arose.
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

/// Error of a controller when it is built, decides, evaluates, saves or loads. The run stops with it. The message names the
/// env and the step, or the field or file that has to change.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum PolicyError {
    /// A head that the chosen op needs offers nothing: a bug in a mask or in a controller's
    /// [`restrict`](crate::controller::Controller::restrict). `dump` shows the slots.
    #[error("{at}: no valid {head}{} is left; slots: {dump}", .op.map(|op| format!(" for {op}")).unwrap_or_default())]
    EmptyMask {
        at: DecisionPoint,
        head: Head,
        op: Option<LifecycleOp>,
        dump: String,
    },
    /// Masks or an observation were requested with the reports of another host. Pass one report for each slot of the env.
    #[error("{at}: {reports} slots are reported, but the host has {slots}")]
    WrongSlotCount {
        at: DecisionPoint,
        reports: usize,
        slots: usize,
    },
    /// A controller's [`restrict`](crate::controller::Controller::restrict) keeps no legal member. Keep at least one
    /// valid member.
    #[error("a mask modifier asks to keep only choices of {head} that are not valid")]
    NothingLeft { head: Head },
    /// Indices of an action were made by hand, or by a policy for more members than there are.
    #[error("index {index} isn't a member of the action head {head}")]
    NoSuchMember { head: Head, index: usize },
    /// A schedule or a replayed run orders a command that the state of its env doesn't allow. Order it at another step.
    /// `list` names the place in which the command was written down before the run.
    #[error("{at}: the {list} orders {op}, which is not legal: {why}")]
    ScheduleIllegal {
        at: DecisionPoint,
        list: &'static str,
        op: LifecycleOp,
        why: String,
    },
    /// `policy.controller` or `policy.net` has a name that isn't registered.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A measurement, or the feature of a plugin, is NaN or infinite.
    #[error("{at}: the observation's feature {index}, {feature}, is not finite")]
    NonFiniteFeature {
        at: DecisionPoint,
        index: usize,
        feature: String,
    },
    /// Raw observations of a rollout are NaN or infinite. Bound the feature that causes it.
    #[error("the rollout's observations have no finite mean or variance; their statistics stay as they were")]
    NonFiniteStatistics,
    /// A plugin has left out or moved the work that makes observations, or the controller doesn't declare that it
    /// [needs one](crate::controller::Controller::needs_observation).
    #[error("{at}: the controller needs an observation, but none was made")]
    NoObservation { at: DecisionPoint },
    /// The weights have diverged. `None` is the value head. Resume from an earlier checkpoint with a smaller `learner.lr`.
    #[error("{at}: the policy's {} is not finite", .head.map_or("value".to_string(), |head| format!("logit of {head}")))]
    PolicyNonFinite { at: DecisionPoint, head: Option<Head> },
    /// A rollout holds masks that aren't those of its decisions. Resume from an earlier checkpoint.
    #[error("{count} stored steps hold an action that their masks forbid")]
    MaskedActionEvaluated { count: u64 },
    /// A network returns a shape other than [`NetSpec`](crate::policy::NetSpec) requires, or gets input of another shape.
    #[error("{what}: expected {expected:?}, found {found:?}")]
    ShapeMismatch {
        what: &'static str,
        expected: Vec<i64>,
        found: Vec<i64>,
    },
    /// A saved policy was trained for other slots, blueprints, observations or sizes. The message names each difference. Use the
    /// scenario of the saved policy.
    #[error("the policy in {folder} does not fit this run:{}", .diffs.iter().map(|diff| format!("\n  {diff}")).collect::<String>())]
    IncompatiblePolicy { folder: String, diffs: Vec<String> },
    /// A file of a saved controller cannot be read or written.
    #[error("{path}: {why}")]
    Storage { path: String, why: String },
    /// libtorch returned an error.
    #[error(transparent)]
    Torch(#[from] TorchError),
    /// The controller or the network refuses a field of the scenario. Change the field at `path`.
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
