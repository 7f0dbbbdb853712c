//! What is wrong with a run or a sweep is told with its place, and so is what it is still good for.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use proptest::prelude::*;
use serde_json::{Value, json};

use simic_engine::internals::engine::built_in_names;
use simic_engine::internals::inspect::{CheckVerdict, Use, check as look_through};
use simic_engine::internals::record::RunDirectory;

use crate::program::{call, ended, engine, engine_at, refused, succeeds, text};
use crate::resume::{RULES, begin, finished, play, wait_for_round};

const EVERYTHING: &str = "good for: resume, eval, replay, compare";

fn check(folder: &Path) -> Output {
    ended(call(&["check"]).arg(folder))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let place = to.join(entry.file_name());
        let kind = entry.file_type().expect("it is there");
        if kind.is_dir() {
            copy(&entry.path(), &place);
        } else if kind.is_symlink() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(fs::read_link(entry.path()).expect("a link"), place).expect("a link");
        } else {
            fs::copy(entry.path(), place).expect("it is copied");
        }
    }
}

/// A run of one env and two rounds that has come to its end.
fn small(folder: &Path, policy: &str) -> PathBuf {
    let scenario = folder.join("small.ron");
    let text = format!(
        r#"(
            name: "small",
            task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: 2, n_envs: 1, max_steps: 3),
            policy: ({policy}),
        )"#
    );
    fs::write(&scenario, text).expect("the scenario is written");
    play(&scenario, &folder.join("small"))
}

#[test]
fn a_healthy_run_of_one_env_and_two_rounds_is_good_for_everything() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = small(folder.path(), RULES);
    // Neither is a part of what was trained.
    fs::write(run.join("command"), "pause").expect("a command that nothing has taken");
    fs::create_dir_all(run.join("anomalies/3")).expect("what an anomaly left");

    let told = succeeds(&check(&run));

    assert_eq!(told.lines().last(), Some(EVERYTHING), "{told}");
    assert_eq!(told.matches("  ok  ").count(), 7, "{told}");
    assert!(told.contains("2 of 2 are played"), "{told}");
    let found: Value = serde_json::from_str(&succeeds(&ended(call(&["check", "--json"]).arg(&run)))).expect("JSON");
    assert_eq!(
        (&found["verdict"], &found["state"]),
        (&json!("sound"), &json!("completed"))
    );
    assert_eq!(found["good_for"], json!(["resume", "eval", "replay", "compare"]));
}

/// What is done to a file of a run.
enum Damage {
    Delete,
    /// To this number of bytes.
    Truncate(usize),
    /// This text becomes that one.
    Replace(&'static str, &'static str),
    /// Lines, counted from 0, change places.
    Swap(usize, usize),
    Duplicate(usize),
    Write(&'static str),
}

/// A file, what is done to it, and what is said of that.
type Case<'a> = (&'a str, Damage, &'a str);

fn damage(path: &Path, damage: &Damage) {
    let read = || fs::read_to_string(path).expect("a text");
    let lines = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<String> = read().lines().map(str::to_owned).collect();
        change(&mut lines);
        lines.join("\n") + "\n"
    };
    let text = match damage {
        Damage::Delete if path.is_dir() => return fs::remove_dir_all(path).expect("it goes"),
        Damage::Delete => return fs::remove_file(path).expect("it goes"),
        Damage::Truncate(bytes) => read()[..*bytes].to_owned(),
        Damage::Replace(from, to) => {
            assert!(read().contains(from), "{from} is not in {}", path.display());
            read().replacen(from, to, 1)
        }
        Damage::Swap(one, other) => lines(&|lines| lines.swap(*one, *other)),
        Damage::Duplicate(line) => lines(&|lines| lines.insert(*line, lines[*line].clone())),
        Damage::Write(text) => (*text).to_owned(),
    };
    fs::write(path, text).expect("it is written");
}

