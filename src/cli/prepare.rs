//! From the arguments of `run` to a scenario that can run, before anything is touched.

use std::path::{Path, PathBuf};

use super::output::show_json;
use super::{GlobalOptions, RunOptions, report_text};
use crate::scenario::{self, Catalog, Input, Loaded, Override, Report};

/// What `run` plays without a scenario argument.
const QUICKSTART: &str = include_str!("../../scenarios/quickstart.ron");

/// A checked scenario with the text it came from.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub loaded: Loaded,
    /// The scenario file's text, verbatim.
    pub text: String,
    /// The scenario file; `None` for the built-in quickstart.
    pub path: Option<PathBuf>,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    #[error("{0}")]
    Scenario(Report),
    #[error("cannot read the scenario {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("the scenario {}:{line}:{column} is not UTF-8 text; save it as UTF-8", path.display())]
    NotText { path: PathBuf, line: usize, column: usize },
    #[error("{0}")]
    Usage(String),
}

impl Rejection {
    pub fn print(&self, global: &GlobalOptions) {
        match self {
            Self::Scenario(report) if global.json => show_json(&report.rows()),
            Self::Scenario(report) => eprintln!("{}", report_text(report, global)),
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
        loaded,
        text,
        path: options.scenario.clone(),
    })
}

pub(super) fn read(path: &Path) -> Result<String, Rejection> {
    let bytes = std::fs::read(path).map_err(|error| Rejection::Unreadable {
        path: path.into(),
        error,
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line_start = sound
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |newline| newline + 1);
        Rejection::NotText {
            path: path.into(),
            line: sound.iter().filter(|&&byte| byte == b'\n').count() + 1,
            column: String::from_utf8_lossy(&sound[line_start..]).chars().count() + 1,
        }
    })
}
