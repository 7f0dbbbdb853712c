//! Standard output, where results go and nothing else, and standard error, where everything else goes.
//!
//! Names of folders, tags and data come from others, so characters that would steer a terminal are written as escapes. Nothing on
//! standard output is coloured; on standard error the program's own codes are kept, which change a colour and nothing else.

use std::fmt::Display;
use std::io::{ErrorKind, Result, Write};

use serde::Serialize;

use super::options::ColorChoice;
use super::{Outcome, Output, Surroundings};
use crate::report::WIDTH;
use crate::scenario::{COLOURS, Report, Severity, printable};

/// Longest line on any terminal: longer ones are hard to read.
const WIDEST: usize = 100;

/// The place and the form of a command's output.
#[derive(Clone, Debug)]
pub struct Printer {
    out: Output,
    err: Output,
    color: ColorChoice,
    json: bool,
}

/// The reason why a command was not done, for programs: in the form of a scenario's problem, without a place.
#[derive(Serialize)]
struct Refusal {
    severity: Severity,
    message: String,
}

impl Printer {
    pub fn new(surroundings: &Surroundings, color: ColorChoice, json: bool) -> Self {
        let Surroundings { out, err, .. } = surroundings.clone();
        Self { out, err, color, json }
    }

    /// Prints a message to standard error. An error of that is ignored: the command ends as it would have ended.
    pub fn note(&self, text: impl Display) {
        let text = printable(&text.to_string(), &COLOURS.codes());
        let _ = writeln!(self.err.clone(), "{text}");
    }

    /// Reports the problem.
    pub fn error(&self, message: impl Display) {
        if self.is_coloured() {
            self.note(format_args!("{}error:{} {message}", COLOURS.error, COLOURS.off));
        } else {
            self.note(format_args!("error: {message}"));
        }
    }

    /// Prints the problems in a scenario.
    pub fn report(&self, report: &Report) {
        if self.is_coloured() {
            self.note(report.coloured());
        } else {
            self.note(report);
        }
    }

    /// Returns whether standard error shows colours.
    pub fn is_coloured(&self) -> bool {
        self.color.is_coloured(self.err.terminal().is_some())
    }

    /// Says why a command is not done: to people, or with `--json` to programs.
    pub fn refuse(&self, message: impl Display) {
        if self.json {
            self.refuse_in_json(message);
        } else {
            self.error(message);
        }
    }

    /// Prints the problems in a scenario that isn't played: to people, or with `--json` to programs.
    pub fn refuse_scenario(&self, report: &Report) {
        if self.json {
            _ = self.show_json(&report.rows());
        } else {
            self.report(report);
        }
    }

    /// Refuses as [`refuse`](Self::refuse) does with `--json`. The command ends as rejected even if that cannot be printed.
    fn refuse_in_json(&self, message: impl Display) {
        _ = self.show_json(&[Refusal {
            severity: Severity::Error,
            message: message.to_string(),
        }]);
    }

    /// Prints the parser's text instead of a command's: help, or the problem with the arguments.
    pub fn answer(&self, parsed: &clap::Error) -> Outcome {
        let is_refused = parsed.use_stderr();
        let mut stream = if is_refused { self.err.clone() } else { self.out.clone() };
        let has_colours = stream
            .terminal()
            .is_some_and(|terminal| terminal.features().colors_supported());
        let text = parsed.render();
        let shown = if has_colours {
            text.ansi().to_string()
        } else {
            text.to_string()
        };
        let written = stream.write_all(shown.as_bytes());
        if !is_refused {
            return self.shown(written);
        }
        if self.json {
            self.refuse_in_json(text);
        }
        Outcome::Rejected
    }

    /// Characters that a line of results may have: as many as the terminal has columns, 80 in files.
    pub fn width(&self) -> usize {
        let size = self.out.terminal().and_then(|terminal| terminal.size_checked());
        size.map_or(WIDTH, |(_, columns)| usize::from(columns))
            .clamp(WIDTH, WIDEST)
    }

    /// Writes a result.
    #[must_use]
    pub fn show(&self, text: impl Display) -> Outcome {
        self.show_unchanged(&printable(&text.to_string(), &[]))
    }

    /// Writes what steers no terminal, or must not be changed.
    fn show_unchanged(&self, text: &str) -> Outcome {
        let mut out = self.out.clone();
        self.shown(write!(out, "{text}").and_then(|()| out.flush()))
    }

    /// The outcome of writing a result. A reader that has read enough (`| head`) isn't an error; a result that could not be
    /// written is a failure.
    fn shown(&self, written: Result<()>) -> Outcome {
        match written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                self.error(format_args!("standard output cannot be written: {error}"));
                Outcome::Failed
            }
            _ => Outcome::Done,
        }
    }

    /// Writes a result: to people as a text, with `--json` to programs.
    #[must_use]
    pub fn show_either<T: Display>(&self, value: &impl Serialize, text: impl FnOnce() -> T) -> Outcome {
        if self.json {
            self.show_json(value)
        } else {
            self.show(text())
        }
    }

    /// Writes a result as one JSON document.
    #[must_use]
    pub fn show_json(&self, value: &impl Serialize) -> Outcome {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.show_unchanged(&(text + "\n")),
            Err(error) => {
                self.error(format_args!("the result cannot be written as JSON: {error}"));
                Outcome::Failed
            }
        }
    }
}
