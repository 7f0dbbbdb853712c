//! Checkpoints inside a round: when they are written, and what stays of them.

use std::path::{Path, PathBuf};

use serde_json::json;
use simic_engine::internals::checkpoint::{CheckpointId, Checkpoints};
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, directory, events, stops_after};
use crate::support::builder;

const STEPS: u32 = 8;

/// Rollbacks, and seeds that come and go.
pub fn scenario(intervals: &str) -> String {
    format!(
        r#"(
            name: "inside",
            preset: "manual", task: preset("digits_impaired", (batches_per_step: count(2), val_batches_per_step: count(1))),
            run: (rounds: 2, n_envs: 3, max_steps: {STEPS}, {intervals}),
            policy: (controller: "random"),
            initial_topology: seeds([(slot: "r0c1", blueprint: "conv_light")]),
            lifecycle: (auto_forward: true, gates: (min_training_steps: 1)),
            faults: [
                (env: 1, round: 1, step: 3, fault: nan_weight),
                (env: 2, round: 1, step: 4, fault: nan_weight),
            ],
        )"#
    )
}

/// The run with what `extend` adds, asked to stop after a step of the second round.
pub fn stopped_after(step: u32, scenario: &str, extend: fn(&mut App), out: &Path) -> PathBuf {
    let stop = move |app: &mut App| {
        app.add_systems(StepEnd, stops_after(1, step).before(EngineSet::Checkpoint));
    };
    let engine = builder().with((extend, stop)).threads(2).recorded(out);
    directory(&engine.from_ron(scenario).expect("the scenario is sound").play())
}

#[test]
fn one_is_written_every_n_steps_and_stays_until_the_next_of_any_kind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = scenario("checkpoint_every_steps: Some(3)");

    let run = stopped_after(5, &scenario, NOTHING, folder.path());

    let saved = events(&run, "checkpoint_saved").into_iter();
    let saved = saved.map(|line| json!([line["data"]["round"], line["data"]["step"]]));
    let saved: Vec<_> = saved.collect();
    let expected = json!([[0, null], [0, 3], [0, 6], [1, null], [1, 3], [1, 5]]);
    assert_eq!(json!(saved), expected);
    let ids = Checkpoints::of(&run).ids();
    let expected = [
        CheckpointId { round: 1, step: 5 },
        CheckpointId::before(1),
        CheckpointId::before(0),
    ];
    assert_eq!(ids, expected);
}
