//! Helpers shared by the tests: engines of a scenario text, and the remains of a recorded run.

use std::path::{Path, PathBuf};

use serde_json::Value;
use simic_engine::extend::EngineBuilder;
use simic_engine::internals::inspect::{DiffKind, Difference, Extent, diff};
use simic_engine::prelude::*;

/// A builder of engines: on the device that `SIMIC_ENGINE_TEST_DEVICE` names, with the same bits every time.
pub fn builder() -> EngineBuilder {
    let builder = Engine::builder();
    match std::env::var("SIMIC_ENGINE_TEST_DEVICE") {
        Ok(device) if device != "cpu" => {
            let builder = builder.set("run.devices", format!("[{device:?}]"));
            builder.set("run.deterministic", true)
        }
        _ => builder,
    }
}

/// The engine in memory with the scenario of `text` and two workers, not yet started.
pub fn engine(text: &str) -> Engine {
    let engine = builder().threads(2).from_ron(text);
    engine.unwrap_or_else(|problems| panic!("{problems}"))
}

/// The folder of the newest run in `root`; one that does not exist where none has begun.
pub fn latest(root: &Path) -> PathBuf {
    let name = std::fs::read_to_string(root.join("latest")).unwrap_or_default();
    root.join(if name.is_empty() { "none" } else { name.trim() })
}

/// All lines of `events.jsonl`, the header among them.
pub fn lines(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).expect("events.jsonl exists");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

/// The first field in which two runs differ; `None` if they have come to the same bits.
pub fn first_difference(one: &Path, other: &Path) -> Option<Difference> {
    let found = diff(one, other, &DiffKind::ALL, Extent::First);
    found.expect("both runs can be read").differences.pop()
}

/// Two runs have come to the same bits; else the failure names the first field in which they differ.
pub fn assert_same_run(one: &Path, other: &Path) {
    if let Some(difference) = first_difference(one, other) {
        panic!("{difference}");
    }
}

/// Returns whether tests that draw from many cases play all of them: `SIMIC_ENGINE_TEST_TIER=long`.
#[allow(dead_code, reason = "not every test has a tier")]
pub fn is_long() -> bool {
    std::env::var("SIMIC_ENGINE_TEST_TIER").is_ok_and(|tier| tier == "long")
}
