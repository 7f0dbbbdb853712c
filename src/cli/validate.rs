//! `simic-engine validate FILE…`.

use std::path::PathBuf;

use super::prepare::{Rejection, read};
use super::{GlobalOptions, Outcome, print_report};
use crate::scenario::{self, Catalog, Input};

/// Checks every file; each good one gets a line on stdout, each bad one its problems on stderr.
pub fn validate(files: &[PathBuf], catalog: &Catalog, global: &GlobalOptions) -> Outcome {
    let mut outcome = Outcome::Done;
    for path in files {
        if let Err(rejection) = validate_file(path, catalog, global) {
            match rejection {
                Rejection::Scenario(report) => print_report(&report, global),
                other => eprintln!("error: {other}"),
            }
            outcome = Outcome::Rejected;
        }
    }
    outcome
}

fn validate_file(path: &PathBuf, catalog: &Catalog, global: &GlobalOptions) -> Result<(), Rejection> {
    let text = read(path)?;
    let label = path.display().to_string();
    let input = Input {
        label: &label,
        text: &text,
        overrides: &[],
    };
    let loaded = scenario::load(&input, catalog).map_err(Rejection::Scenario)?;
    if !loaded.warnings.problems.is_empty() {
        print_report(&loaded.warnings, global);
    }
    if !global.quiet {
        let run = &loaded.scenario.run;
        println!(
            "{label}: ok, {} with {} envs, {} rounds of {} steps",
            loaded.task.name, run.n_envs, run.rounds, loaded.task.max_steps
        );
    }
    Ok(())
}
