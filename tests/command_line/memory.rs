//! What a dry run says of memory, held against what the run then takes.
#![cfg(target_os = "linux")]

use std::path::Path;

use serde_json::Value;

use crate::program::{command, peak_memory, succeeds};

/// Images as large as those of CIFAR in batches of 512, with seeds in all slots.
const WIDE: &str = r#"(
    task: preset("synth_baseline", (
        batch_size: 512, batches_per_step: count(2), val_batch_size: 512, val_batches_per_step: count(1),
        data: synth_images((train: 2048, val: 512, test: 512)),
    )),
    run: (rounds: 1, n_envs: 2, max_steps: 16), policy: (controller: "periodic"),
)"#;

const WORKERS: [&str; 2] = ["--threads", "2"];

/// The sum of the table that a dry run prints.
fn estimate(scenario: &Path) -> u64 {
    let mut preview = command(&["run", "--dry-run", "--json"]);
    let output = preview.arg(scenario).args(WORKERS).output().expect("it starts");
    let preview: Value = serde_json::from_str(&succeeds(&output)).expect("JSON");
    let place = &preview["memory"]["places"][0];
    let number = |value: &Value| value.as_u64().expect("a number");
    let needs = place["needs"].as_array().expect("a list").iter();
    needs
        .map(|need| {
            let of_envs = number(&need["per_env"]) * number(&place["envs"]);
            let of_workers = number(&need["per_worker"]) * number(&place["workers"]);
            number(&need["fixed"]) + of_envs + of_workers
        })
        .sum()
}

/// The largest number of bytes that a run of the scenario had in memory.
fn peak(scenario: &Path, out: &Path) -> u64 {
    let mut run = command(&["run", "--quiet", "--progress", "none", "--out"]);
    peak_memory(run.arg(out).arg(scenario).args(WORKERS))
}

#[test]
fn a_run_with_seeds_takes_no_more_memory_than_was_reckoned_and_not_much_less() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("wide.ron");
    std::fs::write(&scenario, WIDE).expect("it is written");

    let estimate = estimate(&scenario);
    let peak = peak(&scenario, folder.path());

    assert!(peak <= estimate, "{peak} bytes, reckoned {estimate}");
    assert!(peak >= estimate / 3, "{peak} bytes, reckoned {estimate}");
}
