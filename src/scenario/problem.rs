//! What is wrong with a scenario, said so that its author can mend it.

use std::fmt;

use serde::Serialize;

use super::tree::Span;

/// Text that values come from: a scenario file, a command-line argument, a preset.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// File name as the user gave it, or the argument as typed (`--set run.rounds=abc`).
    pub label: String,
    /// All of it.
    pub text: String,
    /// Where it comes from.
    pub kind: SourceKind,
}

/// Where text comes from, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// The defaults of the declarations.
    Defaults,
    /// A training or policy preset.
    Preset,
    /// The scenario file.
    File,
    /// An environment variable.
    Environment,
    /// The command line.
    Argument,
}

impl Source {
    /// 1-based line and column (in characters) of a byte offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..offset.min(self.text.len())];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }

    /// Where `span` stands: `file:line:column`, or the argument itself.
    pub(crate) fn place(&self, span: Span) -> String {
        if self.kind == SourceKind::File {
            let (line, column) = self.line_column(span.start);
            format!("{}:{line}:{column}", self.label)
        } else {
            self.label.clone()
        }
    }
}

/// Whether a problem stops the run.
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
    /// Whether it stops the run.
    pub severity: Severity,
    /// The text that is wrong.
    pub(crate) span: Span,
    /// Dotted path of the field; empty for syntax errors.
    pub path: String,
    /// What was found and what would be valid.
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
}

/// A problem without the text that it points into, for programs to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemRow {
    /// Whether it stops the run.
    pub severity: Severity,
    /// The file or the argument as the user gave it.
    pub source: String,
    /// 1-based; absent where the source is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// 1-based, in characters; absent where the source is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Dotted path of the field; empty for syntax errors.
    pub path: String,
    /// What was found and what would be valid.
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

    /// Whether any problem stops the run.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// The problems for programs to read.
    pub fn rows(&self) -> Vec<ProblemRow> {
        self.problems.iter().map(|problem| self.row(problem)).collect()
    }

    fn row(&self, problem: &Problem) -> ProblemRow {
        let source = &self.sources[problem.span.source];
        let place = (source.kind == SourceKind::File).then(|| source.line_column(problem.span.start));
        ProblemRow {
            severity: problem.severity,
            source: source.label.clone(),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            path: problem.path.clone(),
            message: problem.message.clone(),
            help: problem.help.clone(),
        }
    }

    /// The report with terminal colours.
    pub fn coloured(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| self.write(f, &COLOURS))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, paint: &Paint) -> fmt::Result {
        for problem in &self.problems {
            self.write_problem(f, problem, paint)?;
        }
        let count = |severity, singular: &str| {
            let n = self.problems.iter().filter(|p| p.severity == severity).count();
            let plural = if n == 1 { "" } else { "s" };
            (n > 0).then(|| format!("{n} {singular}{plural}"))
        };
        let counts = [count(Severity::Error, "problem"), count(Severity::Warning, "warning")];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        f.write_str(&counts.join(", "))
    }

    fn write_problem(&self, f: &mut fmt::Formatter<'_>, problem: &Problem, paint: &Paint) -> fmt::Result {
        let source = &self.sources[problem.span.source];
        let place = source.place(problem.span);
        let (kind, hue) = match problem.severity {
            Severity::Error => ("", paint.error),
            Severity::Warning => ("warning: ", paint.warning),
        };
        let path = if problem.path.is_empty() {
            String::new()
        } else {
            format!("{}: ", problem.path)
        };
        let Paint { strong, dim, off, .. } = paint;
        writeln!(f, "{strong}{place}{off}: {hue}{kind}{path}{off}{}", problem.message)?;
        if source.kind == SourceKind::File {
            let (line, column) = source.line_column(problem.span.start);
            let text = source.text.lines().nth(line - 1).unwrap_or_default();
            let room = text.chars().count().saturating_sub(column - 1);
            let length = source
                .text
                .get(problem.span.start..problem.span.end)
                .map_or(1, |marked| marked.chars().count());
            let carets = "^".repeat(length.min(room).max(1));
            let indent: String = text
                .chars()
                .take(column - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            writeln!(f, "{dim}{line:>5} |{off} {text}")?;
            writeln!(f, "{dim}      |{off} {indent}{hue}{carets}{off}")?;
        }
        if let Some(help) = &problem.help {
            writeln!(f, "{strong}help{off}: {help}")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &Paint::default())
    }
}

/// Terminal codes around the parts of a problem; plain text by default.
#[derive(Default)]
struct Paint {
    error: &'static str,
    warning: &'static str,
    strong: &'static str,
    dim: &'static str,
    off: &'static str,
}

const COLOURS: Paint = Paint {
    error: "\x1b[1;31m",
    warning: "\x1b[1;33m",
    strong: "\x1b[1m",
    dim: "\x1b[34m",
    off: "\x1b[0m",
};

/// The candidate that looks most like `word`, if any is near enough to be a slip of it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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

/// `did you mean …?` for [`nearest`].
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests;
