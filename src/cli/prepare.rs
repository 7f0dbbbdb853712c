//! From the arguments of `run` to a scenario that can run, before anything is touched.

use super::output::{show_json, tell};
use super::{Context, RunOptions, report_text};
use crate::checkpoint::ResumeError;
use crate::engine::{Prepared, SetupError};
use crate::scenario::Override;

/// What `run` plays without a scenario argument.
const QUICKSTART: &str = include_str!("../../scenarios/quickstart.ron");

/// Why a run cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error("{0}")]
    Usage(String),
}

impl Rejection {
    /// Says why. The command ends as rejected, whether anybody could be told or not.
    pub fn print(&self, context: &Context) {
        match self {
            Self::Setup(SetupError::Scenario(report)) if context.global.json => _ = show_json(&report.rows()),
            Self::Setup(SetupError::Scenario(report)) => tell(report_text(report, context.global)),
            other => tell(format_args!("error: {other}")),
        }
    }
}

/// Reads and checks the scenario under environment and flags.
///
/// # Errors
/// An unreadable file, a malformed `--set`, or a scenario with problems.
pub fn prepare(options: &RunOptions, context: &Context) -> Result<Prepared, Rejection> {
    let mut overrides: Vec<Override> = std::env::var("SIMIC_ENGINE_AMP")
        .ok()
        .filter(|value| !value.is_empty())
        .map(|value| Override::environment("SIMIC_ENGINE_AMP", "training.amp", value))
        .into_iter()
        .collect();
    overrides.extend(options.overrides().map_err(Rejection::Usage)?);
    Ok(match &options.scenario {
        Some(path) => Prepared::load(path, &overrides, &context.catalog)?,
        None => Prepared::from_ron("quickstart.ron", QUICKSTART, &overrides, &context.catalog)?,
    })
}
