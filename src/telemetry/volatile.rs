//! What may differ between two runs with one seed (spec 07 §4.4): clocks, sizes, and the events about them.

use serde_json::{Map, Value};

/// Envelope and header fields that differ by nature; order stands in for `seq`.
const FIELDS: [&str; 3] = ["t", "seq", "run_id"];
/// A count that depends on how fast live sinks were read.
const DROPPED: &str = "dropped_events";
/// Endings that mark a field as measured in time or memory.
const SUFFIXES: [&str; 6] = ["_ms", "_us_p50", "_s", "_per_s", "_per_hour", "_bytes"];
/// Events that are about the machine and about interruptions, not about the experiment.
const EVENTS: [&str; 6] = [
    "system_sample",
    "phase_profile",
    "device_memory",
    "telemetry_health",
    "checkpoint_saved",
    "checkpoint_loaded",
];

/// What of one event (or header) line must reproduce under a fixed seed; `None` if the whole event is volatile.
///
/// Two runs are equal if the lines that remain are, in order:
///
/// ```
/// use serde_json::json;
/// use simic_engine::telemetry::strip_volatile;
///
/// let event = json!({"seq": 7, "t": "2026-01-01T00:00:00.000Z", "type": "round_finished",
///                    "data": {"accuracy_mean": 50.0, "perf": {"samples": 64, "round_wall_s": 1.5}}});
/// assert_eq!(
///     strip_volatile(&event),
///     Some(json!({"type": "round_finished", "data": {"accuracy_mean": 50.0, "perf": {"samples": 64}}})),
/// );
/// ```
pub fn strip_volatile(event: &Value) -> Option<Value> {
    let kind = event.get("type").and_then(Value::as_str);
    if kind.is_some_and(|kind| EVENTS.contains(&kind)) || opens_a_resumed_part(event) {
        return None;
    }
    match event {
        Value::Object(fields) => Some(Value::Object(
            fields
                .iter()
                .filter(|(key, _)| !FIELDS.contains(&key.as_str()))
                .filter_map(|(key, value)| keep(key, value))
                .collect(),
        )),
        other => Some(other.clone()),
    }
}

/// The second header of a file and the second start of a run: an uninterrupted run has neither.
fn opens_a_resumed_part(event: &Value) -> bool {
    event["resumed"] == true || !event["data"]["resumed_from"].is_null()
}

fn keep(key: &str, value: &Value) -> Option<(String, Value)> {
    let is_volatile = key == DROPPED || SUFFIXES.iter().any(|suffix| key.ends_with(suffix));
    (!is_volatile).then(|| (key.to_owned(), reproducible(value)))
}

fn reproducible(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter_map(|(key, value)| keep(key, value))
                .collect::<Map<_, _>>(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(reproducible).collect()),
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clocks_sizes_and_sequence_numbers_go_at_every_depth() {
        let event = json!({
            "seq": 3, "t": "now", "type": "round_finished", "round": 0,
            "data": {
                "accuracy_mean": 51.5, "eta_s": 4.0,
                "rows": [{"total_ms": 1.0, "mask": 3}, {"mask": 1}],
                "learner_step_us_p50": 9.0,
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
        assert_eq!(strip_volatile(&json!({"type": "telemetry_health"})), None);
    }

    #[test]
    fn what_an_interruption_adds_to_a_record_goes_whole() {
        let added = [
            json!({"type": "header", "resumed": true}),
            json!({"type": "checkpoint_loaded", "data": {}}),
            json!({"type": "run_started", "data": {"resumed_from": "checkpoints/round-000002"}}),
        ];

        assert_eq!(added.each_ref().map(strip_volatile), [None, None, None]);
    }
}
