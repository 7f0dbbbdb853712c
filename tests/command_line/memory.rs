//! Memory as a dry run estimates it, held against the memory that the run takes.
#![cfg(target_os = "linux")]

use crate::program::{command, engine_at, folder, json, peak_memory, succeeds, write};

/// Images as large as those of CIFAR in batches of 512, with seeds in all slots.
const WIDE: &str = r#"(
    task: preset("synth_baseline", (
        batch_size: 512, batches_per_step: count(2), val_batch_size: 512, val_batches_per_step: count(1),
        data: synth_images((train: 2048, val: 512, test: 512)),
    )),
    run: (rounds: 1, n_envs: 2, max_steps: 16), policy: (controller: "periodic"),
)"#;

#[test]
#[ignore = "long tier"]
fn a_run_with_seeds_takes_no_more_memory_than_was_reckoned_and_not_much_less() {
    let folder = folder();
    write(&folder.path().join("wide.ron"), WIDE);
    let preview = engine_at(folder.path(), "run wide.ron --dry-run --json --threads 2");
    let estimate = json(&succeeds(&preview))["memory"][0]["bytes"]
        .as_u64()
        .expect("a number");

    let mut run = command("run wide.ron --quiet --progress none --threads 2");
    let peak = peak_memory(run.current_dir(folder.path()));

    assert!(peak <= estimate, "{peak} bytes, reckoned {estimate}");
    assert!(peak >= estimate / 3, "{peak} bytes, reckoned {estimate}");
}
