//! Checks tell damage of a run or a sweep with its place, and the uses that remain.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;

use simic_engine::internals::engine::built_in_names;
use simic_engine::internals::inspect::{CheckVerdict, Use, check as look_through};
use simic_engine::internals::record::RunDirectory;

use crate::program::{
    assert_has, copy, ends_with, engine, engine_at, folder, json, read, refused, succeeds, text, write,
};
use crate::resume::{LEARNED, RULES, begin, finished, play, resume, wait_for_round, write_scenario};

const EVERYTHING: &str = "good for: resume, eval, replay, compare";

fn check(folder: &Path) -> std::process::Output {
    engine(&format!("check '{}'", folder.display()))
}

/// A run of one env and two rounds that has come to its end.
fn small(folder: &Path, policy: &str) -> PathBuf {
    let scenario = folder.join("small.ron");
    let run = "run: (rounds: 2, n_envs: 1, max_steps: 3)";
    let task = r#"task: preset("digits_minimal", (batches_per_step: count(1)))"#;
    write(&scenario, format!("({task}, {run}, {policy})"));
    play(&scenario, &folder.join("runs"))
}

#[test]
fn a_healthy_run_of_one_env_and_two_rounds_is_good_for_everything() {
    let folder = folder();
    let run = small(folder.path(), RULES);
    // Neither is a part of what was trained.
    write(&run.join("command"), "pause");
    fs::create_dir_all(run.join("anomalies/3")).expect("what an anomaly left");

    let said = succeeds(&check(&run));
    let found = json(&succeeds(&engine_at(folder.path(), "check latest --json")));

    assert_eq!(said.lines().last(), Some(EVERYTHING), "{said}");
    assert_eq!(said.matches("  ok  ").count(), 6, "{said}");
    assert_has(&said, &["2 of 2 rounds"]);
    assert_eq!([&found["verdict"], &found["state"]], ["sound", "completed"]);
    assert_eq!(found["good_for"], json!(["resume", "eval", "replay", "compare"]));
}

/// Damage to a file of a run.
enum Damage {
    Delete,
    /// To this number of bytes.
    Truncate(usize),
    /// This many bytes off its end.
    Cut(usize),
    /// Its last line.
    Pop,
    /// This text becomes that one.
    Replace(&'static str, &'static str),
    /// Lines, counted from 0, change places.
    Swap(usize, usize),
    Duplicate(usize),
    Write(&'static str),
    Pipe,
}

/// A file, what is done to it, and the message about that.
type Case<'a> = (&'a str, Damage, &'a str);

fn damage(path: &Path, damage: &Damage) {
    let lines = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<String> = read(path).lines().map(str::to_owned).collect();
        change(&mut lines);
        lines.join("\n") + "\n"
    };
    let text = match damage {
        Damage::Delete if path.is_dir() => return fs::remove_dir_all(path).expect("it goes"),
        Damage::Delete => return fs::remove_file(path).expect("it goes"),
        Damage::Truncate(bytes) => read(path)[..*bytes].to_owned(),
        Damage::Cut(bytes) => read(path)[..read(path).len() - bytes].to_owned(),
        Damage::Pop => lines(&|lines| _ = lines.pop()),
        Damage::Replace(from, to) => {
            assert_has(&read(path), &[from]);
            read(path).replacen(from, to, 1)
        }
        Damage::Swap(one, other) => lines(&|lines| lines.swap(*one, *other)),
        Damage::Duplicate(line) => lines(&|lines| lines.insert(*line, lines[*line].clone())),
        Damage::Write(text) => (*text).to_owned(),
        Damage::Pipe => {
            fs::remove_file(path).expect("it goes");
            let made = std::process::Command::new("mkfifo").arg(path).status();
            return assert!(made.is_ok_and(|made| made.success()));
        }
    };
    write(path, text);
}

