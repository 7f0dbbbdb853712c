//! Standard output, where results go and nothing else, and standard error, where everything else goes.
//!
//! Names of folders, tags and data come from others, so what would steer a terminal is written as an escape. Nothing on
//! standard output is coloured; on standard error the program's own codes are kept, which change a colour and nothing else.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};

use console::Term;
use serde::Serialize;

use super::{GlobalOptions, Outcome};
use crate::report::WIDTH;
use crate::scenario::{COLOURS, Severity, printable};
use crate::telemetry::sinks::ColorChoice;

/// Longest line on any terminal: longer ones are hard to read.
const WIDEST: usize = 100;

/// Prints a message to standard error. An error of that is ignored: the command ends as it would have ended.
pub fn tell(text: impl Display) {
    let text = printable(&text.to_string(), &COLOURS.codes());
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Says what went wrong.
pub fn tell_error(global: &GlobalOptions, message: impl Display) {
    tell_error_in(global.color, message);
}

fn tell_error_in(color: ColorChoice, message: impl Display) {
    if color.is_colored(std::io::stderr().is_terminal()) {
        tell(format_args!("{}error:{} {message}", COLOURS.error, COLOURS.off));
    } else {
        tell(format_args!("error: {message}"));
    }
}

/// Why a command was not done, for programs to read: as a problem of a scenario, without a place.
#[derive(Serialize)]
struct Refusal {
    severity: Severity,
    message: String,
}

/// Says why a command is not done: to people, or with `--json` to programs.
pub fn refuse(global: &GlobalOptions, message: impl Display) {
    if global.json {
        refuse_in_json(message);
    } else {
        tell_error(global, message);
    }
}

/// As [`refuse`] with `--json`. The command ends as rejected, whether anybody could be told or not.
pub fn refuse_in_json(message: impl Display) {
    _ = show_json(&[Refusal {
        severity: Severity::Error,
        message: message.to_string(),
    }]);
}

/// Characters that a line of results may have: as many as the terminal has columns, 80 in files.
pub fn width() -> usize {
    let columns = Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    columns.unwrap_or(WIDTH).clamp(WIDTH, WIDEST)
}

/// Writes a result.
#[must_use]
pub fn show(text: impl Display) -> Outcome {
    show_unchanged(&printable(&text.to_string(), &[]))
}

/// Writes what steers no terminal, or must not be changed.
fn show_unchanged(text: &str) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    shown(write!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// The outcome of writing a result. A reader that has read enough (`| head`) is no error; a result that could not be
/// written is a failure.
pub fn shown(written: std::io::Result<()>) -> Outcome {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            tell_error_in(
                ColorChoice::Auto,
                format_args!("standard output cannot be written: {error}"),
            );
            Outcome::Failed
        }
        _ => Outcome::Done,
    }
}

/// Writes a result: to people as a text, with `--json` to programs.
#[must_use]
pub fn show_either<T: Display>(global: &GlobalOptions, value: &impl Serialize, text: impl FnOnce() -> T) -> Outcome {
    if global.json { show_json(value) } else { show(text()) }
}

/// Writes a result as one JSON document.
#[must_use]
pub fn show_json(value: &impl Serialize) -> Outcome {
    match serde_json::to_string_pretty(value) {
        Ok(text) => show_unchanged(&(text + "\n")),
        Err(error) => {
            tell_error_in(
                ColorChoice::Auto,
                format_args!("the result cannot be written as JSON: {error}"),
            );
            Outcome::Failed
        }
    }
}
