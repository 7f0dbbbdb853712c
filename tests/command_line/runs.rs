//! Runs are found again: listed, shown, and known by the beginning of their names.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use simic_engine::internals::record::RunDirectory;

use crate::program::{assert_has, each, engine, engine_at, folder, json, read, refused, succeeds, text, write};
use crate::resume::finished;

/// A run that was left in some state long ago.
fn left(root: &Path, name: &str, tags: &[&str], state: &Value) -> PathBuf {
    let folder = root.join("runs").join(name);
    let mut status = json!({"pid": u32::MAX, "heartbeat": "2026-01-01T00:00:00.000Z", "episodes": 0});
    let fields = status.as_object_mut().expect("fields");
    fields.extend(state.as_object().expect("fields").clone());
    let created = format!("2026-01-{}T10:00:00.000Z", &name[6..8]);
    let manifest = json!({"run_id": name, "created": created, "tags": tags});
    write(&folder.join("status.json"), status.to_string());
    write(&folder.join("manifest.json"), manifest.to_string());
    write(&folder.join("resolved.ron"), "{}");
    folder
}

/// One run of every fate, in the folder `runs`.
fn several() -> tempfile::TempDir {
    let root = folder();
    let left = |name: &str, tags: &[&str], state: Value| left(root.path(), name, tags, &state);
    let played = json!({
        "state": "running", "scenario": "quickstart", "rounds": 7, "n_rounds": 8, "best_accuracy": 67.5
    });
    let completed = left("20260101-100000-quickstart-ab12", &["first"], played);
    let end = json!({"seq": 0, "t": "2026-01-01T00:00:00.000Z", "type": "run_finished", "sev": "info", "data": {
        "status": "completed", "rounds_done": 8, "episodes_done": 0, "updates": 0, "wall_s": 1.0, "rollbacks": 0,
        "dropped_events": 0,
    }});
    write(&completed.join("events.jsonl"), format!("{end}\n"));
    let killed = json!({"state": "running", "scenario": "rescue", "rounds": 3, "n_rounds": 80, "best_accuracy": 41.0});
    left("20260102-100000-rescue-cd34", &["first", "long"], killed);
    let failed = json!({"state": "failed", "error": "out of memory", "rounds": 0});
    left("20260103-100000-rescue-cd34", &[], failed);
    let broken = left("20260105-100000-broken-ef56", &[], json!({"state": "running"}));
    write(&broken.join("status.json"), "{\"state\"");
    let runs = root.path().join("runs");
    std::fs::create_dir(runs.join("20260104-100000-half-made-ef56")).expect("a folder");
    write(&runs.join("latest"), "20260103-100000-rescue-cd34\n");
    write(&runs.join("notes.txt"), "mine");
    root
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
    let root = several();

    let table = succeeds(&engine_at(root.path(), "runs"));

    let is_narrow = |line: &str| line.chars().count() <= 80 || line.contains("status.json");
    assert!(table.lines().all(is_narrow), "{table}");
    insta::assert_snapshot!(shape(&table));
}

#[test]
fn runs_are_found_by_their_tags() {
    let root = several();
    let tagged = |tags: &str| -> Vec<String> {
        let runs = json(&succeeds(&engine_at(root.path(), &format!("runs --json {tags}"))));
        let names = each(&runs, "run_id").into_iter();
        names.map(|name| name.as_str().expect("a name")[..8].into()).collect()
    };

    assert_eq!(tagged("--tag first"), ["20260102", "20260101"]);
    assert_eq!(tagged("--tag first --tag long"), ["20260102"]);
    assert!(tagged("--tag other").is_empty());
    let none = text(&engine_at(root.path(), "runs --tag other").stderr);
    let runs = root.path().join("runs");
    assert_eq!(none, format!("there is no run tagged other in {}\n", runs.display()));
}

#[test]
fn programs_read_the_list_of_runs() {
    let root = several();

    let runs = json(&succeeds(&engine_at(root.path(), "runs --json")));

    let states = ["unreadable", "failed", "stale", "completed", "unreadable"];
    assert_eq!(each(&runs, "state"), states);
    assert_eq!([&runs[2]["rounds"], &runs[2]["n_rounds"]], [3, 80]);
    assert_eq!(runs[3]["best_accuracy"], 67.5);
    assert_has(&runs[0]["problem"].to_string(), &["status.json cannot be read"]);
    assert_eq!(runs[1]["error"], "out of memory");
}

