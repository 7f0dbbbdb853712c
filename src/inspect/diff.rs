//! The place where two runs part: the first field in which they differ, or the first ones of every kind.
//!
//! Files are read in parallel, so that runs with any number of events need little memory. Values that differ by nature between
//! two runs of one seed is left out: see [`strip_volatile`](crate::telemetry::strip_volatile).

mod outline;
mod tensors;
mod checkpoints;
mod events;

use std::fmt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::health::{AtPath, FileError, Position};
use crate::record::{RESOLVED_FILE, RunDirectory};
use crate::scenario::visible;
use crate::telemetry::ReadError;

/// Parts of two runs that are compared, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DiffKind {
    /// `resolved.ron`.
    Scenario,
    /// `events.jsonl`.
    Events,
    /// Checkpoints that both runs have after equal rounds.
    Checkpoints,
}

impl DiffKind {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Scenario, Self::Events, Self::Checkpoints];

    /// The name in JSON, and the unit of its count.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Scenario => ["scenario", "fields"],
            Self::Events => ["events", "events"],
            Self::Checkpoints => ["checkpoints", "files"],
        }
    }
}

/// Characters of a value or a name that are shown.
const SHOWN: usize = 200;

/// The number of differences to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The first one.
    First,
    /// This number of every kind.
    OfEvery(usize),
}

/// The value in one of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// File with the value.
    pub file: PathBuf,
    /// Line, from 1. `None` in files without lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The value. `None` where there is none.
    pub value: Option<Value>,
}

impl Side {
    /// The value in a file, or in a line of it.
    fn new(file: &Path, line: Option<usize>, value: Option<Value>) -> Self {
        let file = file.into();
        Self { file, line, value }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match &self.value {
            None => "(nothing)".into(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        write!(f, "{}  ({}", visible(&value, SHOWN), self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))?;
        f.write_str(")")
    }
}

/// A field in which two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The kind of difference.
    pub kind: DiffKind,
    /// Its time, as far as it has one.
    #[serde(flatten)]
    pub at: Position,
    /// Type of the event. `None` for anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Path of the field. For a tensor, its name and the index of the element.
    pub field: String,
    /// The first run's value.
    pub left: Side,
    /// The second run's value.
    pub right: Side,
    /// The distance between elements of tensors, in steps of their precision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ulp: Option<u64>,
}

impl Difference {
    /// A field without a time and an event.
    fn new(kind: DiffKind, field: impl Into<String>, [left, right]: [Side; 2]) -> Self {
        Self {
            kind,
            at: Position::default(),
            event: None,
            field: field.into(),
            left,
            right,
            ulp: None,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind.words()[0])?;
        let at = self.at.to_string();
        if !at.is_empty() {
            write!(f, "{at}: ")?;
        }
        if let Some(event) = &self.event {
            write!(f, "{event} ")?;
        }
        f.write_str(&visible(&self.field, SHOWN))?;
        if let Some(ulp) = self.ulp {
            write!(f, ", {ulp} ulp apart")?;
        }
        write!(f, "\n  {}\n  {}", self.left, self.right)
    }
}

/// The compared amount of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The kind.
    pub kind: DiffKind,
    /// Fields, events or files that both runs have.
    pub count: usize,
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [name, unit] = self.kind.words();
        write!(f, "{name} ({} {unit})", self.count)
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Parts compared before the search ended.
    pub compared: Vec<Compared>,
    /// Differences in the order in which they were found. Empty for equal runs.
    pub differences: Vec<Difference>,
}

/// The reason why two runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// The folder holds no run.
    #[error("{} isn't a run directory: it has no resolved.ron", .0.display())]
    NoRun(PathBuf),
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that holds no tensors.
    #[error("{}: no file of tensors in safetensors: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem with it.
        problem: String,
    },
    /// Events that cannot be read.
    #[error(transparent)]
    Events(#[from] ReadError),
}

/// Differences of one kind, up to a number of them.
struct Found {
    kind: DiffKind,
    limit: usize,
    differences: Vec<Difference>,
}

impl Found {
    fn is_full(&self) -> bool {
        self.differences.len() >= self.limit
    }

    fn add(&mut self, difference: Difference) {
        if !self.is_full() {
            self.differences.push(difference);
        }
    }

    /// Notes the fields in which two files of RON differ, except those that are left out. A field that only one file has doesn't
    /// have a place in the other.
    fn add_fields(&mut self, files: &[PathBuf; 2], texts: &[String; 2], is_left_out: fn(&str) -> bool) {
        for (path, fields) in outline::differing(&texts[0], &texts[1]) {
            if !is_left_out(&path) {
                let [left, right] =
                    fields.map(|field| field.map(|field| (field.line, Value::from(field.value))).unzip());
                let sides = [(&files[0], left), (&files[1], right)];
                let sides = sides.map(|(file, (line, value))| Side::new(file, line, value));
                self.add(Difference::new(self.kind, path, sides));
            }
        }
    }
}

/// Compares the runs in two folders in `kinds`, in the order of [`DiffKind::ALL`].
///
/// # Errors
/// A folder without a run; a file that cannot be read. An unfinished last line counts as missing.
pub fn diff(left: &Path, right: &Path, kinds: &[DiffKind], extent: Extent) -> Result<Diff, DiffError> {
    for run in [left, right] {
        if !RunDirectory::is_at(run) {
            return Err(DiffError::NoRun(run.into()));
        }
    }
    let mut whole = Diff {
        compared: Vec::new(),
        differences: Vec::new(),
    };
    for kind in DiffKind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
        let mut found = Found {
            kind,
            limit: match extent {
                Extent::First => 1,
                Extent::OfEvery(limit) => limit,
            },
            differences: Vec::new(),
        };
        let compare = match kind {
            DiffKind::Scenario => compare_scenarios,
            DiffKind::Events => events::compare,
            DiffKind::Checkpoints => checkpoints::compare,
        };
        let count = compare([left, right], &mut found)?;
        whole.compared.push(Compared { kind, count });
        whole.differences.append(&mut found.differences);
        if extent == Extent::First && !whole.differences.is_empty() {
            break;
        }
    }
    Ok(whole)
}

fn compare_scenarios(runs: [&Path; 2], found: &mut Found) -> Result<usize, DiffError> {
    let files = runs.map(|run| run.join(RESOLVED_FILE));
    let texts = [read(&files[0])?, read(&files[1])?];
    found.add_fields(&files, &texts, |_| false);
    Ok(outline::outline(&texts[0]).len())
}

fn read(path: &Path) -> Result<String, FileError> {
    crate::files::read_text(path).at(path)
}

#[cfg(test)]
mod tests;
