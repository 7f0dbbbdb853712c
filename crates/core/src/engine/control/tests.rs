use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::host::Conv;
use crate::prelude::*;

static ROUND_ENDS: AtomicUsize = AtomicUsize::new(0);

fn own_host(classes: i64) -> HostPlan {
    HostPlan::new(1, 8)
        .layer("stem", Conv::new(4, 3))
        .slot(0, 0)
        .head(classes)
}

fn count_round() {
    ROUND_ENDS.fetch_add(1, Ordering::Relaxed);
}

/// A host of the application's, which the control needs too, and a system, which it must not call.
fn extend(app: &mut App) {
    app.add_systems(RoundEnd, count_round.in_set(EngineSet::Record));
    let mut hosts = app.world_mut().resource_mut::<HostRegistry>();
    hosts.register("own", "one convolution", Arc::new(own_host));
}

const SCENARIO: &str = r#"(
    name: "own",
    task: preset("digits_baseline", (batches_per_step: count(1), host: named("own"), slots: ["r0c0"])),
    run: (rounds: 2, n_envs: 1, max_steps: 3),
    policy: (controller: "schedule", schedule: (entries: [
        (step: 1, command: germinate(slot: "r0c0", blueprint: "norm", style: "linear_add", tempo: "fast", target: "full")),
    ])),
)"#;

#[test]
fn systems_of_an_application_see_the_rounds_of_the_run_alone_and_its_host_is_known_to_the_control() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let builder = Engine::builder().with(extend).threads(1).recorded(folder.path());

    let mut engine = builder.from_ron(SCENARIO).unwrap_or_else(|refused| panic!("{refused}"));
    let report = engine.play();

    assert!(report.failure.is_none(), "{:?}", report.failure);
    let run = report.record.expect("it was recorded").directory;
    let events = std::fs::read_to_string(run.join("events.jsonl")).expect("it has events");
    let events = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let measured = events.filter(|event| event["type"] == "baseline_measured").count();
    assert_eq!((measured, ROUND_ENDS.load(Ordering::Relaxed)), (1, 2));
}
