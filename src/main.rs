use std::process::ExitCode;

use simic_engine::cli::{self, GlobalOptions, Outcome, Prepared, RunOptions};
use simic_engine::scenario::{Catalog, resolved_ron};

fn main() -> ExitCode {
    cli::main(&Catalog::default(), dry_run, dry_run)
}

/// Prints the scenario as it would run.
fn dry_run(prepared: &Prepared, _: &RunOptions, _: &GlobalOptions) -> Outcome {
    match resolved_ron(&prepared.scenario) {
        Ok(text) => {
            println!("{text}");
            Outcome::Done
        }
        Err(error) => {
            eprintln!("error: the scenario cannot be written: {error}");
            Outcome::Failed
        }
    }
}
