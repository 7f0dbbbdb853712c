use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::scenario::TelemetryConfig;
use crate::telemetry::Payload;
use crate::telemetry::{Earlier, EventReader, SinkError, WrittenRecord, examples};

type Seen = Arc<Mutex<Vec<Arc<Event>>>>;

/// Remembers what it was given; can be slow, broken, or refuse to start.
#[derive(Default)]
struct Probe {
    delay: Duration,
    is_broken: Arc<AtomicBool>,
    fails_to_start: bool,
    panics: bool,
    seen: Seen,
}

impl Sink for Probe {
    fn name(&self) -> &str {
        "probe"
    }

    fn start(&mut self, _run: &RunInfo) -> Result<(), SinkError> {
        if self.fails_to_start {
            return Err(SinkError::Other("no room".into()));
        }
        Ok(())
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        assert!(!self.panics, "a bug");
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(SinkError::Other("out of ink".into()));
        }
        std::thread::sleep(self.delay * events.len() as u32);
        self.seen.lock().unwrap().extend_from_slice(events);
        Ok(())
    }
}

/// A hub that waits for no sink, with its record in a folder.
struct Scene {
    folder: tempfile::TempDir,
    hub: TelemetryHub,
    outbox: TelemetryOutbox,
}

fn start(
    folder: &tempfile::TempDir,
    sinks: Vec<Probe>,
    earlier: Option<Earlier>,
) -> Result<TelemetryHub, TelemetryError> {
    let run = RunInfo {
        run_id: "test".into(),
        directory: folder.path().into(),
        earlier,
    };
    let sinks = sinks.into_iter().map(|sink| Box::new(sink) as Box<dyn Sink>);
    TelemetryHub::start(&run, sinks.collect(), Duration::from_secs(5))
}

fn scene(sinks: Vec<Probe>) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    Scene {
        hub: start(&folder, sinks, None).unwrap(),
        outbox: TelemetryOutbox::new(&TelemetryConfig::default()),
        folder,
    }
}

impl Scene {
    /// One flush with one step row and one lifecycle event.
    fn flush_step(&mut self, step: u32) {
        let context = examples::context_at(0, 0, step);
        self.outbox.push(Event::env(context, examples::env_step()));
        self.outbox.push(Event::env(context, examples::host_stabilized()));
        self.hub.flush(&mut self.outbox);
    }

    fn complete(&mut self) -> Vec<RecordGap> {
        self.hub.finish(RunState::Completed, None)
    }

    fn recorded(&self) -> Vec<Event> {
        let events = EventReader::open(self.folder.path()).unwrap();
        events.collect::<Result<_, _>>().unwrap()
    }
}

fn kinds<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<&'static str> {
    events.into_iter().map(|event| event.payload.kind()).collect()
}

fn count(seen: &Seen, kind: &str) -> usize {
    let seen = seen.lock().unwrap();
    seen.iter().filter(|event| event.payload.kind() == kind).count()
}

/// P10.
#[test]
fn a_flush_orders_by_scope_then_production_and_numbers_without_gaps() {
    let mut scene = scene(vec![]);

    for (env, event) in [
        (1, Event::env(examples::context_at(1, 0, 1), examples::env_step())),
        (0, Event::run(examples::note())),
    ] {
        let context = examples::context_at(env, 0, 1);
        scene.outbox.push(event);
        scene.outbox.push(Event::env(context, examples::decision()));
    }
    scene.hub.flush(&mut scene.outbox);
    scene.complete();

    let recorded = scene.recorded();
    let order: Vec<_> = recorded
        .iter()
        .map(|event| (event.seq, event.payload.kind(), event.env))
        .collect();
    assert_eq!(
        order,
        [
            (0, "note", None),
            (1, "decision", Some(0)),
            (2, "env_step", Some(1)),
            (3, "decision", Some(1)),
            (4, "run_finished", None),
        ]
    );
    assert!(recorded.iter().all(|event| event.t > Timestamp::EPOCH));
}

