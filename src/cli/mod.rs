//! The command line: one file a subcommand. Data goes to stdout, messages to stderr (spec 07 §22).

mod eval;
mod explain;
mod list;
mod log;
mod options;
mod output;
mod prepare;
mod resume;
mod run;
mod validate;

use std::process::ExitCode;

use clap::Parser;

pub use options::{Arguments, Command, EvalOptions, GlobalOptions, ListWhat, ResumeOptions, RunOptions};
pub use prepare::{Prepared, prepare};

use crate::run::{Extension, StopRequest, catalog};
use crate::scenario::Report;
use crate::telemetry::sinks::Terminal;

/// What a command ended with (spec 07 §22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Wrong usage, a scenario with problems, or a start-up that failed: nothing was touched.
    Rejected,
    /// Data, I/O or memory failed while running.
    Failed,
    /// The engine stopped training: the policy diverged.
    Halted,
    /// Training is sound, but a durable record could not be written.
    RecordIncomplete,
    /// Asked to stop; the run can be resumed.
    Stopped(StopRequest),
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::Rejected => 2,
            Outcome::Failed => 3,
            Outcome::Halted => 4,
            Outcome::RecordIncomplete => 5,
            Outcome::Stopped(request) => request.exit_code(),
        })
    }
}

/// Parses the process's arguments and does what they ask, with an engine that `extend` may add to.
pub fn main(extend: Extension) -> ExitCode {
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
    execute(&arguments, extend)
        .unwrap_or_else(|message| {
            eprintln!("error: {message}");
            Outcome::Rejected
        })
        .into()
}

/// The outcome of a command, or why it could not even start.
fn execute(arguments: &Arguments, extend: Extension) -> Result<Outcome, String> {
    let global = &arguments.global;
    let terminal = Terminal::default();
    let log = log::start(global, &terminal)?;
    let catalog = catalog(extend).map_err(|error| error.to_string())?;
    Ok(match &arguments.command {
        Command::Run(options) => match prepare(options, &catalog) {
            Ok(prepared) => {
                let warnings = &prepared.loaded.warnings;
                if !global.quiet && !warnings.problems.is_empty() {
                    eprintln!("{}", report_text(warnings, global));
                }
                if options.dry_run {
                    run::dry_run(&prepared, global)
                } else {
                    let around = run::Surroundings { terminal, log, extend };
                    let plan = run::plan(&prepared, options, global, &around);
                    run::play(plan, &prepared.loaded.origins, global, &around)
                }
            }
            Err(rejection) => {
                rejection.print(global);
                eprintln!("nothing was run");
                Outcome::Rejected
            }
        },
        Command::Resume(options) => {
            let around = run::Surroundings { terminal, log, extend };
            resume::resume(options, &catalog, global, &around)
        }
        Command::Eval(options) => eval::eval(options, &catalog, global, extend),
        Command::Validate { scenarios } => validate::validate(scenarios, &catalog, global),
        Command::List { what } => list::list(*what, &catalog, global, extend).map_err(|error| error.to_string())?,
        Command::Explain { path } => explain::explain(path.as_deref().unwrap_or(""), &catalog, global),
    })
}

/// A report as people read it, coloured where standard error shows colours.
fn report_text(report: &Report, global: &GlobalOptions) -> String {
    if global.colour_stderr() {
        report.coloured().to_string()
    } else {
        report.to_string()
    }
}
