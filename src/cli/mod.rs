//! The command line: one file a subcommand. Data goes to stdout, messages to stderr.

mod outcome;
mod options;
mod output;
mod progress;
mod rejection;
mod named;
mod report;
mod compare;
mod eval_progress;
mod explain;
mod completions;
mod list;
mod panics;
mod log;
mod check;
mod diff;
mod init;
mod data;
mod new;
mod runs;
mod scenario_file;
mod prepare;
mod evaluated;
mod eval;
mod grow;
mod reward_audit;
mod serve_envs;
mod sweep;
mod watch;
mod run;
mod resume;
mod show;
mod export;
mod export_tables;
mod traj;
mod validate;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use options::{
    Arguments, CheckRunOptions, Command, DiffOptions, EvalOptions, ExportOptions, ExportTablesOptions, GlobalOptions,
    ListWhat, ReportOptions, ResumeOptions, RunOptions, RunsOptions, ShowOptions, WatchOptions,
};
use outcome::Outcome;
use output::{print_note, refuse_in_json, shown};
use rejection::Rejection;

use crate::engine::{Engine, EngineBuilder, Extension, Names, all_cores};
use crate::prior_art::PriorArtPlugin;
use crate::record::{LogFile, Recording, runs_root};
use crate::run::{StopRequest, StopSignal, end_at_once, stop_on_signals};
use crate::scenario::{Catalog, Report};
use crate::telemetry::sinks::{Console, ProgressStyle, Terminal};

/// Parses the process's arguments and does what they ask, with an engine that the prior art and `extension` add to.
pub fn main(extension: Extension) -> ExitCode {
    let extension = Extension::new(PriorArtPlugin).with(extension);
    completions::answer(&extension);
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let printed = error.print();
            return if error.use_stderr() {
                if std::env::args_os().any(|argument| argument == "--json") {
                    refuse_in_json(error.render());
                }
                Outcome::Rejected.into()
            } else {
                shown(printed).into()
            };
        }
    };
    let outcome = execute(&arguments, &extension).unwrap_or_else(|rejection| {
        let outcome = rejection.print(&arguments.global);
        match (&arguments.command, outcome) {
            (Command::Run(_) | Command::Learn(_), Outcome::Rejected) => print_note("nothing was run"),
            (Command::Resume(_), Outcome::Rejected) => print_note("nothing was changed"),
            _ => {}
        }
        outcome
    });
    outcome.into()
}

/// What every command works with.
struct Context<'a> {
    global: &'a GlobalOptions,
    extension: &'a Extension,
    names: &'a Names,
    /// The names that scenarios may use.
    catalog: Catalog,
    terminal: Terminal,
    log: LogFile,
}

impl Context<'_> {
    fn engine(&self) -> EngineBuilder {
        Engine::builder().with(self.extension.clone()).threads(self.threads())
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
                tells_events: self.global.verbose > 0,
                terminal: self.terminal.clone(),
            },
            log: self.log.clone(),
            ends_at: self.global.ends_at.clone(),
            ..Recording::under(runs_root(out))
        }
    }
}

/// The outcome of a command, or why it was not even begun.
fn execute(arguments: &Arguments, extension: &Extension) -> Result<Outcome, Rejection> {
    let global = &arguments.global;
    let terminal = Terminal::default();
    let log = log::start(global, &terminal)?;
    if global.ends_with_input {
        watch("input", end_with_input)?;
    }
    if let Some(file) = global.ends_at.clone() {
        watch("successor", move || end_at(&file))?;
    }
    let names = extension.names()?;
    let context = Context {
        global,
        extension,
        names,
        catalog: names.catalog.clone(),
        terminal,
        log,
    };
    match &arguments.command {
        Command::Run(options) => run::run(options, &context),
        Command::Learn(options) => run::learn(options, &context),
        Command::Resume(options) => resume::resume(options, &context),
        Command::Compare(options) => compare::compare(options, &context),
        Command::Sweep(options) => sweep::sweep(options, &context),
        Command::Runs(options) => runs::runs(options, &context),
        Command::Show(options) => show::show_run(options, &context),
        Command::Report(options) => report::report(options, &context),
        Command::Watch(options) => watch::watch(options, &context),
        Command::Export(options) => export::export(options, &context),
        Command::ExportTables(options) => export_tables::export_tables(options, &context),
        Command::Check(options) => check::check(options, &context),
        Command::Diff(options) => diff::diff(options, &context),
        Command::Eval(options) => eval::eval(options, &context),
        Command::Validate { scenarios, no_data } => Ok(validate::validate(scenarios, *no_data, &context)),
        Command::RewardAudit { scenario, sets } => reward_audit::reward_audit(scenario, sets, &context),
        Command::Data { command } => data::data(command, &context),
        Command::Traj { command } => traj::traj(command, &context),
        Command::ServeEnvs(options) => serve_envs::serve_envs(options, &context),
        Command::Init(options) => init::init(options),
        Command::List { what } => Ok(list::list(*what, &context)),
        Command::Explain { path } => explain::explain(path.as_deref().unwrap_or(""), &context),
        Command::Grow(options) => grow::run(options, &context),
        Command::New(options) => new::new(options, &names.build),
    }
}

/// Ends the process as a kill would once standard input is closed: the process at its other end is gone, and another one may
/// already have taken over the work of this one.
fn end_with_input() {
    // Nothing is ever written to it; an error is an end as well.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    end_at_once(StopRequest::Terminate);
}

/// Ends the process as a kill would once `file` is there. What it plays looks again before every checkpoint.
fn end_at(file: &Path) {
    const LOOK: Duration = Duration::from_millis(500);
    while !file.exists() {
        std::thread::sleep(LOOK);
    }
    end_at_once(StopRequest::Terminate);
}

fn watch(name: &str, watch: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(watch);
    thread
        .map(drop)
        .map_err(|error| format!("no thread can be started: {error}"))
}

/// What Ctrl-C and the like ask of a command.
fn heeded_stop() -> Result<StopSignal, Rejection> {
    let stop = StopSignal::default();
    let handled = stop_on_signals(stop.clone());
    handled.map_err(|error| Rejection::Usage(format!("no handlers for signals: {error}")))?;
    Ok(stop)
}

/// A report as people read it, coloured where standard error shows colours.
fn report_text(report: &Report, global: &GlobalOptions) -> String {
    if global.colour_stderr() {
        report.coloured().to_string()
    } else {
        report.to_string()
    }
}