#[test]
fn a_slow_sink_misses_step_rows_only_and_the_record_nothing() {
    let seen = Seen::default();
    let mut scene = scene(vec![Probe {
        delay: Duration::from_millis(1),
        seen: Arc::clone(&seen),
        ..Probe::default()
    }]);
    let steps = 600;

    for step in 1..=steps {
        scene.flush_step(step);
    }
    scene.complete();

    assert_eq!(kinds(&scene.recorded()).len() as u32, 2 * steps + 1);
    assert_eq!(count(&seen, "host_stabilized") as u32, steps);
    let dropped = scene.hub.live().finished.as_ref().unwrap().dropped_events;
    assert!(dropped > 0);
    assert_eq!(count(&seen, "env_step") as u64 + dropped, u64::from(steps));
}

#[test]
fn a_sink_that_fails_or_panics_costs_neither_the_record_nor_other_sinks_anything() {
    let seen = Seen::default();
    let broken = Probe::default();
    broken.is_broken.store(true, Ordering::SeqCst);
    let panicking = Probe {
        panics: true,
        ..Probe::default()
    };
    let sound = Probe {
        seen: Arc::clone(&seen),
        ..Probe::default()
    };
    let mut scene = scene(vec![broken, panicking, sound]);

    scene.flush_step(1);
    scene.flush_step(2);
    let gaps = scene.complete();

    assert_eq!(gaps, []);
    assert_eq!(seen.lock().unwrap().len(), 5);
    assert_eq!(scene.recorded().len(), 5);
}

#[test]
fn the_end_of_a_run_vouches_for_all_that_was_told_before() {
    let mut scene = scene(vec![]);
    scene.flush_step(1);

    scene.complete();

    let recorded = scene.hub.live().finished.clone().unwrap().recorded.unwrap();
    let text = std::fs::read(scene.folder.path().join("events.jsonl")).unwrap();
    let before = &text[..recorded.bytes as usize];
    assert_eq!(recorded.blake3, blake3::hash(before).to_hex().to_string());
    assert_eq!(text[before.len()..].iter().filter(|&&byte| byte == b'\n').count(), 1);
}

#[test]
fn what_an_earlier_part_of_a_run_has_lost_is_told_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    drop(start(&folder, vec![], None).unwrap());
    let mut live = LiveState::default();
    live.apply(&Event {
        seq: 6,
        ..Event::round(3, examples::round_finished())
    });
    let earlier = Earlier {
        live,
        next_seq: 10,
        written: WrittenRecord::default(),
    };
    let mut hub = start(&folder, vec![], Some(earlier)).unwrap();
    let mut outbox = TelemetryOutbox::new(&TelemetryConfig::default());
    outbox.push(Event::run(examples::note()));
    hub.flush(&mut outbox);

    let gaps = hub.finish(RunState::Completed, None);

    assert_eq!((gaps[0].lost_events, gaps[0].round), (6 + 3, Some(0)));
    assert_eq!(hub.live().finished.as_ref().unwrap().missing_events, 9);
}

#[test]
fn a_stuck_sink_does_not_hold_up_the_end_for_ever() {
    let mut scene = scene(vec![Probe {
        delay: Duration::from_secs(60),
        ..Probe::default()
    }]);
    scene.hub.outage_patience = Duration::from_millis(20);
    let began = Instant::now();

    scene.flush_step(1);
    scene.complete();

    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(scene.recorded().len(), 3);
}

#[test]
fn a_sink_that_cannot_start_stops_the_run_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let sink = Probe {
        fails_to_start: true,
        ..Probe::default()
    };

    let error = start(&folder, vec![sink], None).err().unwrap();

    assert_eq!(error.to_string(), "telemetry sink `probe` could not start: no room");
}

#[test]
fn an_abandoned_run_still_writes_its_end() {
    let Scene { folder, hub, .. } = scene(vec![]);

    drop(hub);

    let events: Vec<Event> = EventReader::open(folder.path()).unwrap().flatten().collect();
    let [
        Event {
            payload: Payload::RunFinished(finished),
            ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(finished.status, RunState::Failed);
    assert!(finished.error.is_some());
}

#[test]
fn finishing_twice_writes_one_end_and_late_events_are_refused() {
    let mut scene = scene(vec![]);

    let first = scene.complete();
    scene.flush_step(1);
    let second = scene.complete();

    assert_eq!(first, second);
    assert_eq!(scene.hub.late_events, 2);
    assert_eq!(kinds(&scene.recorded()), ["run_finished"]);
}
