//! Runs with a record, played in this process, with something added to them.

use std::path::Path;

use simic_engine::run::{Extension, RunPlan, RunReport, run};
use simic_engine::scenario::{self, Catalog, Input};

/// Plays `scenario` with what `extend` adds; its folder goes into `out`.
pub fn play(scenario: &str, out: &Path, extend: Extension) -> RunReport {
    let input = Input {
        label: "test",
        text: scenario,
        overrides: &[],
    };
    let loaded = scenario::load(&input, &Catalog::default()).expect("the scenario is sound");
    let mut plan = RunPlan::new(loaded, scenario);
    plan.out = Some(out.into());
    plan.threads = 2;
    plan.extend = extend;
    run(&plan).expect("the run begins")
}
