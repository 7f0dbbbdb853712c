use std::collections::BTreeSet;

use super::*;
use crate::telemetry::examples;

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
fn a_failed_run_is_an_error_and_a_flipped_gate_is_worth_knowing() {
    let mut finished = examples::run_finished();
    assert_eq!(Event::run(finished.clone()).severity, Severity::Info);
    finished.status = RunState::Failed;
    assert_eq!(Event::run(finished).severity, Severity::Error);

    let gate = Event::env(examples::context(), examples::gate_evaluated());
    assert_eq!(gate.severity, Severity::Debug);
    assert_eq!(gate.severity(Severity::Info).severity, Severity::Info);
}
