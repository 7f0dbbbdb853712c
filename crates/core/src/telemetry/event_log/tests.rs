use super::*;
use crate::storage::{Fault, StorageFaults};
use crate::telemetry::{EventReader, examples};

const RUN_ID: &str = "20260101-000000-test-abcd";

/// The log of a new run, and its folder.
fn begun() -> (tempfile::TempDir, EventLog) {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::create(folder.path(), RUN_ID).unwrap();
    (folder, log)
}

fn numbered(events: Vec<Event>) -> Vec<Arc<Event>> {
    let numbered = events.into_iter().zip(0..).map(|(event, seq)| Event { seq, ..event });
    numbered.map(Arc::new).collect()
}

fn steps(count: u32) -> Vec<Arc<Event>> {
    let row = |step| Event::env(examples::context_at(3, 0, step), examples::env_step());
    numbered((1..=count).map(row).collect())
}

fn read(folder: &Path) -> Vec<Arc<Event>> {
    let events = EventReader::open(folder).unwrap();
    events.map(|event| Arc::new(event.unwrap())).collect()
}

fn text(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("events.jsonl")).unwrap()
}

/// So that folding the file gives the state of the run.
#[test]
fn every_event_is_read_as_it_was_written() {
    let (folder, mut log) = begun();
    let events = numbered(examples::events());

    log.append(&events);

    assert_eq!(read(folder.path()), events);
}

#[test]
fn the_header_comes_first_and_at_once() {
    let (folder, _log) = begun();

    let engine = env!("CARGO_PKG_VERSION");
    let header = format!("{{\"type\":\"header\",\"schema\":1,\"run_id\":\"{RUN_ID}\",\"engine\":\"{engine}\"}}\n",);
    assert_eq!(text(folder.path()), header);
}

#[test]
fn a_flush_is_in_the_file_when_it_is_over_and_its_mark_is_that_of_the_file() {
    let (folder, mut log) = begun();

    log.append(&steps(2));

    let text = text(folder.path());
    assert_eq!(text.lines().count(), 3);
    let blake3 = blake3::hash(text.as_bytes()).to_hex().to_string();
    assert_eq!((log.mark().bytes, log.mark().blake3), (text.len() as u64, blake3));
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("events.jsonl"), "precious").unwrap();

    let error = EventLog::create(folder.path(), RUN_ID).unwrap_err();

    assert!(error.to_string().contains("events.jsonl"), "{error}");
    assert_eq!(text(folder.path()), "precious");
}

#[test]
fn a_resumed_record_continues_after_a_header_that_says_so() {
    let (folder, mut log) = begun();
    log.append(&steps(1));
    let written = WrittenRecord {
        hasher: log.hasher.clone(),
        closed_segments: 0,
        bytes: log.mark().bytes,
    };
    drop(log);

    let mut log = EventLog::resume(folder.path(), RUN_ID, written).unwrap();
    log.settle(Duration::ZERO);

    let text = text(folder.path());
    let resumed: Vec<bool> = text.lines().map(|line| line.contains("\"resumed\":true")).collect();
    assert_eq!(resumed, [false, false, true]);
    assert_eq!(log.mark().blake3, blake3::hash(text.as_bytes()).to_hex().to_string());
    assert_eq!(log.gap(), None);
}

#[test]
fn what_a_disk_has_not_taken_is_written_once_it_takes_it() {
    let (folder, mut log) = begun();
    let events = steps(3);
    let faults = StorageFaults::under(folder.path(), 1, Fault::ReadOnly);

    log.append(&events[..2]);
    let gap = log.gap().expect("nothing is in the file yet");
    drop(faults);
    log.append(&events[2..]);

    assert!(gap.why.contains("events.jsonl"), "{gap}");
    assert_eq!((gap.lost_events, gap.round), (2, Some(0)));
    assert_eq!(log.gap(), None);
    assert_eq!(read(folder.path()).len(), 3);
}

/// Linux marks pages clean that it could not write, so the next call succeeds without them.
#[test]
fn what_a_failed_synchronisation_may_have_lost_is_written_again() {
    let (folder, mut log) = begun();
    log.settle(Duration::ZERO);
    // The write, then the synchronisation.
    let faults = StorageFaults::under(folder.path(), 2, Fault::InputOutput);

    log.append(&steps(2));
    log.settle(Duration::ZERO);
    // The content of the device is unknown.
    assert_eq!(log.gap().map(|gap| gap.lost_events), Some(2));
    let after_failure = std::fs::read(folder.path().join("events.jsonl")).unwrap();
    log.settle(Duration::ZERO);

    assert!(faults.struck().is_some_and(|struck| struck.starts_with("Sync")));
    assert!(after_failure.contains(&0), "the pages are lost");
    assert_eq!(read(folder.path()).len(), 2);
    assert_eq!(log.gap(), None);
}

#[test]
fn a_file_that_is_deleted_replaced_or_cut_under_a_run_is_a_gap() {
    let remove = |path: &Path| std::fs::remove_file(path).unwrap();
    let cut = |path: &Path| std::fs::write(path, "").unwrap();
    let replace = |path: &Path| {
        remove(path);
        cut(path);
    };
    for harm in [&remove as &dyn Fn(&Path), &replace, &cut] {
        let (folder, mut log) = begun();
        let events = steps(2);
        log.append(&events[..1]);
        log.settle(Duration::ZERO);
        assert_eq!(log.gap(), None);

        harm(&folder.path().join("events.jsonl"));
        log.append(&events[1..]);
        log.settle(Duration::from_secs(60));

        // Lines that go to a file without a name are lost to the record.
        log.append(&events[1..]);
        let gap = log.gap().expect("it is noticed, and stays so");
        assert!(gap.why.contains("deleted, replaced or cut"), "{gap}");
    }
}

#[test]
fn a_disk_that_fails_for_long_costs_no_more_memory_than_is_set_aside_for_it() {
    let (folder, mut log) = begun();
    let _faults = StorageFaults::under(folder.path(), 1, Fault::ReadOnly);
    log.unsynced.resize(KEPT_BYTES, b' ');

    log.append(&steps(2));
    log.append(&numbered(vec![Event::run(examples::run_finished())]));

    assert_eq!(log.lost_events(), 2);
    assert!(log.unsynced.ends_with(b"}\n"), "the end of the run is kept");
}

#[test]
fn a_long_segment_is_closed_and_read_as_if_it_were_not() {
    let (folder, mut log) = begun();
    let events = steps(6);

    for pair in events.chunks(2) {
        log.close_at = 1;
        log.append(pair);
        log.settle(Duration::ZERO);
    }

    assert_eq!(text(folder.path()).lines().count(), 1, "a header");
    assert!(folder.path().join("events-0003.jsonl.zst").exists());
    assert_eq!(read(folder.path()), events);
    let last = crate::telemetry::find_last(folder.path(), |event| Some(event.seq));
    assert_eq!(last.unwrap(), Some(5), "the open segment has none");
    let mut hasher = EventsHasher::default();
    let mut lines = crate::telemetry::EventLines::open(folder.path()).unwrap();
    while lines.advance().unwrap() {
        hasher.take(lines.line());
    }
    assert_eq!(hasher.mark(), log.mark());
}