#[test]
fn a_folder_without_runs_has_none_and_one_that_is_not_there_is_an_error() {
    let root = folder();

    let none = engine_at(root.path(), "runs --out .");
    assert_eq!(succeeds(&none), "");
    assert!(text(&none.stderr).starts_with("there is no run in "));
    let gone = refused(&engine_at(root.path(), "runs --out gone"));
    assert!(gone.starts_with("error: cannot list the runs in "), "{gone}");
}

/// One sentence in every command.
#[test]
fn every_command_says_the_same_of_a_run_that_is_not_there() {
    let root = several();
    let out = root.path().join("runs").display().to_string();
    let why = |run: &str| {
        ["show", "resume", "eval"].map(|command| {
            let message = refused(&engine_at(root.path(), &format!("{command} {run}")));
            message.lines().next().expect("a message").replace(&out, "RUNS")
        })
    };

    let none = "error: there is no run nope in RUNS; `simic-engine runs --out RUNS` lists them all";
    assert_eq!(why("nope"), [none; 3]);
    for said in why("quikstart-ab12") {
        assert_has(&said, &["did you mean 20260101-100000-quickstart-ab12?"]);
    }
    let ambiguous = "2026010 may be any of 4 runs in RUNS: 20260105-100000-broken-ef56, ";
    for said in why("2026010") {
        assert_has(&said, &[ambiguous]);
    }
}

#[test]
fn every_command_says_the_same_of_a_folder_that_is_not_a_run() {
    let root = folder();
    let at = root.path().display();
    let expected = format!("{at} isn't a run directory: it has no resolved.ron");

    for command in ["show", "resume", "export-tables -o tables", &format!("diff '{at}'")] {
        assert_has(&refused(&engine(&format!("{command} '{at}'"))), &[&expected]);
    }
}

#[test]
fn a_run_is_shown_again_by_the_beginning_of_its_name() {
    let (folder, run) = finished();
    let beginning = &run.file_name().expect("a name").to_string_lossy()[..15];
    let show = |words: &str| succeeds(&engine_at(folder.path(), &format!("show {words}")));

    let shown = show(beginning);

    assert!(shown.starts_with("digits_minimal: 2 envs, 8 steps a round, controller heuristic\n"));
    // Paths are as long as they are.
    let is_narrow = |line: &str| line.chars().count() <= 80 || line.contains(beginning);
    assert!(shown.lines().all(is_narrow), "{shown}");
    assert_eq!(show("latest"), shown);
    let json = json(&show("latest --json"));
    assert_eq!(json["state"], "completed");
    let rounds = [&json["finished"]["rounds_done"], &json["rounds"], &json["n_rounds"]];
    assert_eq!(rounds, [4; 3]);
    assert!(json["best_accuracy"].as_f64().expect("it was measured") > 0.0);
}

/// As `kill -9` leaves it.
#[test]
fn a_run_that_has_not_ended_is_shown_so_far() {
    let (folder, run) = finished();
    let path = run.join("events.jsonl");
    let events = read(&path);
    let (events, end) = events.split_at(events.rfind("{\"seq\"").expect("the run has ended"));
    assert_has(end, &["run_finished"]);
    write(&path, events);
    let status = run.join("status.json");
    write(&status, read(&status).replace("completed", "running"));
    let show = || succeeds(&engine_at(folder.path(), "show latest"));

    let claim = RunDirectory::open(&run).and_then(|run| run.claim());
    let played = show();
    drop(claim);
    let stale = show();

    let expected = "the run has not ended: it is running, 4 of 4 rounds are played\n\ndigits_minimal: ";
    assert!(played.starts_with(expected), "{played}");
    let expected = "the run has not ended: its process is gone, 4 of 4 rounds are played; continue with: ";
    assert!(stale.starts_with(expected), "{stale}");
    std::fs::remove_dir_all(run.join("checkpoints")).expect("they are there");
    let expected = "has no checkpoint to continue from; start it again with `simic-engine run ";
    assert_has(&show(), &[expected]);
}
