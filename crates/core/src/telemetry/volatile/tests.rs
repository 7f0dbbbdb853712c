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
fn a_header_loses_its_run_id_an_end_what_slow_sinks_dropped_and_a_remark_nothing() {
    let remark = json!({"type": "note", "data": {"text": "a remark"}});
    for (event, stripped) in [
        (
            json!({"type": "header", "schema": 1, "run_id": "a"}),
            json!({"type": "header", "schema": 1}),
        ),
        (
            json!({"type": "run_finished", "data": {"rounds_done": 2, "dropped_events": 17}}),
            json!({"type": "run_finished", "data": {"rounds_done": 2}}),
        ),
        (remark.clone(), remark),
    ] {
        assert_eq!(strip_volatile(&event), Some(stripped));
    }
}

#[test]
fn events_about_the_machine_and_what_an_interruption_adds_to_a_record_go_whole() {
    for event in [
        json!({"type": "checkpoint_saved"}),
        json!({"type": "header", "resumed": true}),
        json!({"type": "checkpoint_loaded", "data": {}}),
        json!({"type": "run_started", "data": {"resumed_from": "checkpoints/round-000002"}}),
        json!({"type": "note", "data": {"text": "paused by a command", "command": "pause"}}),
    ] {
        assert_eq!(strip_volatile(&event), None, "{event}");
    }
}
