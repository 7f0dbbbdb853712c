use std::path::PathBuf;
use std::sync::Mutex;

use super::*;
use crate::scenario::TelemetryConfig;
use crate::telemetry::examples;

type Seen = Arc<Mutex<Vec<Arc<Event>>>>;

/// Remembers what it was given; can be slow, broken, or stuck.
struct Probe {
    class: SinkClass,
    delay: Duration,
    fails: bool,
    fails_to_start: bool,
    seen: Seen,
}

fn probe(class: SinkClass) -> (Probe, Seen) {
    let seen = Seen::default();
    let probe = Probe {
        class,
        delay: Duration::ZERO,
        fails: false,
        fails_to_start: false,
        seen: Arc::clone(&seen),
    };
    (probe, seen)
}

impl Sink for Probe {
    fn name(&self) -> &str {
        "probe"
    }

    fn class(&self) -> SinkClass {
        self.class
    }

    fn start(&mut self, _run: &RunInfo) -> Result<(), SinkError> {
        if self.fails_to_start {
            return Err(SinkError::Other("no room".into()));
        }
        Ok(())
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        if self.fails {
            return Err(SinkError::Other("disk on fire".into()));
        }
        std::thread::sleep(self.delay * events.len() as u32);
        self.seen.lock().unwrap().extend_from_slice(events);
        Ok(())
    }
}

fn hub_with(sinks: Vec<Probe>) -> TelemetryHub {
    let sinks = sinks.into_iter().map(|sink| Box::new(sink) as Box<dyn Sink>).collect();
    TelemetryHub::start(&run_info(), sinks).unwrap()
}

fn run_info() -> RunInfo {
    RunInfo {
        run_id: "test".into(),
        directory: PathBuf::new(),
        earlier: None,
    }
}

fn complete(hub: &mut TelemetryHub) -> Vec<String> {
    hub.finish(RunState::Completed, None)
}

fn outbox() -> TelemetryOutbox {
    TelemetryOutbox::new(&TelemetryConfig::default())
}

fn kinds(seen: &Seen) -> Vec<&'static str> {
    let events = seen.lock().unwrap();
    events.iter().map(|event| event.payload.kind()).collect()
}

/// One flush with one step row and one lifecycle event.
fn flush_step(hub: &mut TelemetryHub, outbox: &mut TelemetryOutbox, step: u32) {
    let context = examples::context_at(0, 0, step);
    outbox.push(Event::env(context, examples::env_step()));
    outbox.push(Event::env(context, examples::host_stabilized()));
    hub.flush(outbox);
}

/// P10.
#[test]
fn a_flush_orders_by_scope_then_production_and_numbers_without_gaps() {
    let (sink, seen) = probe(SinkClass::Durable);
    let (mut hub, mut outbox) = (hub_with(vec![sink]), outbox());

    outbox.push(Event::env(examples::context_at(1, 0, 1), examples::env_step()));
    outbox.push(Event::env(examples::context_at(0, 0, 1), examples::env_step()));
    outbox.push(Event::env(examples::context_at(0, 0, 1), examples::decision()));
    outbox.push(Event::run(examples::note()));
    hub.flush(&mut outbox);
    complete(&mut hub);

    let seen = seen.lock().unwrap();
    let order: Vec<_> = seen
        .iter()
        .map(|event| (event.seq, event.payload.kind(), event.env))
        .collect();
    assert_eq!(
        order,
        [
            (0, "note", None),
            (1, "env_step", Some(0)),
            (2, "decision", Some(0)),
            (3, "env_step", Some(1)),
            (4, "run_finished", None),
        ]
    );
    assert!(seen.iter().all(|event| event.t > Timestamp::EPOCH));
}

#[test]
fn the_health_of_the_sinks_follows_every_round() {
    let (sink, seen) = probe(SinkClass::Durable);
    let (mut hub, mut outbox) = (hub_with(vec![sink]), outbox());

    outbox.push(Event::round(0, examples::round_finished()));
    hub.flush(&mut outbox);
    complete(&mut hub);

    assert_eq!(kinds(&seen), ["round_finished", "telemetry_health", "run_finished"]);
}