#[test]
fn every_damage_is_reported_with_its_file_and_the_uses_that_remain() {
    use Damage::*;
    let (folder, whole) = finished();
    let groups: [(i32, &str, &[Case]); 6] = [
        // Another checkpoint is left, or nothing depends on it.
        (
            1,
            EVERYTHING,
            &[
                ("checkpoints/round-000004", Delete, "it was saved, but is missing"),
                ("checkpoints/last/run.ron", Truncate(40), "round-000004"),
                ("checkpoints/last/policy/controller.ron", Delete, "/controller.ron"),
                ("checkpoints/last/b3sums", Truncate(80), "of its files is incomplete"),
                ("checkpoints/last/run.ron", Pipe, "it isn't a regular file"),
                ("checkpoints/last/stray", Write("x"), "b3sums doesn't list it"),
                ("status.json", Truncate(40), "status.json: "),
                (
                    "manifest.json",
                    Replace("\"profile\"", "\"profilx\""),
                    "manifest.json: it has changed since the run began",
                ),
                (
                    "scenario.ron",
                    Replace("rounds: 4", "rounds: 5"),
                    "scenario.ron: it has changed since the run began",
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
                    "has changed since the run ended",
                ),
                // The last event, which has no hash of itself.
                (
                    "events.jsonl",
                    Replace("\"rounds_done\":4", "\"rounds_done\":5"),
                    "has changed since status.json was written",
                ),
                ("events.jsonl", Cut(9), "bytes when status.json was written"),
                ("events.jsonl", Pop, "bytes when status.json was written"),
                ("events.jsonl", Duplicate(5), "events.jsonl:7 (byte "),
                ("events.jsonl", Swap(4, 5), "out of order"),
                ("events.jsonl", Replace("\"round\":1", "\"round\":0"), "a byte between"),
                ("events.jsonl", Replace("{\"seq\":9,", "{\"seq\":9"), "jsonl:11 (byte "),
            ],
        ),
        (
            6,
            "good for: replay, compare",
            &[
                ("checkpoints", Delete, "there isn't one"),
                ("manifest.json", Truncate(100), "manifest.json: it isn't JSON"),
                ("manifest.json", Pipe, "manifest.json: it isn't a regular file"),
                ("resolved.ron", Delete, "resolved.ron: "),
                ("resolved.ron", Replace("n_envs: 2", "n_envs: -2"), "play it: line"),
            ],
        ),
        (
            6,
            "good for: eval, replay, compare",
            &[
                ("scenario.ron", Delete, "scenario.ron: "),
                (
                    "resolved.ron",
                    Replace("n_envs: 2", "n_envs: 3"),
                    "resolved.ron: it has changed since the run began",
                ),
            ],
        ),
        (
            6,
            "good for: eval",
            &[
                ("events.jsonl", Delete, "events.jsonl: "),
                ("events.jsonl", Pipe, "events.jsonl: it isn't a regular file"),
                ("events.jsonl", Replace("\"schema\":1", "\"schema\":4"), "schema 4"),
            ],
        ),
        // The remains of a process that was killed aren't damage.
        (
            0,
            EVERYTHING,
            &[
                ("status.json.tmp", Write("{"), "half written by a process"),
                ("status.json", Delete, "4 of 4 rounds"),
                ("status.json", Replace("completed", "running"), ": completed"),
                ("checkpoints/.round-000005.new", Write(""), "you can remove it"),
            ],
        ),
    ];
    let run = folder.path().join("damaged");
    for (code, good_for, cases) in groups {
        for (file, done, expected) in cases {
            copy(&whole, &run);
            damage(&run.join(file), done);

            let output = check(&run);

            ends_with(code, &output);
            let table = text(&output.stdout);
            assert_has(&table, &[expected]);
            assert_eq!(table.lines().last(), Some(good_for), "{file}: {table}");
            fs::remove_dir_all(&run).expect("it goes");
        }
    }
}

