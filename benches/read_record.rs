//! The time from the record of a run to the state of a view: 20 MB of it, with lines of the kinds and proportions of runs.
//!
//! A record of 1 GB takes fifty times as long.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use simic_engine::internals::report::Feed;
use simic_engine::prelude::*;

#[path = "support/timed.rs"]
mod timed;

const BYTES: usize = 20 << 20;

/// Plays a run and repeats the events of its rounds, with rounds counted on, until there are enough.
fn write_record(folder: &Path) {
    let scenario = r#"(
        name: "bench",
        task: preset("digits_minimal", (batches_per_step: count(2))),
        run: (rounds: 2, n_envs: 4, max_steps: 40, keep: none),
        policy: (controller: "actor_critic", net_cfg: (op_bias: (germinate: 4.0))),
        lifecycle: (auto_forward: true, gates: (min_training_steps: 1, min_gradient_health: 0.0)),
    )"#;
    let runs = folder.join("runs");
    let engine = Engine::builder().recorded(&runs).from_ron(scenario);
    engine.expect("the scenario is valid").run().expect("it plays");
    let name = fs::read_to_string(runs.join("latest")).expect("it is recorded");
    let events = fs::read_to_string(runs.join(name.trim()).join("events.jsonl")).expect("it is recorded");
    let rounds: Vec<&str> = events.lines().filter(|line| line.contains("\"round\":1,")).collect();
    let mut record: String = events.lines().take(2).map(|line| format!("{line}\n")).collect();
    for round in 1.. {
        for line in &rounds {
            record.push_str(&line.replacen("\"round\":1,", &format!("\"round\":{round},"), 1));
            record.push('\n');
        }
        if record.len() > BYTES {
            break;
        }
    }
    fs::write(folder.join("events.jsonl"), &record).expect("it is written");
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    write_record(folder.path());
    timed::report("view_state", 1, || {
        let began = Instant::now();
        let mut feed = Feed::new(folder.path());
        feed.poll().expect("it is whole");
        black_box(feed.state.live.rounds.len());
        began.elapsed()
    });
}
