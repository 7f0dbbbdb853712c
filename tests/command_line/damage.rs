//! Remains of a run may be damaged, half written or gone: nothing is lost in silence.

use std::fs;
use std::path::Path;

use simic_engine::internals::record::RunDirectory;

use crate::program::{assert_has, ends_with, engine, engine_at, read, refused, succeeds, text, write};
use crate::resume::{RULES, begin, finished, resume, wait_for_round, write_scenario};

fn rounds_done(run: &Path) -> u64 {
    let finished = crate::support::lines(run).pop().expect("the record has an end");
    finished["data"]["rounds_done"].as_u64().expect("rounds were counted")
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_an_older_one_and_that_is_said() {
    let (_folder, run) = finished();
    let path = run.join("checkpoints/round-000004/policy/controller.ron");
    let mut bytes = fs::read(&path).expect("there is a controller");
    bytes[0] ^= 1;
    write(&path, bytes);

    let named = refused(&resume(&run, "--from 4 --extend 1"));
    let output = resume(&run, "--extend 1");

    assert_has(&named, &["round-000004/policy/controller.ron is damaged"]);
    assert_has(&ends_with(0, &output), &["a checkpoint is skipped"]);
    assert_eq!(rounds_done(&run), 5);
    assert!(run.join("checkpoints/discarded-1/round-000004").exists());
}

#[test]
fn a_run_is_resumed_with_anything_that_a_killed_writer_left_after_the_last_event() {
    let (_folder, run) = finished();
    let events = run.join("events.jsonl");
    let torn: &[u8] = b"\n\xff\xfe{\"seq\":\xc3";
    write(&events, [read(&events).as_bytes(), torn].concat());

    assert_has(&succeeds(&resume(&run, "")), &["nothing is left to do"]);
    succeeds(&resume(&run, "--extend 1"));

    assert_eq!(rounds_done(&run), 5);
}

/// Its checkpoints have been moved by then.
#[test]
fn a_resume_that_fails_when_something_has_been_changed_does_not_claim_the_opposite() {
    let (_folder, run) = finished();
    let events = run.join("events.jsonl");
    write(&events, read(&events).replacen("\"schema\":1", "\"schema\":4", 1));

    let message = ends_with(3, &resume(&run, "--from 3"));

    assert_has(&message, &["written with telemetry schema 4"]);
    assert!(!message.contains("nothing was changed"), "{message}");
    assert!(run.join("checkpoints/discarded-1/round-000004").exists());
}

#[cfg(unix)]
#[test]
fn a_resume_puts_the_checkpoints_in_order_even_where_nothing_is_left_to_play() {
    let (_folder, run) = finished();
    let shelf = run.join("checkpoints");
    fs::create_dir(shelf.join(".round-000005.new")).expect("a folder");
    fs::remove_file(shelf.join("last")).expect("there is a link");
    std::os::unix::fs::symlink("round-000003", shelf.join("last")).expect("a link");

    succeeds(&resume(&run, ""));

    assert!(!shelf.join(".round-000005.new").exists());
    let last = fs::read_link(shelf.join("last")).expect("there is a link");
    assert_eq!(last, Path::new("round-000004"));
}

/// Data that the other process has yet to write must not be judged: the claim is the first thing that is asked for.
#[test]
fn a_run_that_another_process_plays_is_left_alone_before_anything_of_it_is_read() {
    let (_folder, run) = finished();
    fs::rename(run.join("checkpoints"), run.join("hidden")).expect("the checkpoints are hidden");
    let claim = RunDirectory::open(&run).and_then(|run| run.claim());
    let claim = claim.expect("the run is free");

    let message = refused(&resume(&run, "--extend 1"));

    assert_has(&message, &["another process is playing this run"]);
    drop(claim);
    let message = text(&resume(&run, "--extend 1").stderr);
    assert_has(&message, &["has no checkpoint"]);
    fs::rename(run.join("hidden"), run.join("checkpoints")).expect("they are back");
    fs::remove_file(run.join("events.jsonl")).expect("they go");
    let shown = succeeds(&engine(&format!("show '{}'", run.display())));
    assert_has(&shown, &["a run cannot be continued without its events"]);
}

/// The folder may come from anyone.
#[cfg(unix)]
#[test]
fn a_resume_writes_through_no_link_in_the_run_s_folder() {
    for name in ["log.txt", "status.json", "events.jsonl.tmp"] {
        let (folder, run) = finished();
        let (other, link) = (folder.path().join("other"), run.join(name));
        write(&other, "kept");
        // One of them is not there.
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&other, &link).expect("a link");

        let said = ends_with(3, &resume(&run, "--extend 1"));

        assert_has(&said, &[name]);
        assert_eq!(read(&other), "kept", "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_run_whose_directory_is_taken_away_stops_with_an_incomplete_record() {
    let folder = crate::program::folder();
    let out = folder.path().join("out");
    let mut child = begin(&write_scenario(folder.path(), RULES, 100_000), &out);
    let run = wait_for_round(&out, 1);

    fs::rename(&run, folder.path().join("moved")).expect("the run is moved");

    assert_eq!(child.wait().expect("the run ends").code(), Some(5));
    assert!(!run.exists(), "nothing comes back");
}

#[test]
fn tables_that_cannot_be_written_are_a_failure_and_no_wrong_usage() {
    let (folder, _) = finished();
    write(&folder.path().join("taken"), "");

    let output = engine_at(folder.path(), "compare latest --csv taken/tables");

    let message = ends_with(3, &output);
    assert!(message.starts_with("error: --csv: "), "{message}");
}
