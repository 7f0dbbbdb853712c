//! Reads an event file back: the same major version only, unknown types counted, every other fault named by
//! file and line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::event::{Event, Payload, SCHEMA_MAJOR};
use crate::health::{AtPath, FileError};

/// What an event file held.
#[derive(Debug, Default)]
pub struct EventFile {
    /// In the order of the file.
    pub events: Vec<Event>,
    /// Events of types that this version does not know.
    pub unknown: BTreeMap<String, u64>,
    /// The last line is incomplete: the writer was killed.
    pub has_torn_end: bool,
}

/// Why an event file could not be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// It cannot be opened or is no text.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line is no event.
    #[error("{path}:{line}: {problem}")]
    Line {
        path: PathBuf,
        line: usize,
        problem: String,
    },
    /// It follows another version of the schema.
    #[error("{path}: written with telemetry schema {found}; this version reads schema {SCHEMA_MAJOR}.x")]
    Major { path: PathBuf, found: u32 },
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    name: String,
    /// Headers only.
    major: Option<u32>,
}

/// Reads a whole event file.
///
/// # Errors
/// If the file cannot be read, a line is no event, or it was written with another major version of the schema.
pub fn read_events(path: &Path) -> Result<EventFile, ReadError> {
    let text = std::fs::read_to_string(path).at(path)?;
    let ends_torn = !text.is_empty() && !text.ends_with('\n');
    let lines: Vec<&str> = text.lines().collect();
    let mut file = EventFile::default();
    for (index, line) in lines.iter().enumerate() {
        let problem = |problem: String| ReadError::Line {
            path: path.into(),
            line: index + 1,
            problem,
        };
        if ends_torn && index + 1 == lines.len() {
            file.has_torn_end = true;
            break;
        }
        let kind: Kind = serde_json::from_str(line).map_err(|error| problem(error.to_string()))?;
        if index == 0 && kind.name != "header" {
            return Err(problem("the first line is no header".into()));
        }
        if kind.name == "header" {
            match kind.major {
                Some(SCHEMA_MAJOR) => {}
                Some(found) => {
                    return Err(ReadError::Major {
                        path: path.into(),
                        found,
                    });
                }
                None => return Err(problem("the header has no field `major`".into())),
            }
        } else if Payload::KINDS.contains(&kind.name.as_str()) {
            let event = serde_json::from_str(line).map_err(|error| problem(error.to_string()))?;
            file.events.push(event);
        } else {
            *file.unknown.entry(kind.name).or_default() += 1;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
