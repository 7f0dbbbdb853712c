use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::telemetry::{Earlier, EventReader, SinkError, WrittenRecord, examples};

type Seen = Arc<Mutex<Vec<Arc<Event>>>>;

/// A probe's treatment of events, while it remembers them.
#[derive(Clone, Copy)]
enum Deed {
    Nothing,
    TakeEach(Duration),
    Fail,
    Panic,
    FailToStart,
}

struct Probe(Deed, Seen);

impl Sink for Probe {
    fn name(&self) -> &str {
        "probe"
    }

    fn start(&mut self, _run: &RunInfo) -> Result<(), SinkError> {
        match self.0 {
            Deed::FailToStart => Err(SinkError::Other("no room".into())),
            _ => Ok(()),
        }
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        match self.0 {
            Deed::Fail => return Err(SinkError::Other("out of ink".into())),
            Deed::Panic => panic!("a bug"),
            Deed::TakeEach(time) => std::thread::sleep(time * events.len() as u32),
            Deed::Nothing | Deed::FailToStart => {}
        }
        self.1.lock().unwrap().extend_from_slice(events);
        Ok(())
    }
}

/// A hub that waits for no sink, with its record in a folder.
struct Scene {
    folder: tempfile::TempDir,
    hub: TelemetryHub,
    outbox: TelemetryOutbox,
    seen: Seen,
}

/// A hub with a sink for each deed, all of which remember into `seen`.
fn start(folder: &Path, deeds: &[Deed], seen: &Seen, earlier: Option<Earlier>) -> Result<TelemetryHub, TelemetryError> {
    let run = RunInfo {
        run_id: "test".into(),
        directory: folder.into(),
        earlier,
    };
    let probe = |&deed| Box::new(Probe(deed, seen.clone())) as Box<dyn Sink>;
    TelemetryHub::start(&run, deeds.iter().map(probe).collect(), Duration::from_secs(5))
}

fn scene(deeds: &[Deed]) -> Scene {
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    Scene {
        hub: start(folder.path(), deeds, &seen, None).unwrap(),
        outbox: TelemetryOutbox::new(true),
        folder,
        seen,
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

    /// Events of a kind that the sinks have seen.
    fn seen(&self, kind: &str) -> u64 {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|event| event.payload.kind() == kind).count() as u64
    }
}

fn recorded(folder: &tempfile::TempDir) -> Vec<Event> {
    let events = EventReader::open(folder.path()).unwrap();
    events.collect::<Result<_, _>>().unwrap()
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.payload.kind()).collect()
}

/// P10.
#[test]
fn a_flush_orders_by_scope_then_production_and_numbers_without_gaps() {
    let mut scene = scene(&[]);
    let [first, second] = [0, 1].map(|env| examples::context_at(env, 0, 1));

    scene.outbox.push(Event::env(second, examples::env_step()));
    scene.outbox.push(Event::env(second, examples::decision()));
    scene.outbox.push(Event::run(examples::note()));
    scene.outbox.push(Event::env(first, examples::decision()));
    scene.hub.flush(&mut scene.outbox);
    scene.complete();

    let recorded = recorded(&scene.folder);
    let place = |event: &Event| (event.seq, event.payload.kind(), event.env);
    let expected = [
        (0, "note", None),
        (1, "decision", Some(0)),
        (2, "env_step", Some(1)),
        (3, "decision", Some(1)),
        (4, "run_finished", None),
    ];
    assert_eq!(recorded.iter().map(place).collect::<Vec<_>>(), expected);
    assert!(recorded.iter().all(|event| event.t > Timestamp::EPOCH));
}

#[test]
fn a_slow_sink_misses_step_rows_only_and_the_record_nothing() {
    let mut scene = scene(&[Deed::TakeEach(Duration::from_millis(1))]);

    for step in 1..=600 {
        scene.flush_step(step);
    }
    scene.complete();

    assert_eq!(recorded(&scene.folder).len(), 2 * 600 + 1);
    assert_eq!(scene.seen("host_stabilized"), 600);
    let dropped = scene.hub.live().finished.as_ref().unwrap().dropped_events;
    assert!(dropped > 0);
    assert_eq!(scene.seen("env_step") + dropped, 600);
}

#[test]
fn a_sink_that_fails_or_panics_costs_neither_the_record_nor_other_sinks_anything() {
    let mut scene = scene(&[Deed::Fail, Deed::Panic, Deed::Nothing]);

    scene.flush_step(1);
    scene.flush_step(2);

    assert_eq!(scene.complete(), []);
    assert_eq!(scene.seen.lock().unwrap().len(), 5);
    assert_eq!(recorded(&scene.folder).len(), 5);
}

#[test]
fn the_end_of_a_run_vouches_for_all_events_before_it() {
    let mut scene = scene(&[]);
    scene.flush_step(1);

    scene.complete();

    let recorded = scene.hub.live().finished.clone().unwrap().recorded.unwrap();
    let text = std::fs::read(scene.folder.path().join("events.jsonl")).unwrap();
    let before = &text[..recorded.bytes as usize];
    assert_eq!(recorded.blake3, blake3::hash(before).to_hex().to_string());
    assert_eq!(text[before.len()..].iter().filter(|&&byte| byte == b'\n').count(), 1);
}

#[test]
fn losses_of_an_earlier_part_of_a_run_are_reported_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let start = |earlier| start(folder.path(), &[], &Seen::default(), earlier).unwrap();
    drop(start(None));
    let mut live = LiveState::default();
    let mut last = Event::round(3, examples::round_finished());
    last.seq = 6;
    live.apply(&last);
    let earlier = Earlier {
        live,
        next_seq: 10,
        written: WrittenRecord::default(),
    };
    let mut hub = start(Some(earlier));
    let mut outbox = TelemetryOutbox::new(true);
    outbox.push(Event::run(examples::note()));
    hub.flush(&mut outbox);

    let gaps = hub.finish(RunState::Completed, None);

    assert_eq!((gaps[0].lost_events, gaps[0].round), (6 + 3, Some(0)));
    assert_eq!(hub.live().finished.as_ref().unwrap().missing_events, 9);
}

#[test]
fn a_stuck_sink_does_not_hold_up_the_end_for_ever() {
    let mut scene = scene(&[Deed::TakeEach(Duration::from_secs(60))]);
    scene.hub.outage_patience = Duration::from_millis(20);
    let began = Instant::now();

    scene.flush_step(1);
    scene.complete();

    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(recorded(&scene.folder).len(), 3);
}

#[test]
fn a_sink_that_cannot_start_stops_the_run_by_name() {
    let folder = tempfile::tempdir().unwrap();

    let refused = start(folder.path(), &[Deed::FailToStart], &Seen::default(), None);

    let why = refused.err().unwrap().to_string();
    assert_eq!(why, "telemetry sink `probe` could not start: no room");
}

#[test]
fn an_abandoned_run_still_writes_its_end() {
    let Scene { folder, hub, .. } = scene(&[]);

    drop(hub);

    let events = recorded(&folder);
    assert_eq!(kinds(&events), ["run_finished"]);
    let Payload::RunFinished(finished) = &events[0].payload else {
        panic!("{events:?}");
    };
    assert_eq!((finished.status, finished.error.is_some()), (RunState::Failed, true));
}

#[test]
fn finishing_twice_writes_one_end_and_late_events_are_refused() {
    let mut scene = scene(&[]);

    let first = scene.complete();
    scene.flush_step(1);

    assert_eq!(scene.complete(), first);
    assert_eq!(scene.hub.late_events, 2);
    assert_eq!(kinds(&recorded(&scene.folder)), ["run_finished"]);
}
