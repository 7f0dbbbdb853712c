//! The command line: one file a subcommand. Data goes to stdout, messages to stderr.

mod eval;
mod explain;
mod list;
mod log;
mod options;
mod output;
mod panics;
mod prepare;
mod resume;
mod run;
mod validate;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use options::{Arguments, Command, EvalOptions, GlobalOptions, ListWhat, ResumeOptions, RunOptions};
use output::{shown, tell};
use prepare::Rejection;

use crate::engine::{Engine, EngineBuilder, all_cores, catalog};
use crate::record::{LogFile, Recording, runs_root};
use crate::run::{Extension, StopRequest};
use crate::scenario::{Catalog, Report};
use crate::telemetry::sinks::{Console, ProgressStyle, Terminal};

/// What a command ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Wrong usage, a scenario with problems, or a start-up that failed before anything was written.
    Rejected,
    /// Data, I/O or memory failed while running, or once a run directory had been made or changed.
    Failed,
    /// The engine stopped training: the policy diverged.
    Halted,
    /// Training is sound, but a durable record could not be written.
    RecordIncomplete,
    /// Asked to stop; the run can be resumed.
    Stopped(StopRequest),
}

impl Outcome {
    /// The first of two that is not [`Self::Done`].
    fn unless_done(self, other: Self) -> Self {
        if self == Self::Done { other } else { self }
    }
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
            let printed = error.print();
            return if error.use_stderr() {
                Outcome::Rejected.into()
            } else {
                shown(printed).into()
            };
        }
    };
    execute(&arguments, extend)
        .unwrap_or_else(|message| {
            tell(format_args!("error: {message}"));
            Outcome::Rejected
        })
        .into()
}

/// What every command works with.
struct Context<'a> {
    global: &'a GlobalOptions,
    /// The names that scenarios may use.
    catalog: Catalog,
    extend: Extension,
    terminal: Terminal,
    log: LogFile,
}

impl Context<'_> {
    fn engine(&self) -> EngineBuilder {
        Engine::builder().extended(self.extend).threads(self.threads())
    }

    fn threads(&self) -> usize {
        self.global.threads.map_or_else(all_cores, usize::from)
    }

    fn recording(&self, out: Option<&Path>, progress: ProgressStyle) -> Recording {
        let style = if self.global.quiet {
            ProgressStyle::None
        } else {
            progress
        };
        Recording {
            console: Console {
                style,
                color: self.global.color,
                terminal: self.terminal.clone(),
            },
            log: self.log.clone(),
            ..Recording::under(runs_root(out))
        }
    }
}

/// The outcome of a command, or why it could not even start.
fn execute(arguments: &Arguments, extend: Extension) -> Result<Outcome, String> {
    let global = &arguments.global;
    let terminal = Terminal::default();
    let log = log::start(global, &terminal)?;
    let context = Context {
        global,
        catalog: catalog(extend).map_err(|error| error.to_string())?,
        extend,
        terminal,
        log,
    };
    let refuse = |rejection: Rejection| {
        rejection.print(&context);
        Outcome::Rejected
    };
    Ok(match &arguments.command {
        Command::Run(options) => run::run(options, &context).unwrap_or_else(|rejection| {
            let outcome = refuse(rejection);
            tell("nothing was run");
            outcome
        }),
        Command::Resume(options) => resume::resume(options, &context).unwrap_or_else(|rejection| {
            let outcome = refuse(rejection);
            tell("nothing was changed");
            outcome
        }),
        Command::Eval(options) => eval::eval(options, &context).unwrap_or_else(refuse),
        Command::Validate { scenarios } => validate::validate(scenarios, &context),
        Command::List { what } => list::list(*what, &context).map_err(|error| error.to_string())?,
        Command::Explain { path } => explain::explain(path.as_deref().unwrap_or(""), &context),
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
