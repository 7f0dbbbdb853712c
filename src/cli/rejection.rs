//! Why a command is not done, before anything was touched.

use super::output::{print_note, refuse, show_json};
use super::{GlobalOptions, report_text};
use crate::checkpoint::ResumeError;
use crate::data::DataError;
use crate::engine::SetupError;
use crate::export::ExportError;
use crate::health::FileError;
use crate::record::FindRunError;
use crate::sweep::PlanError;
use crate::tables::TableError;

/// Why a run cannot start or be resumed.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Run(#[from] FindRunError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error("cannot read the scenario {error}; {help}")]
    NoScenario { error: FileError, help: String },
    #[error(transparent)]
    Tables(#[from] TableError),
    #[error("{0}")]
    Usage(String),
}

impl From<PlanError> for Rejection {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::File(report) => Self::Setup(SetupError::Scenario(report)),
            PlanError::Setup(error) => Self::Setup(error),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl Rejection {
    /// Says why. The command ends as rejected even if that cannot be printed.
    pub fn print(&self, global: &GlobalOptions) {
        match self {
            Self::Setup(SetupError::Scenario(report)) if global.json => _ = show_json(&report.rows()),
            Self::Setup(SetupError::Scenario(report)) => print_note(report_text(report, global)),
            other => refuse(global, other),
        }
    }
}
