//! What stops a run, what `resume` takes and refuses, and what it says.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{call, command, ended, newest, refused, reproducible_events, succeeds, text};
use crate::support::latest;

const LEARNED: &str = r#"controller: "actor_critic", preset: "lstm_small""#;
pub const RULES: &str = r#"controller: "heuristic""#;

/// A scenario of short rounds.
pub fn write_scenario(folder: &Path, policy: &str, rounds: u32) -> PathBuf {
    let path = folder.join("scenario.ron");
    let text = format!(
        r#"(
            name: "resumed",
            task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: {rounds}, n_envs: 2, max_steps: 8, keep_last: 2),
            policy: ({policy}),
        )"#
    );
    std::fs::write(&path, text).expect("the scenario is written");
    path
}

fn engine(arguments: &[&str]) -> Command {
    command(&[arguments, &["--threads", "2"]].concat())
}

/// Plays a run to its end, good or bad, and returns its folder.
pub fn play(scenario: &Path, out: &Path) -> PathBuf {
    let mut call = call(&["run", "--progress", "none", "--threads", "2"]);
    ended(call.arg(scenario).arg("--out").arg(out));
    newest(out)
}

pub fn begin(scenario: &Path, out: &Path) -> Child {
    engine(&["run", "--progress", "none"])
        .arg(scenario)
        .arg("--out")
        .arg(out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts")
}

pub fn resume(run: &Path, arguments: &[&str]) -> Output {
    let mut call = call(&["resume", "--progress", "none", "--threads", "2"]);
    ended(call.arg(run).args(arguments))
}

fn begin_resumed(run: &Path) -> Child {
    engine(&["resume", "--progress", "none"])
        .arg(run)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts")
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Name of the newest checkpoint.
fn newest_checkpoint(run: &Path) -> Option<String> {
    let entries = std::fs::read_dir(run.join("checkpoints")).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("round-") && !name.contains('.'))
        .max()
}

/// Waits until the checkpoint before `round` is there.
pub fn wait_for_round(out: &Path, round: u32) -> PathBuf {
    let checkpoint = format!("checkpoints/round-{round:06}");
    wait_until(|| latest(out).join(&checkpoint).exists());
    newest(out)
}

/// Updates that were told, wall times left out.
fn updates(run: &Path) -> Vec<Value> {
    let mut events = reproducible_events(run);
    events.retain(|event| event["type"] == "learner_update");
    events
}

#[test]
fn a_run_in_float16_says_so_and_acts_as_it_evaluates() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let in_half = format!("{LEARNED}), training: (amp: fp16), learner: (amp: fp16");
    let scenario = write_scenario(folder.path(), &in_half, 2);
    let out = folder.path().join("out");

    begin(&scenario, &out).wait().expect("the run ends");

    let run = newest(&out);
    let updates = updates(&run);
    assert_eq!(updates.len(), 2);
    for update in updates {
        assert_eq!(update["data"]["amp_dtype"], "fp16");
        assert!(update["data"]["loss_scale"].is_number(), "{update}");
        let drift = update["data"]["logp_drift_mean"].as_f64();
        assert!(drift.is_some_and(|drift| drift < 1e-3), "one precision: {drift:?}");
    }
    let rounds = reproducible_events(&run);
    let mut rounds = rounds.iter().filter(|event| event["type"] == "round_finished");
    assert!(rounds.all(|round| round["data"]["amp"]["scale"][1].is_number()));
    let summary = succeeds(&ended(call(&["show"]).arg(&run)));
    assert!(summary.contains("precision      fp16,"), "{summary}");
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .expect("kill is there");
    assert!(status.success());
}

#[cfg(unix)]
#[test]
fn a_signal_stops_a_run_cleanly_and_it_can_be_resumed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = write_scenario(folder.path(), RULES, 100);
    let out = folder.path().join("stopped");

    let mut child = begin(&scenario, &out);
    let run = wait_for_round(&out, 1);
    signal(&child, "INT");
    assert_eq!(child.wait().expect("the run ends").code(), Some(130));
    let interrupted = crate::support::lines(&run);
    let reached = newest_checkpoint(&run);
    let mut child = begin_resumed(&run);
    wait_until(|| newest_checkpoint(&run) > reached);
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("the run ends").code(), Some(143));
    succeeds(&resume(&run, &[]));

    let last = interrupted.last().expect("the record has an end");
    assert_eq!(last["type"], "run_finished");
    assert_eq!(last["data"]["status"], "interrupted");
    let status = std::fs::read_to_string(run.join("status.json")).expect("status.json exists");
    assert!(status.contains("\"completed\""), "{status}");
}

