//! Runs are found again: listed, shown, and known by the beginning of their names.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use simic_engine::internals::record::RunDirectory;

use crate::program::{engine, refused, succeeds, text};
use crate::resume::finished;

/// A run that was left in some state long ago.
fn left(root: &Path, run_id: &str, created: &str, tags: &[&str], status: Value) -> PathBuf {
    let folder = root.join(run_id);
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut whole = json!({"pid": u32::MAX, "heartbeat": "2026-01-01T00:00:00.000Z", "episodes": 0});
    let fields = status.as_object().expect("fields").clone();
    whole.as_object_mut().expect("fields").extend(fields);
    let manifest = json!({"run_id": run_id, "created": created, "tags": tags});
    for (name, content) in [
        ("status.json", whole),
        ("manifest.json", manifest),
        ("resolved.ron", json!({})),
    ] {
        std::fs::write(folder.join(name), content.to_string()).expect("written");
    }
    folder
}

/// How the run in `folder` has ended.
fn tell_end(folder: &Path, rounds: u32) {
    let end = json!({"seq": 0, "t": "2026-01-01T00:00:00.000Z", "type": "run_finished", "sev": "info", "data": {
        "status": "completed", "rounds_done": rounds, "episodes_done": 0, "updates": 0, "wall_s": 1.0, "rollbacks": 0,
        "dropped_events": 0,
    }});
    std::fs::write(folder.join("events.jsonl"), format!("{end}\n")).expect("written");
}

/// One run of every fate.
fn several(root: &Path) {
    let played = json!({
        "state": "running", "scenario": "quickstart", "rounds": 7, "n_rounds": 8, "best_accuracy": 67.5
    });
    let completed = left(
        root,
        "20260101-100000-quickstart-ab12",
        "2026-01-01T10:00:00.000Z",
        &["first"],
        played,
    );
    tell_end(&completed, 8);
    let killed = json!({"state": "running", "scenario": "rescue", "rounds": 3, "n_rounds": 80, "best_accuracy": 41.0});
    left(
        root,
        "20260102-100000-rescue-cd34",
        "2026-01-02T10:00:00.000Z",
        &["first", "long"],
        killed,
    );
    left(
        root,
        "20260103-100000-rescue-cd34",
        "2026-01-03T10:00:00.000Z",
        &[],
        json!({"state": "failed", "error": "out of memory", "rounds": 0}),
    );
    std::fs::create_dir(root.join("20260104-100000-half-made-ef56")).expect("a folder");
    let broken = left(
        root,
        "20260105-100000-broken-ef56",
        "2026-01-05T10:00:00.000Z",
        &[],
        json!({"state": "running"}),
    );
    std::fs::write(broken.join("status.json"), "{\"state\"").expect("written");
    std::fs::write(root.join("latest"), "20260103-100000-rescue-cd34\n").expect("written");
    std::fs::write(root.join("notes.txt"), "mine").expect("written");
}

