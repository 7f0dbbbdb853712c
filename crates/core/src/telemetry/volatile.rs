//! Fields and events that may differ between two runs with one seed: clocks, sizes, and the events about them.

use serde_json::Value;

use super::detect::is_about_the_machine;

/// Envelope and header fields that differ by nature: order replaces `seq`.
const FIELDS: [&str; 3] = ["t", "seq", "run_id"];
/// Fields that depend on the speed of sinks, and on times and numbers of events.
const OF_RECORD: [&str; 3] = ["dropped_events", "recorded", "file_hashes"];
/// Endings that mark a field as measured in time or memory.
const SUFFIXES: [&str; 5] = ["_ms", "_s", "_per_s", "_per_hour", "_bytes"];
/// Fields of curves and checkpoints: time, numbers of events, and what their lines were.
const KEPT: [&str; 3] = ["run_id", "seconds", "next_seq"];
/// Events that are about the machine and about interruptions, not about the experiment; so are anomalies of speed and memory.
const EVENTS: [&str; 2] = ["checkpoint_saved", "checkpoint_loaded"];

/// The part of an event (or header) line that must reproduce under a fixed seed; `None` if the whole event is volatile.
///
/// Two runs are equal if the lines that remain are, in order:
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use serde_json::json;
/// use simic_engine::extend::strip_volatile;
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
    let is_of_command = !event["data"]["command"].is_null() && kind == Some("note");
    let is_of_machine = event["data"]["rule"].as_str().is_some_and(is_about_the_machine);
    let is_left_out = is_of_command || is_of_machine || kind.is_some_and(|kind| EVENTS.contains(&kind));
    if is_left_out || opens_a_resumed_part(event) {
        return None;
    }
    let mut event = event.clone();
    if let Value::Object(fields) = &mut event {
        fields.retain(|key, _| !FIELDS.contains(&key.as_str()));
        remove_measured(&mut event);
    }
    // Words for people, which a later build may choose otherwise.
    if let Some(Value::Object(dataset)) = event.pointer_mut("/data/dataset") {
        dataset.remove("notes");
    }
    Some(event)
}

/// The second header of a file and the second start of a run: an uninterrupted run has neither.
fn opens_a_resumed_part(event: &Value) -> bool {
    event["resumed"] == true || !event["data"]["resumed_from"].is_null()
}

/// Returns whether a field of a curve or a checkpoint may differ between two runs with one seed.
pub fn is_volatile(field: &str) -> bool {
    KEPT.contains(&field) || is_measured(field)
}

fn is_measured(field: &str) -> bool {
    OF_RECORD.contains(&field) || SUFFIXES.iter().any(|suffix| field.ends_with(suffix))
}

/// Removes measurements of time or memory, at every depth.
fn remove_measured(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !is_measured(key));
            fields.values_mut().for_each(remove_measured);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_measured),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