/// Whether this process was started to outlive its terminal: bit 0 of the kernel's mask is SIGHUP.
#[cfg(target_os = "linux")]
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

/// Closing a terminal is a way to stop; `nohup` says that it is none.
#[cfg(target_os = "linux")]
#[test]
fn the_end_of_its_terminal_stops_a_run_unless_it_was_told_to_outlive_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = write_scenario(folder.path(), RULES, 1000);

    // Tests that were told so themselves pass it on.
    if !ignores_hang_up() {
        let out = folder.path().join("closed");
        let mut child = begin(&scenario, &out);
        let run = wait_for_round(&out, 1);
        signal(&child, "HUP");
        signal(&child, "HUP");
        assert_eq!(child.wait().expect("the run ends").code(), Some(129));
        let last = crate::support::lines(&run).pop().expect("the record has an end");
        assert_eq!(last["data"]["status"], "interrupted");
    }

    let out = folder.path().join("outlives");
    let mut child = Command::new("sh")
        .args([
            "-c",
            "trap '' HUP; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_simic-engine"),
        ])
        .args(["run", "--progress", "none"])
        .arg(&scenario)
        .arg("--out")
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    wait_for_round(&out, 1);
    signal(&child, "HUP");
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("the run ends").code(), Some(143));
}

#[test]
fn a_finished_run_has_nothing_left_to_do_but_may_be_given_more_rounds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = write_scenario(folder.path(), RULES, 4);
    let run = play(&scenario, &folder.path().join("alone"));
    let before = std::fs::read(run.join("events.jsonl")).expect("events.jsonl exists");

    succeeds(&resume(&run, &[]));
    assert_eq!(
        std::fs::read(run.join("events.jsonl")).expect("events.jsonl exists"),
        before
    );

    succeeds(&resume(&run, &["--extend", "1"]));
    let finished = crate::support::lines(&run).pop().expect("the record has an end");
    assert_eq!(finished["data"]["rounds_done"], 5);
    succeeds(&resume(&run, &[]));
    assert!(run.join("checkpoints/round-000005").exists());
}

/// A run of four rounds that has come to its end.
pub fn finished(folder: &Path) -> PathBuf {
    let scenario = write_scenario(folder, RULES, 4);
    play(&scenario, &folder.join("finished"))
}

/// The first rollout of a resumed run begins with it, after rollouts of any length.
#[test]
fn checkpoints_of_a_run_that_is_resumed_with_longer_rollouts_follow_these() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = write_scenario(folder.path(), LEARNED, 2);
    let text = std::fs::read_to_string(&scenario).expect("there is a scenario");
    let in_pairs = text.replace("policy:", "learner: (episodes_per_update: 2), policy:");
    std::fs::write(&scenario, in_pairs).expect("it is written");
    let run = play(&scenario, &folder.path().join("out"));
    let longer = [
        "--set",
        "learner.episodes_per_update=3",
        "--allow",
        "learner.episodes_per_update",
    ];

    succeeds(&resume(&run, &[&longer[..], &["--extend", "3"]].concat()));

    assert_eq!(updates(&run).len(), 2);
    assert_eq!(newest_checkpoint(&run).as_deref(), Some("round-000005"));
}

#[test]
fn a_run_goes_back_to_an_older_checkpoint_and_comes_to_the_same_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let before = reproducible_events(&run);

    succeeds(&resume(&run, &["--from", "3"]));

    assert_eq!(reproducible_events(&run), before);
    assert!(run.join("checkpoints/discarded-1/round-000004").exists());
    assert!(run.join("events.discarded-1.jsonl").exists());
    let unknown = resume(&run, &["--from", "9"]);
    let message = refused(&unknown);
    assert!(message.contains("holds no checkpoint after 9 rounds"), "{message}");
    assert!(message.contains("nothing was changed"));
}