#[test]
fn every_damage_is_told_with_its_file_and_what_the_run_is_still_good_for() {
    use Damage::*;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = finished(folder.path());
    let newest = "checkpoints/round-000004";
    let groups: [(i32, &str, &[Case]); 6] = [
        // Another checkpoint is left, or nothing depends on it.
        (
            1,
            EVERYTHING,
            &[
                (newest, Delete, "it was saved and should be there"),
                ("checkpoints/round-000004/run.ron", Truncate(40), "round-000004"),
                (
                    "checkpoints/round-000004/policy/controller.ron",
                    Delete,
                    "policy/controller.ron",
                ),
                (
                    "checkpoints/round-000004/b3sums",
                    Truncate(80),
                    "list of its files is not whole",
                ),
                ("checkpoints/round-000004/stray", Write("x"), "b3sums does not list it"),
                (
                    "manifest.json",
                    Replace("\"profile\"", "\"profilx\""),
                    "manifest.json: it is not what it was when the run began",
                ),
                (
                    "scenario.ron",
                    Replace("rounds: 4", "rounds: 5"),
                    "scenario.ron: it is not what it was when the run began",
                ),
            ],
        ),
        // Events that a resume gets over.
        (
            1,
            "good for: resume, eval",
            &[
                ("events.jsonl", Write(""), "it is empty"),
                ("events.jsonl", Truncate(3000), "it ends too soon"),
                (
                    "events.jsonl",
                    Replace("\"type\":\"baseline_measured\"", "\"type\":\"baseline_measurex\""),
                    "is not what it was when the run ended",
                ),
                ("events.jsonl", Duplicate(5), "events.jsonl:7 (byte "),
                ("events.jsonl", Swap(4, 5), "out of order"),
                ("events.jsonl", Replace("\"round\":1", "\"round\":0"), "a byte between"),
                (
                    "events.jsonl",
                    Replace("{\"seq\":9,", "{\"seq\":9"),
                    "events.jsonl:11 (byte ",
                ),
            ],
        ),
        (
            6,
            "good for: replay, compare",
            &[
                ("checkpoints", Delete, "there is none"),
                ("manifest.json", Truncate(100), "manifest.json: it is no JSON"),
                ("resolved.ron", Delete, "resolved.ron: "),
                (
                    "resolved.ron",
                    Replace("n_envs: 2", "n_envs: -2"),
                    "this build cannot play it: line",
                ),
            ],
        ),
        (
            6,
            "good for: eval, replay, compare",
            &[
                ("scenario.ron", Delete, "scenario.ron: "),
                ("resolved.ron", Replace("n_envs: 2", "n_envs: 3"), "the manifest names"),
            ],
        ),
        (
            6,
            "good for: eval",
            &[
                ("events.jsonl", Delete, "events.jsonl: "),
                (
                    "events.jsonl",
                    Replace("\"major\":3", "\"major\":4"),
                    "telemetry schema 4",
                ),
            ],
        ),
        // What a process that was killed leaves is no damage.
        (
            0,
            EVERYTHING,
            &[
                ("status.json.tmp", Write("{"), "left half written"),
                ("status.json", Delete, "4 of 4 are played"),
                ("status.json", Replace("completed", "running"), ": completed"),
                ("checkpoints/.round-000005.new", Write(""), "a resume removes it"),
            ],
        ),
    ];
    let run = folder.path().join("damaged");
    for (code, good_for, cases) in groups {
        for (file, done, told) in cases {
            copy(&whole, &run);
            damage(&run.join(file), done);

            let output = check(&run);

            let table = text(&output.stdout);
            assert_eq!(output.status.code(), Some(code), "{file}: {table}");
            assert!(table.contains(told), "{file}: {table}");
            assert_eq!(table.lines().last(), Some(good_for), "{file}: {table}");
            fs::remove_dir_all(&run).expect("it goes");
        }
    }
}

/// The names and contents of all files.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_symlink() {
            files.push((path, Vec::new()));
        } else if path.is_dir() {
            files.extend(contents(&path));
        } else {
            let content = fs::read(&path).expect("it is read");
            files.push((path, content));
        }
    }
    files.sort();
    files
}

#[test]
fn a_run_is_checked_while_it_is_played_and_once_it_was_killed_and_nothing_is_changed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = crate::resume::write_scenario(folder.path(), RULES, 100_000);
    let out = folder.path().join("out");
    let mut child = begin(&scenario, &out);
    let run = wait_for_round(&out, 2);

    let listed = || {
        let runs = succeeds(&ended(call(&["runs", "--json", "--out"]).arg(&out)));
        let runs: Value = serde_json::from_str(&runs).expect("JSON");
        runs[0]["state"].as_str().expect("a state").to_owned()
    };
    let played = succeeds(&check(&run));
    assert_eq!(listed(), "running");
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    assert_eq!(listed(), "stale", "at once, even with a recent heartbeat");
    let mut events = OpenOptions::new()
        .append(true)
        .open(run.join("events.jsonl"))
        .expect("events");
    events.write_all(b"{\"seq\":").expect("half a line");
    let before = contents(&run);
    let killed = succeeds(&check(&run));

    assert!(played.contains("a process is playing it"), "{played}");
    assert!(
        killed.lines().next().is_some_and(|line| line.ends_with(": stale")),
        "{killed}"
    );
    assert!(killed.contains("the last line has no end"), "{killed}");
    assert_eq!(killed.lines().last(), Some(EVERYTHING), "{killed}");
    assert!(contents(&run) == before, "something has changed");
    let claim = RunDirectory::open(&run).and_then(|run| run.claim());
    assert!(succeeds(&check(&run)).contains("a process is playing it"));
    drop(claim);
}

#[test]
fn a_run_that_was_resumed_and_rewound_is_as_sound_as_one_that_was_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());

    succeeds(&crate::resume::resume(&run, &["--from", "3"]));
    succeeds(&check(&run));
    succeeds(&crate::resume::resume(&run, &["--extend", "1"]));

    let told = succeeds(&check(&run));
    assert!(told.contains("5 of 5 are played"), "{told}");
}

