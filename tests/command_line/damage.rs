//! What is left of a run may be damaged, half written or gone: nothing is lost in silence.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use simic_engine::internals::record::RunDirectory;

use crate::program::{engine, refused, succeeds, text};
use crate::resume::{RULES, begin, finished, resume, wait_for_round, write_scenario};

fn rounds_done(run: &Path) -> u64 {
    let finished = crate::support::lines(run).pop().expect("the record has an end");
    finished["data"]["rounds_done"].as_u64().expect("rounds were counted")
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_an_older_one_and_that_is_said() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let path = run.join("checkpoints/round-000004/policy/controller.ron");
    let mut bytes = fs::read(&path).expect("there is a controller");
    bytes[0] ^= 1;
    fs::write(&path, bytes).expect("it is damaged");

    let named = resume(&run, &["--from", "4", "--extend", "1"]);
    let message = refused(&named);
    assert!(
        message.contains("round-000004/policy/controller.ron is damaged"),
        "{message}"
    );

    let output = resume(&run, &["--extend", "1"]);

    succeeds(&output);
    let message = text(&output.stderr);
    assert!(message.contains("a checkpoint is passed over"), "{message}");
    assert_eq!(rounds_done(&run), 5);
    assert!(run.join("checkpoints/discarded-1/round-000004").exists());
}

#[test]
fn a_run_is_resumed_with_anything_that_a_killed_writer_left_behind_the_last_event() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let mut events = OpenOptions::new()
        .append(true)
        .open(run.join("events.jsonl"))
        .expect("there are events");
    events.write_all(b"\n\xff\xfe{\"seq\":\xc3").expect("they are damaged");

    let output = resume(&run, &[]);
    succeeds(&output);
    assert!(text(&output.stdout).contains("nothing is left to do"));

    succeeds(&resume(&run, &["--extend", "1"]));
    assert_eq!(rounds_done(&run), 5);
}

/// Its checkpoints have been moved by then.
#[test]
fn a_resume_that_fails_when_something_has_been_changed_does_not_claim_the_opposite() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let path = run.join("events.jsonl");
    let events = fs::read_to_string(&path).expect("there are events");
    fs::write(&path, events.replacen("\"major\":3", "\"major\":4", 1)).expect("they can be written");

    let output = resume(&run, &["--from", "3"]);

    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("written with telemetry schema 4"), "{message}");
    assert!(!message.contains("nothing was changed"), "{message}");
    assert!(run.join("checkpoints/discarded-1/round-000004").exists());
}

#[cfg(unix)]
#[test]
fn a_resume_puts_the_checkpoints_in_order_even_where_nothing_is_left_to_play() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let shelf = run.join("checkpoints");
    fs::create_dir(shelf.join(".round-000005.new")).expect("a folder");
    fs::remove_file(shelf.join("last")).expect("there is a link");
    std::os::unix::fs::symlink("round-000003", shelf.join("last")).expect("a link");

    succeeds(&resume(&run, &[]));

    assert!(!shelf.join(".round-000005.new").exists());
    let last = fs::read_link(shelf.join("last")).expect("there is a link");
    assert_eq!(last, Path::new("round-000004"));
}

/// What the other process has yet to write must not be judged: the claim is the first thing that is asked for.
#[test]
fn a_run_that_another_process_plays_is_left_alone_before_anything_of_it_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    fs::rename(run.join("checkpoints"), run.join("hidden")).expect("the checkpoints are hidden");
    let claim = RunDirectory::open(&run)
        .and_then(|run| run.claim())
        .expect("the run is free");

    let output = resume(&run, &["--extend", "1"]);

    let message = refused(&output);
    assert!(message.contains("another process is playing this run"), "{message}");
    drop(claim);
    let message = resume(&run, &["--extend", "1"]).stderr;
    assert!(text(&message).contains("has no checkpoint"));
}

#[cfg(unix)]
#[test]
fn a_run_whose_directory_is_taken_away_stops_with_an_incomplete_record() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = write_scenario(folder.path(), RULES, 100_000);
    let out = folder.path().join("out");
    let mut child = begin(&scenario, &out);
    let run = wait_for_round(&out, 1);

    fs::rename(&run, folder.path().join("moved")).expect("the run is moved");

    assert_eq!(child.wait().expect("the run ends").code(), Some(5));
    assert!(!run.exists(), "nothing comes back");
}

#[test]
fn tables_that_cannot_be_written_are_a_failure_and_no_wrong_usage() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let taken = folder.path().join("taken");
    fs::write(&taken, "").expect("a file");
    let tables = taken.join("tables");

    let output = engine(&["compare", &run.to_string_lossy(), "--csv", &tables.to_string_lossy()]);

    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.starts_with("error: --csv: "), "{message}");
}
