//! Problems of a scenario, in words that help its author to repair it.

use std::fmt;

use serde::Serialize;

use super::tree::Span;
use crate::files::counted;

/// Text that values come from: a scenario file, a command-line argument, a preset.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// File name as the user gave it, or the argument as typed (`--set run.rounds=abc`).
    pub label: String,
    /// All of it.
    pub text: String,
    /// The origin of the text.
    pub kind: SourceKind,
}

/// Origins of text, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// The defaults of the declarations.
    Defaults,
    /// A training preset, or values that the data determine.
    Preset,
    /// The scenario file.
    File,
    /// The command line.
    Argument,
}

impl Source {
    pub(crate) fn new(label: &str, text: &str, kind: SourceKind) -> Self {
        let (label, text) = (label.into(), text.into());
        Self { label, text, kind }
    }

    /// A place in the text: `file:line:column`, or the argument itself.
    pub(crate) fn place(&self, (line, column): (usize, usize)) -> String {
        let label = visible(&self.label, WHOLE);
        if self.kind == SourceKind::File {
            format!("{label}:{line}:{column}")
        } else {
            label
        }
    }
}

/// Turns byte offsets of a text into lines and columns, both from 1, columns in characters. Asked in rising order it reads
/// the text once.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
    column: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: text.len() - text.trim_start_matches(BYTE_ORDER_MARK).len(),
            line: 1,
            column: 1,
        }
    }

    /// Line and column of a byte offset.
    pub(crate) fn position(&mut self, offset: usize) -> (usize, usize) {
        if offset < self.offset {
            *self = Self::new(self.text);
        }
        let end = offset.clamp(self.offset, self.text.len());
        let passed = &self.text[self.offset..end];
        match passed.rfind('\n') {
            Some(newline) => {
                self.line += passed.matches('\n').count();
                self.column = passed[newline + 1..].chars().count() + 1;
            }
            None => self.column += passed.chars().count(),
        }
        self.offset = end;
        (self.line, self.column)
    }
}

/// An invisible character with which some editors begin a file.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Problems that are printed; the others are counted.
const PRINTED_PROBLEMS: usize = 50;
/// Columns of a line that are printed around a problem.
const WINDOW: usize = 120;
/// Columns that are printed before a problem in the middle of a long line.
const BEFORE: usize = 60;
/// Characters of a name or a message that are printed.
const WHOLE: usize = 600;

/// A text as it may be printed: what would move the cursor, change colours or hide is written as an escape, and of a long
/// text only the beginning is there.
pub fn visible(text: &str, limit: usize) -> String {
    let mut beginning: String = text.chars().take(limit).map(shown).collect();
    if text.chars().nth(limit).is_some() {
        beginning.push('…');
    }
    beginning
}

/// As [`visible`], of a text of any length and with its line breaks; `kept` are sequences that may stay as they are.
pub fn printable(text: &str, kept: &[&str]) -> String {
    let mut printed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let sequence = kept.iter().find(|sequence| rest.starts_with(**sequence));
        let length = sequence.map_or(character.len_utf8(), |sequence| sequence.len());
        match sequence {
            Some(sequence) => printed.push_str(sequence),
            None if character == '\n' => printed.push(character),
            None => printed.push_str(&shown(character)),
        }
        rest = &rest[length..];
    }
    printed
}

/// A character as it may be printed.
fn shown(character: char) -> String {
    // Control characters but the tab; what reverses the direction of writing or has no width.
    let is_harmless = character == '\t'
        || !(character.is_control()
            || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | BYTE_ORDER_MARK));
    if is_harmless {
        character.into()
    } else {
        character.escape_unicode().to_string()
    }
}

/// The part of a line around a problem, and the carets under it.
struct Excerpt {
    text: String,
    indent: String,
    carets: String,
}

impl Excerpt {
    /// The excerpt of the line in which `start..end` begins. Reads only as much of it as is shown.
    fn of(text: &str, start: usize, end: usize) -> Self {
        let start = start.min(text.len());
        let is_inside = |character: &char| !matches!(character, '\n' | '\r');
        let around = |characters: &mut dyn Iterator<Item = char>| -> Vec<char> {
            characters.take_while(is_inside).take(WINDOW + 1).collect()
        };
        let mut before = around(&mut text[..start].chars().rev());
        let mut after = around(&mut text[start..].chars());
        // A line that fits is there as a whole. In a longer one, room that isn't needed after the problem is used before it.
        let room_before = WINDOW - after.len().min(WINDOW - BEFORE);
        let is_cut_before = before.len() > room_before;
        before.truncate(room_before);
        before.reverse();
        before.retain(|&character| character != BYTE_ORDER_MARK);
        let room = WINDOW - before.len();
        let is_cut_after = after.len() > room;
        after.truncate(room);

        let marked = text
            .get(start..end)
            .map_or(1, |marked| marked.chars().take(room).count());
        let show = |characters: &[char]| characters.iter().copied().map(shown).collect::<String>();
        let width = |characters: &[char]| show(characters).chars().count();
        let blank = |character: &char| match character {
            '\t' => "\t".into(),
            &other => " ".repeat(width(&[other])),
        };
        let ellipsis = |is_cut: bool| if is_cut { "…" } else { "" };
        let indent: String = before.iter().map(blank).collect();
        Self {
            indent: " ".repeat(usize::from(is_cut_before)) + &indent,
            carets: "^".repeat(width(&after[..marked.min(after.len())]).max(1)),
            text: [
                ellipsis(is_cut_before),
                &show(&before),
                &show(&after),
                ellipsis(is_cut_after),
            ]
            .concat(),
        }
    }
}

