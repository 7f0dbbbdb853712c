//! From the arguments of `run` to a scenario that can run, before anything is touched.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{GlobalOptions, RunOptions, print_report};
use crate::scenario::{self, Catalog, Input, Override, Report, Scenario, TaskSpec};
use crate::seed::SlotId;

/// What `run` plays without a scenario argument.
const QUICKSTART: &str = include_str!("../../scenarios/quickstart.ron");

/// A checked scenario with all that a run directory records about it.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub scenario: Scenario,
    /// The task with every override in it.
    pub task: TaskSpec,
    /// Enabled slots in the policy's order.
    pub slots: Vec<SlotId>,
    /// The scenario file's text, verbatim.
    pub text: String,
    /// The scenario file; `None` for the built-in quickstart.
    pub path: Option<PathBuf>,
    /// Where each value that is no default comes from, by dotted path.
    pub origins: BTreeMap<String, String>,
    /// Advice that does not stop the run.
    pub warnings: Report,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    #[error("{0}")]
    Scenario(Report),
    #[error("cannot read the scenario {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{0}")]
    Usage(String),
}

impl Rejection {
    pub fn print(&self, global: &GlobalOptions) {
        match self {
            Self::Scenario(report) => {
                print_report(report, global);
                eprintln!("nothing was run");
            }
            other => eprintln!("error: {other}"),
        }
    }
}

/// Reads and checks the scenario under environment and flags.
///
/// # Errors
/// An unreadable file, a malformed `--set`, or a scenario with problems.
pub fn prepare(options: &RunOptions, catalog: &Catalog) -> Result<Prepared, Rejection> {
    let mut overrides: Vec<Override> = std::env::var("SIMIC_ENGINE_AMP")
        .ok()
        .filter(|value| !value.is_empty())
        .map(|value| Override::environment("SIMIC_ENGINE_AMP", "training.amp", value))
        .into_iter()
        .collect();
    overrides.extend(options.overrides().map_err(Rejection::Usage)?);
    let (label, text) = match &options.scenario {
        Some(path) => (path.display().to_string(), read(path)?),
        None => ("quickstart.ron".into(), QUICKSTART.to_string()),
    };
    let input = Input {
        label: &label,
        text: &text,
        overrides: &overrides,
    };
    let loaded = scenario::load(&input, catalog).map_err(Rejection::Scenario)?;
    Ok(Prepared {
        scenario: loaded.scenario,
        task: loaded.task,
        slots: loaded.slots,
        text,
        path: options.scenario.clone(),
        origins: loaded.origins,
        warnings: loaded.warnings,
    })
}

pub(super) fn read(path: &PathBuf) -> Result<String, Rejection> {
    std::fs::read_to_string(path).map_err(|error| Rejection::Unreadable {
        path: path.clone(),
        error,
    })
}
