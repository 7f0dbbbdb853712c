//! Length and hash of an event file up to some event: a checkpoint notes them, and a byte that changes later is found.

use serde::{Deserialize, Serialize};

/// The beginning of an event file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsMark {
    /// Length of the file.
    pub bytes: u64,
    /// Hash of these bytes, in hexadecimal.
    pub blake3: String,
}

/// Hashes an event file that grows: each of its lines is read once, however often a mark is requested.
#[derive(Clone, Debug, Default)]
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

    /// Mark of all lines so far.
    pub fn mark(&self) -> EventsMark {
        EventsMark {
            bytes: self.bytes,
            blake3: self.hasher.finalize().to_hex().to_string(),
        }
    }
}

/// The part that exists of a record that is continued.
#[derive(Clone, Debug, Default)]
pub struct WrittenRecord {
    /// Hasher that has taken all of its lines.
    pub hasher: EventsHasher,
    /// Closed segments before the open one.
    pub closed_segments: u32,
    /// Length of the open segment.
    pub bytes: u64,
}
