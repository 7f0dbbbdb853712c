//! The command line: one file a subcommand. Data goes to stdout, messages to stderr.

mod outcome;
mod options;
mod terminal;
mod surroundings;
mod output;
mod console;
mod rejection;
mod named;
mod report;
mod compare;
mod list;
mod completions;
mod log;
mod init;
mod new;
mod prepare;
mod check;
mod eval;
mod given;
mod adapt;
mod grow;
mod serve_envs;
mod sweep;
mod watch;
mod run;
mod show;
mod export;
mod traj;
mod validate;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};

use options::{
    Arguments, CheckRunOptions, ColorChoice, Command, DiffOptions, EvalOptions, ExportOptions, ExportTablesOptions,
    GlobalOptions, ListWhat, ReportOptions, ResumeOptions, RunOptions, RunsOptions, ShowOptions, WatchOptions,
};
use outcome::Outcome;
use output::Printer;
use rejection::Rejection;
use terminal::Terminal;

pub use surroundings::{Input, Surroundings};
pub use terminal::Output;

use crate::engine::{Engine, EngineBuilder, Extension, Names, all_cores};
use crate::prior_art::PriorArtPlugin;
use crate::record::{LogFile, Recording, runs_root};
use crate::run::{StopRequest, StopSignal, end_at_once, outlive_file_limit, stop_on_signals};
use crate::torch::fix_cublas_workspace;

/// Executes the process's arguments, with an engine that the prior art and `extension` add to.
pub fn main(extension: Extension) -> ExitCode {
    // Some commands have a second thread before they know whether the run is on CUDA.
    fix_cublas_workspace();
    outlive_file_limit();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    completions::answer(&arguments, &with_prior_art(&extension));
    log::send_panics();
    run(extension, &arguments, &Surroundings::of_process(&arguments)).into()
}

/// Executes `arguments`, as [`main`] does, and returns the exit code. The first of them is the name of the program.
/// Others may do the same in this process at the same time.
///
/// ```
/// use simic_engine::cli::{Input, Output, Surroundings, run};
/// use simic_engine::prelude::Extension;
///
/// let surroundings = Surroundings {
///     input: Input::of(std::io::empty()),
///     out: Output::to(std::io::sink()),
///     err: Output::to(std::io::sink()),
///     program: "simic-engine".into(),
///     owns_process: false,
/// };
/// let arguments = ["simic-engine", "explain", "run.rounds"].map(Into::into);
/// assert_eq!(run(Extension::default(), &arguments, &surroundings), 0);
/// ```
pub fn run(extension: Extension, arguments: &[OsString], surroundings: &Surroundings) -> u8 {
    let extension = with_prior_art(&extension);
    let outcome = match parse(arguments, surroundings) {
        Ok(arguments) => {
            let GlobalOptions { color, json, .. } = arguments.global;
            let printer = Printer::new(surroundings, color, json);
            let done = execute(&arguments, &extension, surroundings, &printer);
            done.unwrap_or_else(|rejection| reject(&rejection, &arguments.command, &printer))
        }
        Err(error) => {
            let json = arguments.iter().any(|argument| argument == "--json");
            Printer::new(surroundings, ColorChoice::Auto, json).answer(&error)
        }
    };
    outcome.exit_code()
}

fn parse(arguments: &[OsString], surroundings: &Surroundings) -> Result<Arguments, clap::Error> {
    let mut parser = Arguments::command();
    if !surroundings.owns_process {
        // The usual width: a terminal of the process has nothing to do with the command.
        parser = parser.term_width(100);
    }
    let mut matches = parser.clone().try_get_matches_from(arguments)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut parser))
}

fn with_prior_art(extension: &Extension) -> Extension {
    Extension::new(PriorArtPlugin).with(extension.clone())
}

fn reject(rejection: &Rejection, command: &Command, printer: &Printer) -> Outcome {
    let outcome = rejection.print(printer);
    match (command, outcome) {
        (Command::Run(_) | Command::Learn(_), Outcome::Rejected) => printer.note("nothing was run"),
        (Command::Resume(_), Outcome::Rejected) => printer.note("nothing was changed"),
        _ => {}
    }
    outcome
}

