use std::collections::BTreeSet;

use super::*;
use crate::telemetry::{examples, strip_volatile};

#[test]
fn every_kind_of_event_has_an_example() {
    let shown: BTreeSet<_> = examples::events().iter().map(|event| event.payload.kind()).collect();

    assert_eq!(shown, Payload::KINDS.iter().copied().collect());
}

#[test]
fn every_kind_of_event_keeps_its_wire_format_without_null_and_reads_back_to_itself() {
    let lines: Vec<&str> = examples::LINES.lines().collect();
    let events = examples::events();

    assert_eq!(events.len(), lines.len());
    for (event, line) in events.iter().zip(lines) {
        assert_eq!(serde_json::to_string(event).unwrap(), line);
        assert!(!line.contains("null"), "{line}");
        assert_eq!(&serde_json::from_str::<Event>(line).unwrap(), event, "{line}");
    }
}

#[test]
fn events_of_schema_2_are_read_as_what_they_are_called_now() {
    let old = include_str!("../examples/schema_2.jsonl");
    for line in old.lines() {
        let event: Event = serde_json::from_str(line).unwrap();
        let is_same = |present: &Event| present.payload.kind() == event.payload.kind();
        let mut present = examples::events().into_iter().find(is_same);
        if let Some(Payload::RoundFinished(round)) = present.as_mut().map(|event| &mut event.payload) {
            // Not measured then.
            (round.perf.phases_ms, round.perf.copy_ms) = (None, None);
        }
        assert_eq!(Some(event), present, "{line}");

        let old = strip_volatile(&serde_json::from_str(line).unwrap()).unwrap();
        let present = strip_volatile(&serde_json::to_value(&present).unwrap()).unwrap();
        // What is no longer recorded is passed over.
        for (field, value) in present["data"].as_object().unwrap() {
            assert_eq!(old["data"].get(field), Some(value), "{field}: {line}");
        }
    }
    assert_eq!(old.lines().count(), 8);
}

#[test]
fn what_a_plugin_wrote_keeps_its_names() {
    let line =
        r#"{"seq":0,"t":"1970-01-01T00:00:00.000Z","type":"user_event","data":{"name":"x","fields":{"age_epochs":1}}}"#;

    let event: Event = serde_json::from_str(line).unwrap();

    assert!(serde_json::to_string(&event).unwrap().contains("\"age_epochs\":1"));
}

#[test]
fn levels_are_those_of_the_catalogue() {
    let at = |level| -> Vec<&str> {
        let events = examples::events().into_iter().map(|event| event.payload);
        let of_level = events.filter(|payload| payload.level() == level);
        of_level.map(|payload| payload.kind()).collect()
    };

    assert_eq!(at(TelemetryLevel::Off), ["run_started", "run_finished"]);
    let full = ["user_event", "env_step", "decision", "counterfactual_matrix", "shapley"];
    assert_eq!(at(TelemetryLevel::Full), full);
}

#[test]
fn a_failed_run_is_an_error_and_a_flipped_gate_is_worth_knowing() {
    let mut finished = examples::run_finished();
    assert_eq!(Event::run(finished.clone()).severity, Severity::Info);
    finished.status = RunState::Failed;
    assert_eq!(Event::run(finished).severity, Severity::Error);

    let gate = Event::env(examples::context(), examples::gate_evaluated());
    assert_eq!(gate.severity, Severity::Debug);
    assert_eq!(gate.severity(Severity::Info).severity, Severity::Info);
}
