//! Reads an event file back (spec 07 §4.3): the same major version only, unknown types counted, every other fault named by
//! file and line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::SCHEMA_MAJOR;
use super::event::{Event, Payload};

/// What an event file held.
#[derive(Debug, Default)]
pub struct EventFile {
    pub events: Vec<Event>,
    /// Events of types that this version does not know.
    pub unknown: BTreeMap<String, u64>,
    /// The last line is incomplete: the writer was killed.
    pub has_torn_end: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}: {problem}")]
    Line {
        path: PathBuf,
        line: usize,
        problem: String,
    },
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
    let text = std::fs::read_to_string(path).map_err(|source| ReadError::File {
        path: path.into(),
        source,
    })?;
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
mod tests {
    use super::*;

    const HEADER: &str = r#"{"type":"header","schema":"simic.telemetry","major":1,"minor":7}"#;
    const NOTE: &str =
        r#"{"seq":0,"t":"2026-01-01T00:00:00.000Z","type":"note","sev":"info","data":{"text":"hi","new":1}}"#;

    fn read(text: &str) -> Result<EventFile, ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        std::fs::write(&path, text).unwrap();
        read_events(&path)
    }

    #[test]
    fn unknown_fields_are_ignored_and_unknown_types_counted() {
        let file = read(&format!("{HEADER}\n{NOTE}\n{{\"type\":\"dream\"}}\n")).unwrap();

        assert_eq!(file.events.len(), 1);
        assert_eq!(file.unknown["dream"], 1);
        assert!(!file.has_torn_end);
    }

    #[test]
    fn a_missing_field_is_named_with_its_line() {
        let note = NOTE.replace("\"text\":\"hi\",", "");

        let error = read(&format!("{HEADER}\n{note}\n")).unwrap_err().to_string();

        assert!(error.contains("events.jsonl:2"), "{error}");
        assert!(error.contains("`text`"), "{error}");
    }

    #[test]
    fn another_major_version_is_refused() {
        let header = HEADER.replace("\"major\":1", "\"major\":2");

        let error = read(&format!("{header}\n{NOTE}\n")).unwrap_err().to_string();

        assert!(error.contains("schema 2"), "{error}");
        assert!(error.contains("reads schema 1.x"), "{error}");
    }

    #[test]
    fn a_torn_last_line_is_tolerated() {
        let file = read(&format!("{HEADER}\n{NOTE}\n{{\"seq\":1,\"ty")).unwrap();

        assert_eq!(file.events.len(), 1);
        assert!(file.has_torn_end);
    }

    #[test]
    fn a_file_without_a_header_is_refused() {
        let error = read(&format!("{NOTE}\n")).unwrap_err().to_string();

        assert!(error.contains(":1: the first line is no header"), "{error}");
    }
}