#[test]
fn a_slow_durable_sink_loses_nothing_and_the_wait_is_counted() {
    let (mut sink, seen) = probe(SinkClass::Durable);
    sink.delay = Duration::from_millis(1);
    let mut hub = hub_with(vec![]);
    hub.lanes.push(Lane::open(Box::new(sink), 2).unwrap());
    let mut outbox = outbox();

    for step in 1..=20 {
        flush_step(&mut hub, &mut outbox, step);
    }
    let cost = hub.take_cost();
    let failed_durable = complete(&mut hub);

    assert_eq!(kinds(&seen).len(), 41);
    assert_eq!(hub.health().dropped(), 0);
    assert!(hub.health().sinks[0].blocked_ms.0 > 0.0);
    assert!(cost.blocked > Duration::ZERO && cost.telemetry >= cost.blocked);
    assert!(failed_durable.is_empty());
}

#[test]
fn a_slow_live_sink_misses_step_rows_only() {
    let (mut sink, seen) = probe(SinkClass::Live);
    sink.delay = Duration::from_millis(5);
    let mut hub = hub_with(vec![]);
    hub.lanes.push(Lane::open(Box::new(sink), 2).unwrap());
    let mut outbox = outbox();

    for step in 1..=20 {
        flush_step(&mut hub, &mut outbox, step);
    }
    complete(&mut hub);

    let kinds = kinds(&seen);
    let count = |kind| kinds.iter().filter(|seen| **seen == kind).count() as u64;
    assert_eq!(count("host_stabilized"), 20);
    assert_eq!(count("env_step") + hub.health().dropped(), 20);
    assert!(hub.health().dropped() > 0);
    assert!(count("telemetry_health") > 0, "a loss is announced at once");
}

#[test]
fn a_failing_durable_sink_is_reported_to_the_others_and_at_the_end() {
    let (mut broken, _) = probe(SinkClass::Durable);
    broken.fails = true;
    let (sound, seen) = probe(SinkClass::Durable);
    let (mut hub, mut outbox) = (hub_with(vec![broken, sound]), outbox());

    flush_step(&mut hub, &mut outbox, 1);
    while hub.lanes[0].queue.tally().last_error.is_none() {
        std::thread::yield_now();
    }
    flush_step(&mut hub, &mut outbox, 2);
    let failed_durable = complete(&mut hub);

    assert_eq!(failed_durable, ["probe"]);
    let errors = &hub.health().sinks[0];
    assert_eq!(errors.errors, 2, "one retry");
    assert_eq!(errors.last_error.as_deref(), Some("disk on fire"));
    let kinds = kinds(&seen);
    assert!(kinds.contains(&"telemetry_health"));
    assert_eq!(kinds.last(), Some(&"run_finished"));
}

#[test]
fn a_stuck_sink_does_not_hold_up_the_end_for_ever() {
    let (mut sink, _) = probe(SinkClass::Durable);
    sink.delay = Duration::from_secs(5);
    let (mut hub, mut outbox) = (hub_with(vec![sink]), outbox());
    hub.shutdown_patience = Duration::from_millis(20);

    flush_step(&mut hub, &mut outbox, 1);
    let failed_durable = complete(&mut hub);

    assert_eq!(failed_durable, ["probe"]);
    assert!(
        hub.health().sinks[0]
            .last_error
            .as_deref()
            .unwrap()
            .contains("did not finish")
    );
}

#[test]
fn a_sink_that_cannot_start_stops_the_run_by_name() {
    let (mut sink, _) = probe(SinkClass::Durable);
    sink.fails_to_start = true;

    let error = TelemetryHub::start(&run_info(), vec![Box::new(sink)]).err().unwrap();

    assert_eq!(error.to_string(), "telemetry sink `probe` could not start: no room");
}

#[test]
fn an_abandoned_run_still_writes_its_end() {
    let (sink, seen) = probe(SinkClass::Durable);
    let hub = hub_with(vec![sink]);

    drop(hub);

    let seen = seen.lock().unwrap();
    let Payload::RunFinished(finished) = &seen[0].payload else {
        panic!("{seen:?}");
    };
    assert_eq!(finished.status, RunState::Failed);
    assert!(finished.error.is_some());
}

#[test]
fn finishing_twice_writes_one_end_and_late_events_are_refused() {
    let (sink, seen) = probe(SinkClass::Durable);
    let (mut hub, mut outbox) = (hub_with(vec![sink]), outbox());

    let first = (complete(&mut hub), hub.health());
    flush_step(&mut hub, &mut outbox, 1);
    let second = (complete(&mut hub), hub.health());

    assert_eq!(first, second);
    assert_eq!(hub.late_events, 2);
    assert_eq!(kinds(&seen), ["run_finished"]);
}