/// A field that changes what is learnt, once it is allowed to, stays changed.
#[test]
fn a_run_is_resumed_with_another_setting_if_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let change = [
        "--set",
        "attribution.pairs_max=3",
        "--allow",
        "attribution",
        "--extend",
        "1",
    ];

    succeeds(&resume(&run, &change));
    succeeds(&resume(&run, &["--extend", "1"]));

    let notes: Vec<_> = crate::support::lines(&run)
        .iter()
        .filter(|line| line["type"] == "note")
        .map(|line| line["data"]["text"].clone())
        .collect();
    let expected = [
        "resumed with attribution.pairs_max 3 instead of 8",
        "resumed with run.rounds 5 instead of 4",
        "resumed with run.rounds 6 instead of 5",
    ];
    assert_eq!(notes, expected);
    let progress = std::fs::read_to_string(run.join("checkpoints/last/run.ron")).expect("run.ron exists");
    assert!(progress.contains("attribution.pairs_max=3"), "{progress}");
}

#[test]
fn a_run_that_ran_out_of_memory_is_resumed_with_more_micro_batches() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = write_scenario(folder.path(), RULES, 2);
    let fault = "faults: [(env: 0, round: 1, step: 2, fault: out_of_memory)], policy:";
    let short = std::fs::read_to_string(&scenario).expect("there is a scenario");
    std::fs::write(&scenario, short.replace("policy:", fault)).expect("it is written");
    let run = play(&scenario, &folder.path().join("short"));

    // As it is it fails again, and says what helps.
    let failed = resume(&run, &[]);
    let message = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(3), "{message}");
    assert!(message.contains("env 0: no memory is left"), "{message}");
    assert!(
        message.contains("resume RUN --allow training.micro_batches --set training.micro_batches=N"),
        "{message}"
    );

    succeeds(&resume(
        &run,
        &["--allow", "training.micro_batches", "--set", "training.micro_batches=2"],
    ));

    let rounds = crate::support::lines(&run).into_iter();
    let rounds: Vec<_> = rounds.filter(|line| line["type"] == "round_finished").collect();
    assert_eq!(rounds.len(), 2);
}

#[test]
fn a_run_is_resumed_only_as_what_it_was() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());

    let changed = [
        "run.n_envs=3",
        "lifecycle.slots=[\"r0c1\"]",
        "attribution.pairs_max=3",
        "run.rounds=2",
    ];
    let mut arguments: Vec<&str> = changed.iter().flat_map(|change| ["--set", change]).collect();
    arguments.extend(["--allow", "run.n_envs", "--allow", "learner.lr"]);
    let output = resume(&run, &arguments);

    let message = refused(&output);
    for problem in [
        "run.n_envs: the run began with 2, now 3",
        "lifecycle.slots: the run began with",
        "attribution.pairs_max: the run has 8, now 3; --allow attribution.pairs_max lets it change",
        "run.rounds: 4 rounds have been played already, 2 are asked for",
        "learner.lr: allowed to change, but it does not; change it by --set",
    ] {
        assert!(message.contains(problem), "{problem}: {message}");
    }
    let twice = resume(&run, &["--extend", "1", "--set", "run.rounds=9"]);
    let message = refused(&twice);
    assert!(message.contains("already given by --extend 1"), "{message}");
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let output = resume(folder.path(), &[]);

    assert!(refused(&output).contains("no run directory"));
}

/// As a power cut leaves it where nothing was synchronised: a checkpoint that knows more than the record.
#[test]
fn a_run_whose_record_has_a_hole_is_resumed_and_ends_with_5() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let path = run.join("events.jsonl");
    let events = std::fs::read_to_string(&path).expect("events.jsonl exists");
    let lines: Vec<&str> = events.lines().collect();
    let half = lines[..lines.len() / 2].join("\n") + "\n";
    std::fs::write(&path, half).expect("events.jsonl can be written");

    let first = resume(&run, &["--extend", "1"]);
    let second = resume(&run, &["--extend", "1"]);

    for output in [first, second] {
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{message}");
        assert!(
            message.contains("the record is incomplete: `events.jsonl` is missing"),
            "{message}"
        );
    }
    let finished = crate::support::lines(&run).pop().expect("the record has an end");
    let missing = finished["data"]["missing_events"].as_u64().expect("it is told");
    assert!(missing > 0 && missing < lines.len() as u64, "{missing}");
}

#[test]
fn a_trial_s_process_ends_where_another_worker_has_taken_its_trial_over() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = write_scenario(folder.path(), RULES, 10_000);
    let successor = folder.path().join("successor");
    let mut playing = engine(&["run", "--progress", "none"])
        .arg("--ends-at")
        .arg(&successor)
        .arg(&scenario)
        .arg("--out")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");

    std::fs::write(&successor, "").expect("the folder can be written");

    let status = playing.wait().expect("it ends");
    assert_eq!(status.code(), Some(143), "{status}");
}
