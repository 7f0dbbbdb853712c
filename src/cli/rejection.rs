//! The reason why a command is not done: before anything was touched, or once it had begun.

use std::fmt::Display;

use super::Outcome;
use super::output::Printer;
use crate::actions::PolicyError;
use crate::checkpoint::{FrozenPolicyError, ResumeError};
use crate::data::DataError;
use crate::engine::SetupError;
use crate::export::ExportError;
use crate::grow::GrowError;
use crate::health::FileError;
use crate::inspect::DiffError;
use crate::network::NetworkError;
use crate::record::FindRunError;
use crate::report::ServeError;
use crate::reward::RewardError;
use crate::scenario::{Report, UnknownField};
use crate::schema::NameError;
use crate::sweep::{PlanError, SweepError};
use crate::tables::TableError;
use crate::telemetry::ReadError;
use crate::trajectory::TrajectoryError;

/// The reason why a command is not done.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    /// Problems of a scenario or a sweep file.
    #[error("{0}")]
    Scenario(Report),
    /// In words.
    #[error("{0}")]
    Usage(String),
    /// A failure after the command had begun; files it wrote stay.
    #[error("{0}")]
    Failed(String),
}

impl From<SetupError> for Rejection {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Scenario(report) => Self::Scenario(report),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl From<PlanError> for Rejection {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Setup(error) => error.into(),
            PlanError::Trials(message) => Self::Usage(message),
        }
    }
}

impl From<GrowError> for Rejection {
    fn from(error: GrowError) -> Self {
        match error {
            GrowError::Setup(error) => error.into(),
            GrowError::Engine(error) if error.position.round.is_some() => Self::failed(error),
            other => Self::Usage(other.to_string()),
        }
    }
}

/// Errors that are reported unchanged.
macro_rules! reported {
    ($($error:ty),+) => {
        $(impl From<$error> for Rejection {
            fn from(error: $error) -> Self {
                Self::Usage(error.to_string())
            }
        })+
    };
}

reported! {
    String, &'static str, FileError, NameError, UnknownField, DataError, NetworkError, PolicyError, FindRunError,
    ResumeError, FrozenPolicyError, ReadError, ExportError, TableError, DiffError, SweepError, ServeError,
    TrajectoryError, RewardError
}

impl Rejection {
    pub fn failed(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// Prints the reason, and returns the command's end, even if that cannot be printed.
    pub fn print(&self, printer: &Printer) -> Outcome {
        match self {
            Self::Scenario(report) => printer.refuse_scenario(report),
            Self::Usage(message) => printer.refuse(message),
            Self::Failed(message) => printer.error(message),
        }
        match self {
            Self::Failed(_) => Outcome::Failed,
            _ => Outcome::Rejected,
        }
    }
}
