use super::*;
use crate::telemetry::{Payload, examples};

fn kept(level: TelemetryLevel) -> Vec<&'static str> {
    let mut outbox = TelemetryOutbox::new(&TelemetryConfig {
        level,
        ..TelemetryConfig::default()
    });
    outbox.extend(examples::events());
    outbox.drain().map(|event| event.payload.kind()).collect()
}

#[test]
fn the_level_decides_what_is_kept() {
    assert_eq!(kept(TelemetryLevel::Off), ["run_started", "run_finished"]);
    assert!(kept(TelemetryLevel::Lifecycle).contains(&"seed_germinated"));
    assert!(!kept(TelemetryLevel::Lifecycle).contains(&"env_step"));
    assert!(kept(TelemetryLevel::Lifecycle).contains(&"governor_rollback"));
    assert_eq!(kept(TelemetryLevel::Full), Payload::KINDS);
}

#[test]
fn a_stride_thins_step_rows_and_nothing_else() {
    let mut outbox = TelemetryOutbox::new(&TelemetryConfig {
        step_stride: 3,
        ..TelemetryConfig::default()
    });

    for step in 1..=7 {
        let context = examples::context_at(0, 0, step);
        outbox.push(Event::env(context, examples::env_step()));
        outbox.push(Event::env(context, examples::host_stabilized()));
    }

    let (rows, others): (Vec<_>, Vec<_>) = outbox.drain().partition(|event| event.payload.is_step_row());
    let steps: Vec<_> = rows.iter().filter_map(|event| event.step).collect();
    assert_eq!(steps, [1, 4, 7]);
    assert_eq!(others.len(), 7);
}
