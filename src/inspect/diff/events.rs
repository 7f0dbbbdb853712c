//! Events of two runs, in order, without their volatile fields.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{DiffError, Difference, Found, Side};
use crate::health::Position;
use crate::telemetry::{EVENTS_FILE, EventLines, LineError, ReadError, strip_volatile};

/// The fields that two events of the same kind share. If these differ, later events cannot be matched.
const IDENTITY: [&str; 6] = ["type", "round", "step", "env", "slot", "seed_id"];

/// An event and its line.
struct ComparedEvent {
    line: usize,
    event: Value,
}

impl ComparedEvent {
    fn kind(&self) -> Option<String> {
        Some(self.event["type"].as_str()?.to_owned())
    }

    fn moment(&self) -> Position {
        let number = |field: &str| u32::try_from(self.event[field].as_u64()?).ok();
        Position {
            round: number("round"),
            step: number("step"),
            batch: None,
            env: number("env").map(|env| env as usize),
        }
    }
}

/// The events of a run that must repeat under its seed.
struct Record {
    path: PathBuf,
    lines: EventLines,
}

impl Record {
    fn open(run: &Path) -> Result<Self, DiffError> {
        let path = run.join(EVENTS_FILE);
        let lines = EventLines::open(run)?;
        Ok(Self { path, lines })
    }

    fn next(&mut self) -> Result<Option<ComparedEvent>, DiffError> {
        while self.lines.advance()? && self.lines.is_whole() {
            let line = self.lines.number();
            let event: Value = serde_json::from_slice(self.lines.line()).map_err(|error| ReadError::Line {
                path: self.path.clone(),
                line,
                problem: LineError::Content(error.to_string()),
            })?;
            if let Some(event) = strip_volatile(&event) {
                return Ok(Some(ComparedEvent { line, event }));
            }
        }
        Ok(None)
    }
}

/// Compares them, and returns the number of events. The comparison ends where the runs have different events.
pub(super) fn compare(runs: [&Path; 2], found: &mut Found) -> Result<usize, DiffError> {
    let (mut left, mut right) = (Record::open(runs[0])?, Record::open(runs[1])?);
    let mut count = 0;
    while !found.is_full() {
        let pair = (left.next()?, right.next()?);
        let (Some(one), Some(other)) = &pair else {
            if let Some(data) = pair.0.as_ref().or(pair.1.as_ref()) {
                let sides = [(&left, &pair.0), (&right, &pair.1)].map(|(record, data)| {
                    let said = data.as_ref().map(|data| (data.line, data.event["type"].clone()));
                    let (line, value) = said.unzip();
                    Side::new(&record.path, line, value)
                });
                found.add(Difference {
                    at: data.moment(),
                    ..Difference::new(found.kind, "type", sides)
                });
            }
            break;
        };
        count += 1;
        let kind = found.kind;
        let difference = |field: &str, values: [Option<&Value>; 2]| {
            let sides = [
                Side::new(&left.path, Some(one.line), values[0].cloned()),
                Side::new(&right.path, Some(other.line), values[1].cloned()),
            ];
            Difference {
                at: one.moment(),
                event: one.kind(),
                ..Difference::new(kind, field, sides)
            }
        };
        let is_other = |field: &&&str| one.event[**field] != other.event[**field];
        if let Some(&field) = IDENTITY.iter().find(is_other) {
            let values = [&one.event, &other.event].map(|event| event.get(field));
            found.add(difference(field, values));
            break;
        }
        differing("", Some(&one.event), Some(&other.event), &mut |field, left, right| {
            found.add(difference(field, [left, right]));
            !found.is_full()
        });
    }
    Ok(count)
}

/// Shows `take` the path of every field in which two values differ, with both values. Fields of an object go by name, those
/// of a list by index. `take` returns whether it wants more.
fn differing<'a>(
    path: &str,
    left: Option<&'a Value>,
    right: Option<&'a Value>,
    take: &mut impl FnMut(&str, Option<&'a Value>, Option<&'a Value>) -> bool,
) -> bool {
    if left == right {
        return true;
    }
    match (left, right) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let join = |name: &str| match path {
                "" => name.to_owned(),
                path => format!("{path}.{name}"),
            };
            let mut names = names.into_iter();
            names.all(|name| differing(&join(name), one.get(name), other.get(name), take))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            let mut indices = 0..one.len().max(other.len());
            indices.all(|index| differing(&format!("{path}[{index}]"), one.get(index), other.get(index), take))
        }
        _ => take(path, left, right),
    }
}
