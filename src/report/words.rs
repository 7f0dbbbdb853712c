//! Numbers and paragraphs as every report writes them.

use std::time::Duration;

use crate::growth::LifecycleOp;
use crate::telemetry::{Contribution, Num};

/// Characters of a line where there is no terminal to ask.
pub const WIDTH: usize = 80;
/// Sign for a value that was not measured.
pub const ABSENT: &str = "—";

/// The text from `show`, or the sign for a missing value.
pub(super) fn cell<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| ABSENT.into(), show)
}

/// `12.34`
pub(super) fn number(value: Option<impl Into<Num>>, decimals: usize) -> String {
    cell(value, |value| format!("{:.decimals$}", value.into().0))
}

/// `+1.23`
pub fn signed(value: Option<f64>, decimals: usize) -> String {
    cell(value, |value| format!("{value:+.decimals$}"))
}

/// `+2.25 ± 0.40`
pub(super) fn worth(contribution: Option<Contribution>) -> String {
    cell(contribution, |contribution| {
        let error = number(contribution.standard_error, 2);
        format!("{:+.2} ± {error}", contribution.points)
    })
}

/// `42s`, `3m05s`, `1h12m`.
pub fn short_duration(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds.round())
        .unwrap_or(Duration::MAX)
        .as_secs();
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole / 60 % 60),
    }
}

/// An operation in lower case, with spaces.
pub(super) fn op_name(op: LifecycleOp) -> String {
    op.name().to_lowercase().replace('_', " ")
}

/// A paragraph in lines of at most `width` characters, broken between words; a longer word has a line of its own.
pub fn wrapped(text: &str, width: usize) -> String {
    filled(text.split_whitespace(), width)
}

/// Fills lines of at most `width` characters with words, and breaks none of them.
pub(super) fn filled<'a>(words: impl IntoIterator<Item = &'a str>, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in words {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