/// The severity of a problem: an error stops the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The scenario cannot run.
    Error,
    /// Advice.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Its severity.
    pub severity: Severity,
    /// The text that is wrong.
    pub(crate) span: Span,
    /// Dotted path of the field; empty for syntax errors.
    pub path: String,
    /// The finding, and what would be valid.
    pub message: String,
    /// The nearest name, or what to write instead.
    pub help: Option<String>,
}

impl Problem {
    pub(crate) fn error(span: Span, path: &str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            span,
            path: path.into(),
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        source: &Source,
        position: (usize, usize),
        paint: &Paint,
    ) -> fmt::Result {
        let (kind, hue) = match self.severity {
            Severity::Error => ("", paint.error),
            Severity::Warning => ("warning: ", paint.warning),
        };
        let path = if self.path.is_empty() {
            String::new()
        } else {
            format!("{}: ", visible(&self.path, WHOLE))
        };
        let Paint { strong, dim, off, .. } = paint;
        let (place, message) = (source.place(position), visible(&self.message, WHOLE));
        writeln!(f, "{strong}{place}{off}: {hue}{kind}{path}{off}{message}")?;
        if source.kind == SourceKind::File {
            let Excerpt { text, indent, carets } = Excerpt::of(&source.text, self.span.start, self.span.end);
            writeln!(f, "{dim}{:>5} |{off} {text}", position.0)?;
            writeln!(f, "{dim}      |{off} {indent}{hue}{carets}{off}")?;
        }
        if let Some(help) = &self.help {
            writeln!(f, "{strong}help{off}: {}", visible(help, WHOLE))?;
        }
        writeln!(f)
    }
}

/// A problem without the text that it points into, for programs to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemRow {
    /// Its severity.
    pub severity: Severity,
    /// The file or the argument as the user gave it.
    pub source: String,
    /// 1-based; absent where the source isn't a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// 1-based, in characters; absent where the source isn't a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Dotted path of the field; empty for syntax errors.
    pub path: String,
    /// The finding, and what would be valid.
    pub message: String,
    /// The nearest name, or what to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// All problems of one scenario with the texts that they point into. Printed, it is what the user reads.
#[derive(Clone, Debug, Default, PartialEq, thiserror::Error)]
pub struct Report {
    /// Texts that the problems point into.
    pub sources: Vec<Source>,
    /// In the order of the texts.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Sorts the problems by their place and drops repeated ones.
    pub(crate) fn new(sources: Vec<Source>, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.span.source, problem.span.start));
        problems.dedup();
        Self { sources, problems }
    }

    /// Returns whether any problem stops the run.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// The problems for programs to read.
    pub fn rows(&self) -> Vec<ProblemRow> {
        let rows = self.placed().map(|(problem, source, (line, column))| {
            let is_file = source.kind == SourceKind::File;
            ProblemRow {
                severity: problem.severity,
                source: source.label.clone(),
                line: is_file.then_some(line),
                column: is_file.then_some(column),
                path: problem.path.clone(),
                message: problem.message.clone(),
                help: problem.help.clone(),
            }
        });
        rows.collect()
    }

    /// Each problem with its source, and line and column there.
    fn placed(&self) -> impl Iterator<Item = (&Problem, &Source, (usize, usize))> {
        // One a source: problems come in the order of their places.
        let mut cursors: Vec<Cursor> = self.sources.iter().map(|source| Cursor::new(&source.text)).collect();
        self.problems.iter().map(move |problem| {
            let Span { source, start, .. } = problem.span;
            (problem, &self.sources[source], cursors[source].position(start))
        })
    }

    /// The report with terminal colours.
    pub fn coloured(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| self.write(f, &COLOURS))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, paint: &Paint) -> fmt::Result {
        for (problem, source, position) in self.placed().take(PRINTED_PROBLEMS) {
            problem.write(f, source, position, paint)?;
        }
        let others = self.problems.len().saturating_sub(PRINTED_PROBLEMS);
        if others > 0 {
            writeln!(f, "and {others} more\n")?;
        }
        let count = |severity, singular: &str| {
            let n = self.problems.iter().filter(|p| p.severity == severity).count();
            (n > 0).then(|| counted(n, singular))
        };
        let counts = [count(Severity::Error, "problem"), count(Severity::Warning, "warning")];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        f.write_str(&counts.join(", "))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &Paint::default())
    }
}

/// Terminal codes around the parts of a problem; plain text by default.
#[derive(Default)]
pub struct Paint {
    /// Before the word `error`.
    pub error: &'static str,
    warning: &'static str,
    strong: &'static str,
    dim: &'static str,
    /// After each part.
    pub off: &'static str,
}

impl Paint {
    /// All of them.
    pub const fn codes(&self) -> [&'static str; 5] {
        [self.error, self.warning, self.strong, self.dim, self.off]
    }
}

/// Errors red, warnings yellow.
pub const COLOURS: Paint = Paint {
    error: "\x1b[1;31m",
    warning: "\x1b[1;33m",
    strong: "\x1b[1m",
    dim: "\x1b[34m",
    off: "\x1b[0m",
};

/// No name is as long, and comparing takes time and room.
const LONGEST_NAME: usize = 200;

/// The candidate that looks most like `word`, if any is near enough to be a slip of it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_NAME {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::osa_distance(&lower, &candidate.to_ascii_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 3 + 1)
        .filter(|(distance, candidate)| *distance < candidate.len().max(word.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The candidate that is at most one edit away from `word`: surely meant.
pub fn slip_of<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest(word, candidates).filter(|candidate| strsim::osa_distance(word, candidate) <= 1)
}

/// `did you mean …?` for [`nearest`].
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests;
