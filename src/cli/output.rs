//! Standard output, where results go and nothing else.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use serde::Serialize;

/// Writes a result. A reader that has read enough (`| head`) is no error.
pub fn show(text: impl Display) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = write!(stdout, "{text}").and_then(|()| stdout.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        eprintln!("error: standard output cannot be written: {error}");
    }
}

/// Writes a result as one JSON document.
pub fn show_json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => show(format_args!("{text}\n")),
        Err(error) => eprintln!("error: the result cannot be written as JSON: {error}"),
    }
}
