//! Runs with a record, played in this process, with something added to them.

use std::path::Path;

use simic_engine::engine::RunReport;
use simic_engine::prelude::*;

/// Plays `scenario` with what `extend` adds; its folder goes into `out`.
pub fn play(scenario: &str, out: &Path, extend: Extension) -> RunReport {
    let engine = Engine::builder().extended(extend).threads(2).recorded(out);
    engine.from_ron(scenario).expect("the scenario is sound").play()
}