#[test]
fn a_network_under_the_name_of_another_is_found() {
    let (_folder, run) = finished();
    let network = |env: u32| run.join(format!("networks/round4-env{env}.safetensors"));
    fs::copy(network(1), network(0)).expect("both are kept");

    let output = check(&run);

    ends_with(1, &output);
    let expected = "networks/round4-env0.safetensors: it holds the network of round 4, env 1";
    assert_has(&text(&output.stdout), &[expected]);
}

/// Both are next to the scenario: the networks and the decisions of another run.
#[test]
fn a_run_whose_weights_or_recording_are_not_what_they_were_is_good_for_no_resume() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let play = |name: &str, task: &str, policy: &str| {
        let task = format!(r#"preset("digits_minimal", (batches_per_step: count(1), {task}))"#);
        let text = format!("(task: {task}, run: (rounds: 1, n_envs: 2, max_steps: 2), policy: ({policy}))");
        write(&at(&format!("{name}.ron")), text);
        let line = format!("run {name}.ron --id {name} --progress none");
        succeeds(&engine_at(folder.path(), &line));
        at(&format!("runs/{name}"))
    };
    let first = play("first", "", r#"controller: "wait""#);
    let network = |env: u32| fs::read(first.join(format!("networks/round1-env{env}.safetensors"))).expect("it is kept");
    let (given, other) = (network(0), network(1));
    write(&at("given.safetensors"), &given);
    let replay = r#"controller: "replay", replay: (run: "runs/first")"#;
    let run = play("second", r#"weights: (path: "given.safetensors")"#, replay);
    let good_for = |output: &std::process::Output| text(&output.stdout).lines().last().map(str::to_owned);

    let as_they_were = check(&run);
    write(&at("given.safetensors"), other);
    let other_weights = check(&run);
    write(&at("given.safetensors"), given);
    fs::rename(&first, at("away")).expect("it goes");
    let no_recording = check(&run);

    succeeds(&as_they_were);
    assert_eq!(good_for(&as_they_were).as_deref(), Some(EVERYTHING));
    for (output, expected) in [
        (other_weights, "start from other weights"),
        (no_recording, "`policy.replay.run`: there is no run"),
    ] {
        ends_with(6, &output);
        assert_has(&text(&output.stdout), &["  inputs       problem  ", expected]);
        assert_eq!(good_for(&output).as_deref(), Some("good for: eval, replay, compare"));
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
    let folder = folder();
    let out = folder.path().join("runs");
    let mut child = begin(&write_scenario(folder.path(), RULES, 100_000), &out);
    let run = wait_for_round(&out, 2);
    let listed = || json(&succeeds(&engine_at(folder.path(), "runs --json")))[0]["state"].take();

    let played = succeeds(&check(&run));
    assert_eq!(listed(), "running");
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    assert_eq!(listed(), "stale", "at once, even with a recent heartbeat");
    let events = run.join("events.jsonl");
    write(&events, read(&events) + "{\"seq\":");
    let before = contents(&run);
    let killed = succeeds(&check(&run));

    let first = killed.lines().next().unwrap_or_default();
    assert!(first.ends_with(": stale"), "{killed}");
    assert_has(&killed, &["the last line is incomplete"]);
    assert_eq!(killed.lines().last(), Some(EVERYTHING), "{killed}");
    assert!(contents(&run) == before, "something has changed");
    let claim = RunDirectory::open(&run).and_then(|run| run.claim());
    for said in [played, succeeds(&check(&run))] {
        assert_has(&said, &["a process is playing it"]);
    }
    drop(claim);
}

#[test]
fn a_run_that_was_resumed_and_rewound_is_as_sound_as_one_that_was_not() {
    let (_folder, run) = finished();

    succeeds(&resume(&run, "--from 3"));
    succeeds(&check(&run));
    succeeds(&resume(&run, "--extend 1"));

    assert_has(&succeeds(&check(&run)), &["5 of 5 rounds"]);
}

#[test]
fn a_folder_that_is_not_a_run_is_unusable_and_one_that_is_not_there_is_refused() {
    let folder = folder();

    let nothing = check(folder.path());
    let gone = check(&folder.path().join("gone"));

    ends_with(7, &nothing);
    let expected = "it is neither a run (it has no resolved.ron) nor a sweep";
    assert_has(&text(&nothing.stdout), &[expected, "\ngood for: nothing\n"]);
    assert_has(&refused(&gone), &["there is no run"]);
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
#[ignore = "long tier"]
fn any_flipped_bit_of_a_checkpoint_or_of_the_events_is_found() {
    const FILES: [&str; 6] = [
        "run.ron",
        "b3sums",
        "learner.ron",
        "optim.safetensors",
        "policy/policy.ron",
        "policy/policy.safetensors",
    ];
    let folder = folder();
    let run = small(folder.path(), LEARNED);
    let events = read(&run.join("events.jsonl")).len();
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
            None => verdict_with_flipped_bit(&run, "events.jsonl", events, place, bit),
        };
        prop_assert_ne!(verdict, CheckVerdict::Sound);
    });
}

#[test]
#[ignore = "long tier"]
fn a_sweep_is_checked_with_its_trials_results_and_tables() {
    let folder = folder();
    write_scenario(folder.path(), RULES, 1);
    let file = r#"(name: "pair", scenario: "scenario.ron", replicates: 2, budget: (parallel: 1, threads: 1))"#;
    write(&folder.path().join("sweep.ron"), file);
    succeeds(&engine_at(folder.path(), "sweep sweep.ron"));
    let sweep = folder.path().join("runs/sweeps/pair");
    let plan = json(&read(&sweep.join("plan.json")));
    let id = plan["trials"][0]["id"].as_str().expect("a trial");
    let before = contents(&sweep);

    let said = succeeds(&engine_at(folder.path(), "check pair"));

    assert_eq!(said.lines().last(), Some("good for: sweep work, compare"), "{said}");
    assert!(contents(&sweep) == before, "something has changed");
    let [trial, result] = [format!("trials/{id}"), format!("results/{id}.done.json")];
    let manifest = format!("{trial}/manifest.json");
    let seal = Damage::Replace("\"env_steps\": ", "\"env_steps\": 1");
    let broken_seal = "it has changed since it was written: its seal doesn't match";
    let cell = Damage::Replace("done", "fine");
    let other_cell = "trials.csv: line 2 differs from the results";
    let cases: [(i32, Case); 8] = [
        (1, (&trial, Damage::Delete, "its run is missing")),
        (1, (&manifest, Damage::Delete, "manifest.json: ")),
        (1, (&result, Damage::Truncate(50), "EOF")),
        (1, (&result, seal, broken_seal)),
        (1, ("trials.csv", cell, other_cell)),
        (1, ("curves.csv", Damage::Delete, "`sweep collect` writes it")),
        (6, ("scenario.ron", Damage::Delete, "scenario.ron: ")),
        (7, ("plan.json", Damage::Write("{"), "")),
    ];
    let place = folder.path().join("damaged");
    for (code, (file, done, expected)) in cases {
        copy(&sweep, &place);
        damage(&place.join(file), &done);

        let output = check(&place);

        ends_with(code, &output);
        assert_has(&text(&output.stdout), &[expected]);
        fs::remove_dir_all(&place).expect("it goes");
    }
    copy(&sweep, &place);
    let other = plan["trials"][1]["id"].as_str().expect("a trial");
    let at = |name: &str| place.join("trials").join(name);
    for (from, to) in [(id, "away"), (other, id), ("away", other)] {
        fs::rename(at(from), at(to)).expect("it is renamed");
    }

    let exchanged = check(&place);

    ends_with(1, &exchanged);
    let expected = [id, other].map(|id| format!("trials/{id}/resolved.ron: it isn't the planned scenario"));
    assert_has(&text(&exchanged.stdout), &[&expected[0], &expected[1]]);
}
