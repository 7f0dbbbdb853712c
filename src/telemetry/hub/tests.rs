use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::scenario::TelemetryConfig;
use crate::telemetry::{Earlier, examples};

/// As scenarios have it.
const PATIENCE: Duration = Duration::from_secs(5);

type Seen = Arc<Mutex<Vec<Arc<Event>>>>;

/// Remembers what it was given; can be slow, broken, or stuck.
struct Probe {
    class: SinkClass,
    delay: Duration,
    /// Calls that will fail.
    failures: Arc<AtomicU32>,
    fails_to_start: bool,
    seen: Seen,
}

fn probe(class: SinkClass) -> (Probe, Seen) {
    let seen = Seen::default();
    let probe = Probe {
        class,
        delay: Duration::ZERO,
        failures: Arc::default(),
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
        let take_one = |left: u32| left.checked_sub(1);
        if self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take_one)
            .is_ok()
        {
            return Err(SinkError::Other("disk on fire".into()));
        }
        std::thread::sleep(self.delay * events.len() as u32);
        self.seen.lock().unwrap().extend_from_slice(events);
        Ok(())
    }
}

/// A hub that waits for no outage.
fn hub_with(sinks: Vec<Probe>) -> TelemetryHub {
    let mut hub = TelemetryHub::start(&run_info(), Vec::new(), PATIENCE).unwrap();
    for sink in sinks {
        let lane = Lane::open(Box::new(sink), QUEUE_CAPACITY, Duration::ZERO);
        hub.lanes.push(lane.unwrap());
    }
    hub
}

fn run_info() -> RunInfo {
    RunInfo {
        run_id: "test".into(),
        directory: PathBuf::new(),
        earlier: None,
    }
}

fn complete(hub: &mut TelemetryHub) -> Vec<RecordGap> {
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
    hub.lanes.push(Lane::open(Box::new(sink), 2, Duration::ZERO).unwrap());
    let mut outbox = outbox();

    for step in 1..=20 {
        flush_step(&mut hub, &mut outbox, step);
    }
    let cost = hub.take_cost();
    let gaps = complete(&mut hub);

    assert_eq!(kinds(&seen).len(), 41);
    assert_eq!(hub.health().dropped(), 0);
    assert!(hub.health().sinks[0].blocked_ms.0 > 0.0);
    assert!(cost.blocked > Duration::ZERO && cost.telemetry >= cost.blocked);
    assert!(gaps.is_empty());
}

