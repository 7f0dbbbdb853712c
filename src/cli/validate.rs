//! `simic-engine validate FILE…`.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::output::{show, show_json};
use super::prepare::{Rejection, read};
use super::{GlobalOptions, Outcome, report_text};
use crate::scenario::{self, Catalog, Input, Loaded, ProblemRow};

/// The verdict on one file, for programs to read.
#[derive(Serialize)]
struct Verdict {
    file: String,
    is_valid: bool,
    problems: Vec<ProblemRow>,
    /// Why the file could not be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Checks every file; each good one gets a line on stdout, each bad one its problems on stderr. With `--json` all of
/// it is one list on stdout.
pub fn validate(files: &[PathBuf], catalog: &Catalog, global: &GlobalOptions) -> Outcome {
    let checked: Vec<_> = files.iter().map(|path| (path, load(path, catalog))).collect();
    if global.json {
        let verdicts: Vec<Verdict> = checked.iter().map(|(path, result)| verdict(path, result)).collect();
        show_json(&verdicts);
    } else {
        for (path, result) in &checked {
            print(path, result, global);
        }
    }
    if checked.iter().all(|(_, result)| result.is_ok()) {
        Outcome::Done
    } else {
        Outcome::Rejected
    }
}

fn load(path: &Path, catalog: &Catalog) -> Result<Loaded, Rejection> {
    let text = read(path)?;
    let input = Input {
        label: &path.display().to_string(),
        text: &text,
        overrides: &[],
    };
    scenario::load(&input, catalog).map_err(Rejection::Scenario)
}

fn print(path: &Path, result: &Result<Loaded, Rejection>, global: &GlobalOptions) {
    let loaded = match result {
        Ok(loaded) => loaded,
        Err(Rejection::Scenario(report)) => return eprintln!("{}", report_text(report, global)),
        Err(other) => return eprintln!("error: {other}"),
    };
    if !loaded.warnings.problems.is_empty() {
        eprintln!("{}", report_text(&loaded.warnings, global));
    }
    if !global.quiet {
        let run = &loaded.scenario.run;
        show(format_args!(
            "{}: ok, {} with {} envs, {} rounds of {} steps\n",
            path.display(),
            loaded.task.name,
            run.n_envs,
            run.rounds,
            loaded.task.max_steps
        ));
    }
}

fn verdict(path: &Path, result: &Result<Loaded, Rejection>) -> Verdict {
    let (problems, error) = match result {
        Ok(loaded) => (loaded.warnings.rows(), None),
        Err(Rejection::Scenario(report)) => (report.rows(), None),
        Err(other) => (Vec::new(), Some(other.to_string())),
    };
    Verdict {
        file: path.display().to_string(),
        is_valid: result.is_ok(),
        problems,
        error,
    }
}
