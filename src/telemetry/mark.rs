//! What an event file was up to some event: a checkpoint notes it, and a byte that changes later is found.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::health::{AtPath, FileError};

/// The beginning of an event file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsMark {
    /// Its length.
    pub bytes: u64,
    /// Of these bytes, in hexadecimal.
    pub blake3: String,
}

/// Hashes an event file that grows: each of its lines is read once, however often a mark is asked for.
#[derive(Debug, Default)]
pub struct EventsHasher {
    hasher: blake3::Hasher,
    bytes: u64,
}

impl EventsHasher {
    /// Takes the next line, its end included.
    pub fn take(&mut self, line: &[u8]) {
        self.hasher.update(line);
        self.bytes += line.len() as u64;
    }

    /// Of all lines so far.
    pub fn mark(&self) -> EventsMark {
        EventsMark {
            bytes: self.bytes,
            blake3: self.hasher.finalize().to_hex().to_string(),
        }
    }

    /// Takes the lines of the file at `path` that stand before the event `next_seq`, and marks them. The lines that were
    /// taken before must still be there.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn mark_before(&mut self, path: &Path, next_seq: u64) -> Result<EventsMark, FileError> {
        let mut file = BufReader::new(File::open(path).at(path)?);
        file.seek(SeekFrom::Start(self.bytes)).at(path)?;
        let mut line = Vec::new();
        loop {
            line.clear();
            file.read_until(b'\n', &mut line).at(path)?;
            // The rest is being written, or comes after.
            if !line.ends_with(b"\n") || seq_of(&line).is_some_and(|seq| seq >= next_seq) {
                return Ok(self.mark());
            }
            self.take(&line);
        }
    }
}

/// The number of an event; `None` of a header, and of what is no event.
fn seq_of(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: Option<u64>,
    }
    serde_json::from_slice::<Numbered>(line).ok()?.seq
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    fn append(path: &Path, text: &str) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn mark_of(text: &str) -> EventsMark {
        EventsMark {
            bytes: text.len() as u64,
            blake3: blake3::hash(text.as_bytes()).to_hex().to_string(),
        }
    }

    #[test]
    fn a_mark_is_the_hash_of_whole_lines_before_an_event_however_the_file_has_grown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let first = "{\"type\":\"header\"}\n{\"seq\":0}\n{\"seq\":1}\n";
        append(&path, &format!("{first}{{\"seq\":2}}\n{{\"seq\""));
        let mut hasher = EventsHasher::default();

        assert_eq!(hasher.mark_before(&path, 2).unwrap(), mark_of(first));
        let second = format!("{first}{{\"seq\":2}}\n");
        assert_eq!(hasher.mark_before(&path, 9).unwrap(), mark_of(&second));
        append(&path, ":3}\n");
        let third = format!("{second}{{\"seq\":3}}\n");
        assert_eq!(hasher.mark_before(&path, 9).unwrap(), mark_of(&third));
    }

    #[test]
    fn a_file_that_is_not_there_has_no_mark() {
        let folder = tempfile::tempdir().unwrap();

        let error = EventsHasher::default().mark_before(&folder.path().join("events.jsonl"), 1);

        assert!(error.unwrap_err().to_string().contains("events.jsonl"));
    }
}
