//! Standard output, where results go and nothing else, and standard error, where everything else goes.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use serde::Serialize;

use super::Outcome;

/// Says something to people, on standard error. Where that cannot be written nobody is left to be told, and a command
/// ends as it would have ended.
pub fn tell(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes a result.
#[must_use]
pub fn show(text: impl Display) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    shown(write!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// What writing a result came to. A reader that has read enough (`| head`) is no error; a result that nobody got is a
/// failure.
pub fn shown(written: std::io::Result<()>) -> Outcome {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            tell(format_args!("error: standard output cannot be written: {error}"));
            Outcome::Failed
        }
        _ => Outcome::Done,
    }
}

/// Writes a result as one JSON document.
#[must_use]
pub fn show_json(value: &impl Serialize) -> Outcome {
    match serde_json::to_string_pretty(value) {
        Ok(text) => show(format_args!("{text}\n")),
        Err(error) => {
            tell(format_args!("error: the result cannot be written as JSON: {error}"));
            Outcome::Failed
        }
    }
}