/// Inputs and outputs that every command shares.
struct Context<'a> {
    global: &'a GlobalOptions,
    surroundings: &'a Surroundings,
    printer: &'a Printer,
    extension: &'a Extension,
    names: &'a Names,
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

    fn recording(&self, out: Option<&Path>) -> Recording {
        Recording {
            log: self.log.clone(),
            ends_at: self.global.ends_at.clone(),
            ..Recording::under(runs_root(out))
        }
    }

    /// Lets Ctrl-C and the like ask for a stop, where they are meant for the command.
    fn heed_signals(&self, stop: StopSignal) -> Result<(), String> {
        if !self.surroundings.owns_process {
            return Ok(());
        }
        stop_on_signals(stop).map_err(|error| format!("handlers for signals cannot be installed: {error}"))
    }

    /// The stop that Ctrl-C and the like ask of the command.
    fn heeded_stop(&self) -> Result<StopSignal, Rejection> {
        let stop = StopSignal::default();
        self.heed_signals(stop.clone())?;
        Ok(stop)
    }
}

/// The outcome of a command, or why it was not even begun.
fn execute(
    arguments: &Arguments,
    extension: &Extension,
    surroundings: &Surroundings,
    printer: &Printer,
) -> Result<Outcome, Rejection> {
    let global = &arguments.global;
    let terminal = Terminal::on(surroundings.err.clone(), global.quiet, printer.is_coloured());
    log::logged(global, &terminal, surroundings.owns_process, |log| {
        if global.ends_with_input {
            let input = surroundings.input.clone();
            watch("input", || end_with(input))?;
        }
        if let Some(file) = global.ends_at.clone() {
            watch("successor", move || end_at(&file))?;
        }
        let names = extension.names()?;
        let context = Context {
            global,
            surroundings,
            printer,
            extension,
            names,
            terminal: terminal.clone(),
            log,
        };
        perform(&arguments.command, &context)
    })
}

fn perform(command: &Command, context: &Context) -> Result<Outcome, Rejection> {
    match command {
        Command::Run(options) => run::run(options, context),
        Command::Learn(options) => run::learn(options, context),
        Command::Resume(options) => run::resume(options, context),
        Command::Compare(options) => compare::compare(options, context),
        Command::Sweep(options) => sweep::sweep(options, context),
        Command::Runs(options) => show::runs(options, context),
        Command::Show(options) => show::show_run(options, context),
        Command::Report(options) => report::report(options, context),
        Command::Watch(options) => watch::watch(options, context),
        Command::Export(options) => export::export(options, context),
        Command::ExportTables(options) => export::export_tables(options, context),
        Command::Check(options) => check::check(options, context),
        Command::Diff(options) => check::diff(options, context),
        Command::Eval(options) => eval::eval(options, context),
        Command::Validate { scenarios, no_data } => Ok(validate::validate(scenarios, *no_data, context)),
        Command::RewardAudit { scenario, sets } => validate::reward_audit(scenario, sets, context),
        Command::Data { command } => init::data(command, context),
        Command::Traj { command } => traj::traj(command, context),
        Command::ServeEnvs(options) => serve_envs::serve_envs(options, context),
        Command::Init(options) => init::init(options, context),
        Command::List { what } => Ok(list::list(*what, context)),
        Command::Explain { path } => list::explain(path.as_deref().unwrap_or(""), context),
        Command::Adapt(options) => adapt::run(options, context),
        Command::Grow(options) => grow::run(options, context),
        Command::New(options) => new::new(options, context),
    }
}

/// Ends the process as a kill would once standard input is closed: the process at its other end is gone, and another one may
/// already have taken over the work of this one.
fn end_with(mut input: Input) {
    // Nothing is ever written to it; an error is an end as well.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
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
        .map_err(|error| format!("a thread cannot be started: {error}"))
}
