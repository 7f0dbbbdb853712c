use std::fs::{self, OpenOptions};
use std::io::Write;

use super::*;
use crate::telemetry::examples::LINES;

const HEADER: &str = "{\"type\":\"header\",\"schema\":1,\"run_id\":\"r\",\"engine\":\"0\"}\n";

fn append(folder: &Path, text: &str) {
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).open(folder.join(EVENTS_FILE));
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.expect("it is written");
}

/// A record that begins with a header and `lines`, and the feed's result.
fn watched(lines: &str) -> (tempfile::TempDir, Feed) {
    let folder = tempfile::tempdir().expect("a folder");
    append(folder.path(), HEADER);
    append(folder.path(), lines);
    let mut feed = Feed::new(folder.path());
    feed.poll().expect("nothing is wrong");
    (folder, feed)
}

#[test]
fn a_run_without_events_has_nothing_to_show_yet() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut feed = Feed::new(folder.path());

    assert!(!feed.poll().expect("nothing is wrong"));

    append(folder.path(), HEADER);
    append(folder.path(), LINES);
    assert!(feed.poll().expect("nothing is wrong"));
    assert!(feed.state.live.started.is_some());
}

#[test]
fn a_line_that_is_half_written_is_waited_for() {
    let (half, rest) = LINES.split_at(LINES.len() / 2);
    let (folder, mut feed) = watched(half);
    append(folder.path(), rest);

    feed.poll().expect("nothing is wrong");

    assert_eq!(feed.state, watched(LINES).1.state);
}

#[test]
fn a_record_that_was_cut_by_a_resume_is_read_again_from_its_beginning() {
    let (folder, mut feed) = watched(LINES);
    assert!(feed.state.live.finished.is_some());
    let first = LINES.lines().next().expect("there is a line");
    fs::write(folder.path().join(EVENTS_FILE), format!("{HEADER}{first}\n")).expect("it is written");

    assert!(feed.poll().expect("nothing is wrong"));

    assert!(feed.state.live.started.is_some() && feed.state.live.finished.is_none());
}

#[test]
fn what_was_read_stays_when_the_folder_vanishes_or_a_line_is_not_an_event() {
    let (folder, mut feed) = watched(LINES);
    append(folder.path(), "no event\n");

    let damaged = feed.poll().unwrap_err().to_string();
    drop(folder);
    let gone = feed.poll().unwrap_err().to_string();

    let line = LINES.lines().count() + 2;
    assert!(damaged.contains(&format!("{EVENTS_FILE}:{line}: ")), "{damaged}");
    let expected = "is gone: the run's folder was moved or removed while it was watched";
    assert!(gone.ends_with(expected), "{gone}");
    assert!(feed.state.live.started.is_some());
}

#[test]
fn a_record_of_a_newer_schema_is_refused_by_its_version() {
    let folder = tempfile::tempdir().expect("a folder");
    append(folder.path(), &HEADER.replace("\"schema\":1", "\"schema\":9"));

    let refused = Feed::new(folder.path()).poll().unwrap_err().to_string();

    assert!(refused.contains("written with telemetry schema 9"), "{refused}");
}
