//! The log of a command: warnings on the terminal, above the progress bars, and more of it in a file. Inside the engine panics become
//! errors, which are reported as such; the panic's own message goes to the log. One that is not caught is printed as usual.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};

use tracing::Dispatch;
use tracing::dispatcher::{set_global_default, with_default};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, fmt};

use super::terminal::Terminal;
use super::{GlobalOptions, Outcome, Rejection};
use crate::record::LogFile;
use crate::torch::is_catching;

/// Does what `command` does with a log: that of the whole process where it is the command's own, else of the command's threads.
///
/// # Errors
/// If `--log-file` cannot be opened, or `RUST_LOG` isn't a filter; those of the command.
pub fn logged(
    global: &GlobalOptions,
    terminal: &Terminal,
    owns_process: bool,
    command: impl FnOnce(LogFile) -> Result<Outcome, Rejection>,
) -> Result<Outcome, Rejection> {
    let file = match &global.log_file {
        Some(path) => {
            LogFile::at(path).map_err(|error| format!("the log file {} cannot be opened: {error}", path.display()))?
        }
        None => LogFile::default(),
    };
    let log = log(global, terminal.clone(), file.clone())?;
    if !owns_process {
        return with_default(&log, || command(file));
    }
    set_global_default(log).map_err(|error| format!("the log cannot be started: {error}"))?;
    command(file)
}

/// `RUST_LOG` wins over `-q` and `-v`; without either the file holds more than the terminal.
fn log(global: &GlobalOptions, terminal: Terminal, file: LogFile) -> Result<Dispatch, String> {
    let (on_terminal, in_file) = match (global.quiet, global.verbose) {
        (true, _) => ("error", "info"),
        (false, 0) => ("warn", "info"),
        (false, 1) => ("info", "info"),
        (false, _) => ("debug", "debug"),
    };
    let directives = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = |default: &'static str| {
        let chosen = if directives.is_empty() { default } else { &directives };
        let filter = chosen.parse::<Targets>();
        filter.map_err(|error| format!("RUST_LOG={directives} isn't a log filter: {error}"))
    };
    let layers = tracing_subscriber::registry()
        .with(
            fmt::layer()
                .without_time()
                // It would say so on standard error, and end the process where that cannot be written.
                .log_internal_errors(false)
                .with_writer(move || terminal.clone())
                .with_filter(filter(on_terminal)?.with_target(PANICS, LevelFilter::OFF)),
        )
        .with(
            fmt::layer()
                .log_internal_errors(false)
                .with_writer(move || file.clone())
                .with_filter(filter(in_file)?),
        );
    Ok(layers.into())
}

/// Target of the log lines of panics: they go to the file, never to the terminal.
const PANICS: &str = "panic";

/// Sends panics of this process to it.
pub fn send_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        note(panic);
        if !is_catching() {
            usual(panic);
        }
    }));
}

fn note(panic: &PanicHookInfo) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let text = panic.payload_as_str().unwrap_or("without a message");
    // With RUST_BACKTRACE alone: it takes time.
    let stack = Backtrace::capture();
    match stack.status() {
        BacktraceStatus::Captured => {
            tracing::info!(target: PANICS, "thread {name} panicked at {place}: {text}\n{stack}")
        }
        _ => tracing::info!(target: PANICS, "thread {name} panicked at {place}: {text}"),
    }
}
