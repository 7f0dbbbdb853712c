//! The log of the process: warnings on the terminal, above the progress bars, and more of it in a file.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use super::{GlobalOptions, panics};
use crate::record::LogFile;
use crate::telemetry::sinks::Terminal;

/// Starts the log. `RUST_LOG` wins over `-q` and `-v`; without either the file holds more than the terminal.
///
/// # Errors
/// If `--log-file` cannot be opened, or `RUST_LOG` is no filter.
pub fn start(global: &GlobalOptions, terminal: &Terminal) -> Result<LogFile, String> {
    let file = match &global.log_file {
        Some(path) => {
            LogFile::at(path).map_err(|error| format!("the log file {} cannot be opened: {error}", path.display()))?
        }
        None => LogFile::default(),
    };
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
        filter.map_err(|error| format!("RUST_LOG={directives} is no log filter: {error}"))
    };
    let (terminal, lines) = (terminal.clone(), file.clone());
    tracing_subscriber::registry()
        .with(
            fmt::layer()
                .without_time()
                // It would say so on standard error, and end the process where that cannot be written.
                .log_internal_errors(false)
                .with_writer(move || terminal.clone())
                .with_filter(filter(on_terminal)?.with_target(panics::TARGET, LevelFilter::OFF)),
        )
        .with(
            fmt::layer()
                .log_internal_errors(false)
                .with_writer(move || lines.clone())
                .with_filter(filter(in_file)?),
        )
        .try_init()
        .map_err(|error| format!("the log cannot be started: {error}"))?;
    panics::send_to_log();
    Ok(file)
}
