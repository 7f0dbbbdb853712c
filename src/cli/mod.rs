//! The command line: one file a subcommand. Data goes to stdout, messages to stderr (spec 07 §22).

mod explain;
mod list;
mod options;
mod prepare;
mod run;
mod validate;

use std::process::ExitCode;

use clap::Parser;

pub use options::{Arguments, ColourChoice, Command, GlobalOptions, ListWhat, ProgressStyle, RunOptions};
pub use prepare::{Prepared, prepare};

use crate::scenario::{Catalog, Report};

/// What a command ended with (spec 07 §22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Wrong usage, a scenario with problems, or a start-up that failed: nothing was touched.
    Rejected,
    /// Data, I/O or memory failed while running.
    Failed,
    /// The engine stopped training: every env failed.
    Halted,
    /// Training is sound, but a durable record could not be written.
    RecordIncomplete,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::Rejected => 2,
            Outcome::Failed => 3,
            Outcome::Halted => 4,
            Outcome::RecordIncomplete => 5,
        })
    }
}

/// Parses the process's arguments and does what they ask.
pub fn main(catalog: &Catalog) -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nothing can be done about a terminal that went away.
            let _ = error.print();
            return if error.use_stderr() {
                Outcome::Rejected.into()
            } else {
                Outcome::Done.into()
            };
        }
    };
    let global = &arguments.global;
    let outcome = match &arguments.command {
        Command::Run(options) => match prepare(options, catalog) {
            Ok(prepared) => {
                if !global.quiet && !prepared.warnings.problems.is_empty() {
                    print_report(&prepared.warnings, global);
                }
                let run = if options.dry_run { run::dry_run } else { run::play };
                run(&prepared, options, global)
            }
            Err(rejection) => {
                rejection.print(global);
                Outcome::Rejected
            }
        },
        Command::Validate { scenarios } => validate::validate(scenarios, catalog, global),
        Command::List { what } => list::list(*what, catalog),
        Command::Explain { path } => explain::explain(path.as_deref().unwrap_or(""), catalog),
    };
    outcome.into()
}

fn print_report(report: &Report, global: &GlobalOptions) {
    if global.colour_stderr() {
        eprintln!("{}", report.coloured());
    } else {
        eprintln!("{report}");
    }
}