#[test]
fn a_folder_that_is_no_run_is_unusable_and_one_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let nothing = check(folder.path());
    let gone = check(&folder.path().join("gone"));

    assert_eq!(nothing.status.code(), Some(7));
    let told = text(&nothing.stdout);
    assert!(
        told.contains("it is neither a run (it has no resolved.ron) nor a sweep"),
        "{told}"
    );
    assert_eq!(told.lines().last(), Some("good for: nothing"));
    assert!(refused(&gone).contains("there is no run"));
}

/// Flips a bit of the byte at `place`, a part of the file's length, and says what the check says then.
fn verdict_with_flipped_bit(run: &Path, file: &str, length: usize, place: f64, bit: u32) -> CheckVerdict {
    let path = run.join(file);
    let whole = fs::read(&path).expect("there is a file");
    let mut bytes = whole.clone();
    bytes[(place * length as f64) as usize] ^= 1 << bit;
    fs::write(&path, &bytes).expect("it is damaged");
    let found = look_through(run, &built_in_names());
    fs::write(&path, whole).expect("it is repaired");
    found.verdict
}

#[test]
fn any_flipped_bit_of_a_checkpoint_or_of_the_events_that_it_has_seen_is_found() {
    const FILES: [&str; 6] = [
        "run.ron",
        "b3sums",
        "learner.ron",
        "optim.safetensors",
        "policy/policy.ron",
        "policy/policy.safetensors",
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = small(folder.path(), r#"controller: "actor_critic", preset: "lstm_small""#);
    let newest = fs::read_to_string(run.join("checkpoints/round-000002/run.ron")).expect("there is one");
    let (_, seen) = newest.split_once("bytes: ").expect("it has seen events");
    let seen: usize = seen
        .split(',')
        .next()
        .and_then(|bytes| bytes.parse().ok())
        .expect("a number");
    let sound = look_through(&run, &built_in_names());
    assert_eq!(
        (sound.verdict, sound.good_for.contains(&Use::Resume)),
        (CheckVerdict::Sound, true)
    );

    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(48)
    };
    proptest!(config, |(file in 0..=FILES.len(), place in 0.0..1.0_f64, bit in 0_u32..8)| {
        let verdict = match FILES.get(file) {
            Some(file) => {
                let file = format!("checkpoints/round-000002/{file}");
                let length = fs::metadata(run.join(&file)).expect("there is a file").len();
                verdict_with_flipped_bit(&run, &file, length as usize, place, bit)
            }
            None => verdict_with_flipped_bit(&run, "events.jsonl", seen, place, bit),
        };
        prop_assert_ne!(verdict, CheckVerdict::Sound);
    });
}

/// A sweep of two trials that has been played.
fn played_sweep(folder: &Path) -> PathBuf {
    fs::write(
        folder.join("short.ron"),
        r#"(
            name: "short",
            task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: 1, n_envs: 1, max_steps: 2),
            policy: (controller: "heuristic"),
        )"#,
    )
    .expect("a scenario");
    let sweep = r#"(name: "pair", scenario: "short.ron", axes: [], replicates: 2, budget: (parallel: 1, threads: 1))"#;
    fs::write(folder.join("sweep.ron"), sweep).expect("a sweep");
    succeeds(&engine_at(folder, &["sweep", "sweep.ron"]));
    folder.join("runs/sweeps/pair")
}

#[test]
fn a_sweep_is_checked_with_its_trials_results_and_tables() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sweep = played_sweep(folder.path());
    let plan: Value = serde_json::from_slice(&fs::read(sweep.join("plan.json")).expect("a plan")).expect("JSON");
    let id = plan["trials"][0]["id"].as_str().expect("a trial").to_owned();
    let before = contents(&sweep);

    let told = succeeds(&engine_at(folder.path(), &["check", "pair"]));

    assert_eq!(told.lines().last(), Some("good for: sweep work, compare"), "{told}");
    assert!(contents(&sweep) == before, "something has changed");
    let cases = [
        (format!("trials/{id}"), Damage::Delete, "its run is not there"),
        (format!("trials/{id}/manifest.json"), Damage::Delete, "manifest.json: "),
        (format!("results/{id}.done.json"), Damage::Truncate(50), "EOF"),
        (
            format!("results/{id}.done.json"),
            Damage::Replace("\"env_steps\": ", "\"env_steps\": 1"),
            "it is not what was written: its seal does not fit",
        ),
        (
            "trials.csv".into(),
            Damage::Replace("done", "fine"),
            "trials.csv: line 2 is not what the results say",
        ),
        ("curves.csv".into(), Damage::Delete, "`sweep collect` writes it"),
        ("scenario.ron".into(), Damage::Delete, "scenario.ron: "),
    ];
    for (number, (file, done, expected)) in cases.iter().enumerate() {
        let place = folder.path().join(number.to_string());
        copy(&sweep, &place);
        damage(&place.join(file), done);
        let output = check(&place);
        let table = text(&output.stdout);
        assert!(table.contains(expected), "{file}: {table}");
        let code = if file == "scenario.ron" { 6 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{file}: {table}");
    }
    fs::write(sweep.join("plan.json"), "{").expect("it is damaged");
    let output = engine(&["check", &sweep.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stdout));
}