/// The text without ages, which grow, and without gaps and rules, which depend on their width.
fn shape(table: &str) -> String {
    let is_age = |word: &str| {
        let number = word.trim_end_matches(['s', 'm', 'h', 'd']);
        number.len() + 1 == word.len() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let line = |line: &str| {
        let words = line.split_whitespace().map(|word| match word {
            _ if is_age(word) => "#",
            _ if word.starts_with('─') => "──",
            _ => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    table.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn runs_are_listed_with_their_state_and_what_cannot_be_read_with_the_reason() {
    let root = tempfile::tempdir().expect("a folder");
    several(root.path());
    let out = root.path().display().to_string();

    let table = succeeds(&engine(&["runs", "--out", &out]));

    assert!(
        table
            .lines()
            .all(|line| line.chars().count() <= 80 || line.contains("status.json")),
        "{table}"
    );
    insta::assert_snapshot!(shape(&table));
}

#[test]
fn runs_are_found_by_their_tags() {
    let root = tempfile::tempdir().expect("a folder");
    several(root.path());
    let out = root.path().display().to_string();
    let tagged = |tags: &[&str]| -> Vec<String> {
        let arguments = [&["runs", "--out", &out, "--json"], tags].concat();
        let runs: Value = serde_json::from_str(&succeeds(&engine(&arguments))).expect("JSON");
        let runs = runs.as_array().expect("a list");
        runs.iter()
            .map(|run| run["run_id"].as_str().expect("a name")[..8].into())
            .collect()
    };

    assert_eq!(tagged(&["--tag", "first"]), ["20260102", "20260101"]);
    assert_eq!(tagged(&["--tag", "first", "--tag", "long"]), ["20260102"]);
    assert!(tagged(&["--tag", "other"]).is_empty());
    let none = engine(&["runs", "--out", &out, "--tag", "other"]);
    assert_eq!(text(&none.stderr), format!("there is no run tagged other in {out}\n"));
}

#[test]
fn programs_read_the_list_of_runs() {
    let root = tempfile::tempdir().expect("a folder");
    several(root.path());

    let runs: Value = serde_json::from_str(&succeeds(&engine(&[
        "runs",
        "--out",
        &root.path().to_string_lossy(),
        "--json",
    ])))
    .expect("JSON");

    let states: Vec<&str> = runs
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|run| run["state"].as_str())
        .collect();
    assert_eq!(states, ["unreadable", "failed", "stale", "completed", "unreadable"]);
    assert_eq!(runs[2]["rounds"], 3);
    assert_eq!(runs[2]["n_rounds"], 80);
    assert_eq!(runs[3]["best_accuracy"], 67.5);
    assert!(
        runs[0]["problem"]
            .as_str()
            .expect("a reason")
            .contains("status.json cannot be read")
    );
    assert_eq!(runs[1]["error"], "out of memory");
}

#[test]
fn a_folder_without_runs_has_none_and_one_that_is_not_there_is_an_error() {
    let root = tempfile::tempdir().expect("a folder");

    let none = engine(&["runs", "--out", &root.path().to_string_lossy()]);
    assert_eq!((none.status.code(), none.stdout.len()), (Some(0), 0));
    assert!(text(&none.stderr).starts_with("there is no run in "));
    let gone = refused(&engine(&["runs", "--out", &root.path().join("gone").to_string_lossy()]));
    assert!(gone.starts_with("error: cannot list the runs in "), "{gone}");
}

/// One sentence in every command.
#[test]
fn every_command_says_the_same_of_a_run_that_is_not_there() {
    let root = tempfile::tempdir().expect("a folder");
    several(root.path());
    let out = root.path().display().to_string();
    let why = |run: &str| -> Vec<String> {
        let told = ["show", "resume", "eval"].map(|command| {
            let message = refused(&engine(&[command, run, "--out", &out]));
            message.lines().next().expect("a message").replace(&out, "RUNS")
        });
        told.into()
    };

    for told in why("nope") {
        assert_eq!(
            told,
            "error: there is no run nope in RUNS; `simic-engine runs --out RUNS` lists them all"
        );
    }
    for told in why("quikstart-ab12") {
        assert!(told.contains("did you mean 20260101-100000-quickstart-ab12?"), "{told}");
    }
    for told in why("2026010") {
        assert!(
            told.contains("2026010 may be any of 4 runs in RUNS: 20260105-100000-broken-ef56, "),
            "{told}"
        );
    }
}

#[test]
fn a_run_is_shown_again_by_the_beginning_of_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = finished(folder.path());
    let out = folder.path().join("finished");
    let out = out.to_string_lossy();
    let run_id = run.file_name().expect("a name").to_string_lossy().into_owned();

    let shown = succeeds(&engine(&["show", &run_id[..15], "--out", &out]));

    assert!(shown.starts_with("digits_minimal: 2 envs, 8 steps a round, controller heuristic\n"));
    assert!(
        shown
            .lines()
            .all(|line| line.chars().count() <= 80 || line.starts_with("run directory"))
    );
    assert_eq!(succeeds(&engine(&["show", "latest", "--out", &out])), shown);
    let json: Value =
        serde_json::from_str(&succeeds(&engine(&["show", "latest", "--out", &out, "--json"]))).expect("JSON");
    assert_eq!(
        (&json["state"], &json["finished"]["rounds_done"]),
        (&"completed".into(), &4.into())
    );
    assert_eq!((&json["rounds"], &json["n_rounds"]), (&4.into(), &4.into()));
    assert!(json["best_accuracy"].as_f64().expect("it was measured") > 0.0);
}

/// As `kill -9` leaves it.
#[test]
fn a_run_that_has_not_ended_is_shown_as_it_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = finished(folder.path());
    let path = run.join("events.jsonl");
    let mut events = std::fs::read_to_string(&path).expect("events");
    let end = events.rfind("{\"seq\"").expect("the run has ended");
    assert!(events[end..].contains("run_finished"));
    events.truncate(end);
    std::fs::write(&path, events).expect("written");
    let status = run.join("status.json");
    let text = std::fs::read_to_string(&status).expect("a status");
    std::fs::write(&status, text.replace("completed", "running")).expect("written");
    let place = run.to_string_lossy();

    let claim = RunDirectory::open(&run).and_then(|run| run.claim());
    let played = succeeds(&engine(&["show", &place]));
    drop(claim);
    let stale = succeeds(&engine(&["show", &place]));

    assert!(
        played.starts_with("the run has not ended: it is running, 4 of 4 rounds are played\n\ndigits_minimal: "),
        "{played}"
    );
    assert!(
        stale.starts_with("the run has not ended: its process is gone, 4 of 4 rounds are played; continue with: "),
        "{stale}"
    );
}

#[test]
fn what_is_no_run_is_not_shown() {
    let folder = tempfile::tempdir().expect("a folder");

    let message = refused(&engine(&["show", &folder.path().to_string_lossy()]));

    assert!(
        message.contains("is no run directory: it has no resolved.ron"),
        "{message}"
    );
}
