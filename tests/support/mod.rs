//! What the tests of runs share: short scenarios, and what is left of a record once it is played.

use std::path::{Path, PathBuf};

use serde_json::Value;
use simic_engine::run::{Extension, RunPlan, run};
use simic_engine::scenario::{self, Catalog, Input, TelemetryLevel};

/// A few batches of digits a step under a controller that orders whatever is legal.
pub fn scenario(name: &str, rounds: u32, n_envs: usize, max_steps: u32) -> String {
    format!(
        r#"(
            name: "{name}",
            task: preset("digits_minimal", (batches_per_step: count(2))),
            run: (rounds: {rounds}, n_envs: {n_envs}, max_steps: {max_steps}),
            policy: (controller: "random"),
            lifecycle: (auto_forward: (g1: true, g2: true, g3: true), gates: (min_training_epochs: 1, min_gradient_health: 0.0)),
        )"#
    )
}

/// Plays a scenario text into `out` and returns its run directory.
pub fn play(text: &str, out: &Path, level: TelemetryLevel, extend: Extension) -> PathBuf {
    let input = Input {
        label: "test",
        text,
        overrides: &[],
    };
    let loaded = scenario::load(&input, &Catalog::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let mut plan = RunPlan::new(loaded, text);
    plan.scenario.telemetry.level = level;
    plan.out = Some(out.into());
    plan.extend = extend;
    let report = run(&plan).expect("the plan is sound");
    assert!(report.failure.is_none(), "{:?}", report.failure);
    report.record.expect("the run was recorded").directory
}

/// All lines of `events.jsonl`, the header among them.
pub fn lines(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).expect("events.jsonl exists");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}
