use super::*;
use crate::telemetry::{Earlier, EventReader, LiveState, examples};

fn run_info(directory: &std::path::Path) -> RunInfo {
    RunInfo {
        run_id: "20260101-000000-test-abcd".into(),
        directory: directory.into(),
        earlier: None,
    }
}

fn numbered(events: Vec<Event>) -> Vec<Arc<Event>> {
    events
        .into_iter()
        .enumerate()
        .map(|(seq, mut event)| {
            event.seq = seq as u64;
            Arc::new(event)
        })
        .collect()
}

fn written(directory: &std::path::Path) -> Vec<Event> {
    let reader = EventReader::open(&directory.join("events.jsonl")).unwrap();
    reader.collect::<Result<_, _>>().unwrap()
}

#[test]
fn folding_the_file_gives_the_state_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let events = numbered(examples::events());
    let mut watched = LiveState::default();
    events.iter().for_each(|event| watched.apply(event));

    let mut sink = JsonLinesSink::default();
    sink.start(&run_info(folder.path())).unwrap();
    sink.write(&events).unwrap();
    sink.finish(&examples::run_finished()).unwrap();

    let written = written(folder.path());
    let mut replayed = LiveState::default();
    written.iter().for_each(|event| replayed.apply(event));
    assert_eq!(replayed, watched);
    assert_eq!(written.len(), events.len());
}

#[test]
fn the_header_comes_first_and_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = JsonLinesSink::default();

    sink.start(&run_info(folder.path())).unwrap();

    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    assert_eq!(
        text,
        format!(
            "{{\"type\":\"header\",\"schema\":\"simic.telemetry\",\"major\":2,\"minor\":0,\
             \"run_id\":\"20260101-000000-test-abcd\",\"engine\":\"{}\"}}\n",
            env!("CARGO_PKG_VERSION")
        )
    );
}

#[test]
fn a_round_is_on_disk_when_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
    let mut sink = JsonLinesSink::default();
    sink.start(&run_info(folder.path())).unwrap();
    let events = numbered(vec![
        Event::run(examples::note()),
        Event::round(0, examples::round_finished()),
    ]);

    sink.write(&events[..1]).unwrap();
    assert_eq!(lines(), 1);
    sink.write(&events[1..]).unwrap();
    assert_eq!(lines(), 3);
}

#[test]
fn a_write_that_is_tried_again_repeats_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = JsonLinesSink::default();
    sink.start(&run_info(folder.path())).unwrap();
    let events = numbered(vec![Event::run(examples::note())]);

    sink.write(&events).unwrap();
    sink.write(&events).unwrap();
    sink.flush().unwrap();

    assert_eq!(written(folder.path()).len(), 1);
}

#[test]
fn a_resumed_run_goes_on_behind_a_header_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let info = run_info(folder.path());
    let mut sink = JsonLinesSink::default();
    sink.start(&info).unwrap();
    sink.finish(&examples::run_finished()).unwrap();

    let earlier = Some(Earlier {
        live: LiveState::default(),
        next_seq: 0,
    });
    JsonLinesSink::default().start(&RunInfo { earlier, ..info }).unwrap();

    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let resumed: Vec<bool> = text.lines().map(|line| line.contains("\"resumed\":true")).collect();
    assert_eq!(resumed, [false, true]);
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("events.jsonl"), "precious").unwrap();

    let error = JsonLinesSink::default().start(&run_info(folder.path())).unwrap_err();

    assert!(error.to_string().contains("events.jsonl"), "{error}");
}

#[test]
fn lines_that_are_held_back_are_counted_until_they_are_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let mut sink = JsonLinesSink::default();
    sink.start(&run_info(folder.path())).unwrap();
    let context = examples::context_at(3, 0, 1);
    let events = numbered(vec![
        Event::env(context, examples::env_step()),
        Event::env(context, examples::decision()),
    ]);

    sink.write(&events).unwrap();
    let held = sink.held_back();
    sink.sync().unwrap();

    assert_eq!((held.events, held.round), (2, Some(0)));
    assert_eq!(sink.held_back().events, 0);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 3);
}
