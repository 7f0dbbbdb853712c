//! What the tests share: engines of a scenario text, and what is left of a recorded run.

use std::path::Path;

use serde_json::Value;
use simic_engine::prelude::*;

/// The engine in memory with the scenario of `text` and two workers, not yet started.
pub fn engine(text: &str) -> Engine {
    let engine = Engine::builder().threads(2).from_ron(text);
    engine.unwrap_or_else(|problems| panic!("{problems}"))
}

/// All lines of `events.jsonl`, the header among them.
pub fn lines(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).expect("events.jsonl exists");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}
