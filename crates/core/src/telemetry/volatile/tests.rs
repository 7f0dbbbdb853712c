use serde_json::json;

use super::*;

#[test]
fn clocks_sizes_and_sequence_numbers_go_at_every_depth() {
    let event = json!({
        "seq": 3, "t": "now", "type": "round_finished", "round": 0,
        "data": {
            "accuracy_mean": 51.5, "eta_s": 4.0,
            "rows": [{"total_ms": 1.0, "mask": 3}, {"mask": 1}],
            "perf": {"env_steps_per_s": 2.0, "rounds_per_hour": 9.0, "used_bytes": 7, "waits": 8},
        },
    });

    assert_eq!(
        strip_volatile(&event),
        Some(json!({
            "type": "round_finished", "round": 0,
            "data": {"accuracy_mean": 51.5, "rows": [{"mask": 3}, {"mask": 1}], "perf": {"waits": 8}},
        }))
    );
}

#[test]
fn remarks_of_people_are_compared() {
    let note = json!({"type": "note", "data": {"text": "a remark"}});

    assert_eq!(strip_volatile(&note), Some(note));
}

#[test]
fn the_header_loses_its_run_id_only() {
    let header = json!({"type": "header", "schema": "simic.telemetry", "run_id": "a"});

    assert_eq!(
        strip_volatile(&header),
        Some(json!({"type": "header", "schema": "simic.telemetry"}))
    );
}

#[test]
fn what_slow_live_sinks_dropped_is_no_part_of_the_experiment() {
    let finished = json!({"type": "run_finished", "data": {"rounds_done": 2, "dropped_events": 17}});

    assert_eq!(
        strip_volatile(&finished),
        Some(json!({"type": "run_finished", "data": {"rounds_done": 2}}))
    );
}

#[test]
fn events_about_the_machine_go_whole() {
    assert_eq!(strip_volatile(&json!({"type": "checkpoint_saved"})), None);
}

#[test]
fn what_an_interruption_adds_to_a_record_goes_whole() {
    let added = [
        json!({"type": "header", "resumed": true}),
        json!({"type": "checkpoint_loaded", "data": {}}),
        json!({"type": "run_started", "data": {"resumed_from": "checkpoints/round-000002"}}),
        json!({"type": "note", "data": {"text": "paused by a command", "command": "pause"}}),
    ];

    assert_eq!(added.each_ref().map(strip_volatile), [None, None, None, None]);
}
