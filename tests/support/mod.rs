//! What the tests of recorded runs share: what is left of one once it is played.

use std::path::Path;

use serde_json::Value;

/// All lines of `events.jsonl`, the header among them.
pub fn lines(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).expect("events.jsonl exists");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}