#[test]
fn a_slow_live_sink_misses_step_rows_only() {
    let (mut sink, seen) = probe(SinkClass::Live);
    sink.delay = Duration::from_millis(5);
    let mut hub = hub_with(vec![]);
    hub.lanes.push(Lane::open(Box::new(sink), 2, Duration::ZERO).unwrap());
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

/// Waits until the first lane has failed and been told so.
fn await_failure(hub: &TelemetryHub) {
    while !hub.lanes[0].queue.health().failing {
        std::thread::yield_now();
    }
}

#[test]
fn a_durable_sink_that_fails_to_the_end_is_reported_to_the_others_and_then() {
    let (broken, _) = probe(SinkClass::Durable);
    broken.failures.store(u32::MAX, Ordering::SeqCst);
    let (sound, seen) = probe(SinkClass::Durable);
    let (mut hub, mut outbox) = (hub_with(vec![broken, sound]), outbox());

    flush_step(&mut hub, &mut outbox, 1);
    await_failure(&hub);
    flush_step(&mut hub, &mut outbox, 2);
    flush_step(&mut hub, &mut outbox, 3);
    let gaps = complete(&mut hub);

    let kinds = kinds(&seen);
    let told = kinds.iter().filter(|kind| **kind == "telemetry_health").count();
    assert_eq!(told, 1, "an outage is told of once: {kinds:?}");
    assert_eq!(kinds.last(), Some(&"run_finished"));
    let all = RecordGap {
        part: "probe".into(),
        lost_events: kinds.len() as u64,
        round: Some(0),
        why: "disk on fire".into(),
    };
    assert_eq!(gaps, [all]);
}

#[test]
fn a_durable_sink_that_fails_for_a_while_gets_everything_in_the_end() {
    let (weak, seen) = probe(SinkClass::Durable);
    let failures = Arc::clone(&weak.failures);
    failures.store(u32::MAX, Ordering::SeqCst);
    let (mut hub, mut outbox) = (hub_with(vec![weak]), outbox());

    flush_step(&mut hub, &mut outbox, 1);
    await_failure(&hub);
    let threatened = hub.failing();
    flush_step(&mut hub, &mut outbox, 2);
    failures.store(0, Ordering::SeqCst);
    hub.settle();
    let gaps = complete(&mut hub);

    assert_eq!(threatened.map(|gap| gap.why).as_deref(), Some("disk on fire"));
    assert_eq!(gaps, []);
    let numbers: Vec<u64> = seen.lock().unwrap().iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(kinds(&seen).iter().filter(|kind| **kind == "env_step").count(), 2);
    assert_eq!(hub.failing(), None);
}

/// What is logged while `body` runs, on this thread.
fn logged(body: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::with_default(log, body);
    let bytes = lines.0.lock().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// However short it is, and whoever looks.
#[test]
fn the_end_of_an_outage_is_told_where_its_beginning_was() {
    let queue = Queue::new("probe", SinkClass::Durable, 1, Duration::ZERO);
    let mut failures = 2_u32;
    let fails_twice = || match failures {
        0 => Ok(()),
        _ => {
            failures -= 1;
            Err(SinkError::Other("disk on fire".into()))
        }
    };

    let log = logged(|| persist(&queue, fails_twice).unwrap());

    let [begins, ends] = log.lines().collect::<Vec<_>>()[..] else {
        panic!("{log}");
    };
    assert!(begins.contains("`probe` cannot write (disk on fire)"), "{begins}");
    assert!(ends.ends_with("`probe` writes again; nothing is lost"), "{ends}");
    assert_eq!(logged(|| persist(&queue, || Ok(())).unwrap()), "");
}

#[test]
fn what_an_earlier_part_of_a_run_has_lost_is_told_at_its_end() {
    let (sink, seen) = probe(SinkClass::Durable);
    let mut live = LiveState::default();
    live.apply(&Event {
        seq: 6,
        ..Event::round(3, examples::round_finished())
    });
    let run = RunInfo {
        earlier: Some(Earlier { live, next_seq: 10 }),
        ..run_info()
    };
    let (mut hub, mut outbox) = (
        TelemetryHub::start(&run, vec![Box::new(sink)], PATIENCE).unwrap(),
        outbox(),
    );
    outbox.push(Event::run(examples::note()));
    hub.flush(&mut outbox);

    let gaps = complete(&mut hub);

    let gaps: Vec<_> = gaps.iter().map(|gap| (gap.lost_events, gap.round)).collect();
    assert_eq!(gaps, [(6 + 3, Some(0))]);
    let seen = seen.lock().unwrap();
    let Payload::RunFinished(finished) = &seen[1].payload else {
        panic!("{seen:?}");
    };
    assert_eq!(finished.missing_events, 9);
}

#[test]
fn a_stuck_sink_does_not_hold_up_the_end_for_ever() {
    let (mut sink, _) = probe(SinkClass::Durable);
    sink.delay = Duration::from_secs(5);
    let (mut hub, mut outbox) = (hub_with(vec![sink]), outbox());
    hub.patience = Duration::from_millis(20);

    flush_step(&mut hub, &mut outbox, 1);
    let gaps = complete(&mut hub);

    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].why.contains("did not finish"), "{gaps:?}");
}

#[test]
fn a_sink_that_cannot_start_stops_the_run_by_name() {
    let (mut sink, _) = probe(SinkClass::Durable);
    sink.fails_to_start = true;

    let error = TelemetryHub::start(&run_info(), vec![Box::new(sink)], PATIENCE)
        .err()
        .unwrap();

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
