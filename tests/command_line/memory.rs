//! What a dry run says of memory, held against what the run then takes.
#![cfg(target_os = "linux")]

use serde_json::Value;

use crate::program::{command, engine_at, folder, json, peak_memory, succeeds, write};

/// Images as large as those of CIFAR in batches of 512, with seeds in all slots.
const WIDE: &str = r#"(
    task: preset("synth_baseline", (
        batch_size: 512, batches_per_step: count(2), val_batch_size: 512, val_batches_per_step: count(1),
        data: synth_images((train: 2048, val: 512, test: 512)),
    )),
    run: (rounds: 1, n_envs: 2, max_steps: 16), policy: (controller: "periodic"),
)"#;

/// The sum of the table that a dry run prints.
fn total(preview: &Value) -> u64 {
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

#[test]
#[ignore = "long tier"]
fn a_run_with_seeds_takes_no_more_memory_than_was_reckoned_and_not_much_less() {
    let folder = folder();
    write(&folder.path().join("wide.ron"), WIDE);
    let preview = engine_at(folder.path(), "run wide.ron --dry-run --json --threads 2");
    let estimate = total(&json(&succeeds(&preview)));

    let mut run = command("run wide.ron --quiet --progress none --threads 2");
    let peak = peak_memory(run.current_dir(folder.path()));

    assert!(peak <= estimate, "{peak} bytes, reckoned {estimate}");
    assert!(peak >= estimate / 3, "{peak} bytes, reckoned {estimate}");
}
