//! Stops of a run, runs that `resume` takes or refuses, and its messages.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{
    assert_has, call, command, copy_of, ended, ends_with, engine, events, folder, json, newest, played, read, refused,
    reproducible_events, succeeds, write,
};
use crate::support::{latest, lines};

pub const LEARNED: &str = r#"policy: (controller: "actor_critic")"#;
pub const RULES: &str = r#"policy: (controller: "heuristic")"#;

/// A scenario of short rounds.
pub fn write_scenario(folder: &Path, sections: &str, rounds: u32) -> PathBuf {
    let path = folder.join("scenario.ron");
    let text = format!(
        r#"(
            name: "resumed",
            task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: {rounds}, n_envs: 2, max_steps: 8),
            {sections},
        )"#
    );
    write(&path, text);
    path
}

/// Plays a run to its end, good or bad, and returns its folder.
pub fn play(scenario: &Path, out: &Path) -> PathBuf {
    let [scenario, to] = [scenario, out].map(Path::display);
    engine(&format!("run '{scenario}' --out '{to}' --progress none --threads 2"));
    newest(out)
}

/// A run of four rounds that has come to its end, in a folder that ends with the test.
pub fn finished() -> (tempfile::TempDir, PathBuf) {
    static FINISHED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            play(&write_scenario(folder, RULES, 4), &folder.join("runs"));
        })
    });
    let folder = copy_of(&FINISHED);
    let run = newest(&folder.path().join("runs"));
    (folder, run)
}

/// Begins a process that no one listens to.
fn spawn(command: &mut Command) -> Child {
    let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
    silent.spawn().expect("the engine starts")
}

/// Begins a run in a process of its own.
pub fn begin(scenario: &Path, out: &Path) -> Child {
    let mut run = command("run --progress none --threads 2");
    spawn(run.arg(scenario).arg("--out").arg(out))
}

/// Resumes a run, with further words after its name.
pub fn resume(run: &Path, more: &str) -> Output {
    let run = run.display();
    engine(&format!("resume '{run}' --progress none --threads 2 {more}"))
}

pub fn wait_until(mut condition: impl FnMut() -> bool) {
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

/// Notes of a run.
pub fn notes(run: &Path) -> Vec<Value> {
    let notes = events(run, "note");
    notes.iter().map(|note| note["data"]["text"].clone()).collect()
}

#[test]
fn a_run_in_float16_says_so_and_acts_as_it_evaluates() {
    let folder = folder();
    let in_half = format!("{LEARNED}, training: (amp: fp16), learner: (amp: fp16)");

    let run = play(&write_scenario(folder.path(), &in_half, 2), &folder.path().join("out"));

    let updates = events(&run, "learner_update");
    assert_eq!(updates.len(), 2);
    for update in updates {
        assert_eq!(update["data"]["amp_dtype"], "fp16");
        assert!(update["data"]["loss_scale"].is_number(), "{update}");
        let drift = update["data"]["logp_drift_mean"].as_f64();
        assert!(drift.is_some_and(|drift| drift < 1e-3), "one precision: {drift:?}");
    }
    let mut rounds = events(&run, "round_finished").into_iter();
    assert!(rounds.all(|round| round["data"]["amp"]["scale"][1].is_number()));
    let summary = succeeds(&ended(call("show").arg(&run)));
    assert_has(&summary, &["precision      fp16,"]);
}

#[cfg(unix)]
pub fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &id]).status();
    assert!(sent.expect("kill is there").success());
}

/// The exit code of a child of these tests.
#[cfg(unix)]
fn code(mut child: Child) -> Option<i32> {
    child.wait().expect("it ends").code()
}

#[cfg(unix)]
#[test]
#[ignore = "long tier"]
fn a_signal_stops_a_run_cleanly_and_it_can_be_resumed() {
    let folder = folder();
    let out = folder.path().join("stopped");

    let child = begin(&write_scenario(folder.path(), RULES, 100), &out);
    let run = wait_for_round(&out, 1);
    signal(&child, "INT");
    assert_eq!(code(child), Some(130));
    let interrupted = lines(&run).pop().expect("the record has an end");
    let reached = newest_checkpoint(&run);
    let child = spawn(command("resume --progress none --threads 2").arg(&run));
    wait_until(|| newest_checkpoint(&run) > reached);
    signal(&child, "TERM");
    assert_eq!(code(child), Some(143));
    succeeds(&resume(&run, ""));

    assert_eq!(interrupted["type"], "run_finished");
    assert_eq!(interrupted["data"]["status"], "interrupted");
    assert_eq!(json(&read(&run.join("status.json")))["state"], "completed");
}

/// Returns whether this process was started to outlive its terminal: bit 0 of the kernel's mask is SIGHUP.
#[cfg(target_os = "linux")]
fn ignores_hang_up() -> bool {
    let status = read(Path::new("/proc/self/status"));
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

/// Closing a terminal is a way to stop, unless the run was started with `nohup`.
#[cfg(target_os = "linux")]
#[test]
fn the_end_of_its_terminal_stops_a_run_unless_it_was_started_to_outlive_it() {
    let folder = folder();
    let scenario = write_scenario(folder.path(), RULES, 1000);

    // Tests that ignore it themselves pass that on.
    if !ignores_hang_up() {
        let out = folder.path().join("closed");
        let child = begin(&scenario, &out);
        let run = wait_for_round(&out, 1);
        signal(&child, "HUP");
        signal(&child, "HUP");
        assert_eq!(code(child), Some(129));
        let last = lines(&run).pop().expect("the record has an end");
        assert_eq!(last["data"]["status"], "interrupted");
    }

    let out = folder.path().join("outlives");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    shell.args([crate::program::PROGRAM, "run", "--progress", "none", "--out"]);
    let child = spawn(shell.arg(&out).arg(&scenario));
    wait_for_round(&out, 1);
    signal(&child, "HUP");
    signal(&child, "TERM");
    assert_eq!(code(child), Some(143));
}

#[test]
fn a_finished_run_has_nothing_left_to_do_but_may_be_given_more_rounds() {
    let (_folder, run) = finished();
    let before = read(&run.join("events.jsonl"));

    succeeds(&resume(&run, ""));
    assert_eq!(read(&run.join("events.jsonl")), before);

    succeeds(&resume(&run, "--extend 1"));
    let finished = lines(&run).pop().expect("the record has an end");
    assert_eq!(finished["data"]["rounds_done"], 5);
    succeeds(&resume(&run, ""));
    assert!(run.join("checkpoints/round-000005").exists());
}

/// The first rollout of a resumed run begins with it, after rollouts of any length.
#[test]
#[ignore = "long tier"]
fn checkpoints_of_a_run_that_is_resumed_with_longer_rollouts_follow_these() {
    let folder = folder();
    let in_pairs = format!("{LEARNED}, learner: (episodes_per_update: 2)");
    let run = play(&write_scenario(folder.path(), &in_pairs, 2), &folder.path().join("out"));

    let longer = "--set learner.episodes_per_update=3 --allow learner.episodes_per_update --extend 3";
    succeeds(&resume(&run, longer));

    assert_eq!(events(&run, "learner_update").len(), 2);
    assert_eq!(newest_checkpoint(&run).as_deref(), Some("round-000005"));
}

#[test]
fn a_run_goes_back_to_an_older_checkpoint_and_comes_to_the_same_end() {
    let (_folder, run) = finished();
    let before = reproducible_events(&run);

    succeeds(&resume(&run, "--from 3"));

    assert_eq!(reproducible_events(&run), before);
    assert!(run.join("checkpoints/discarded-1/round-000004").exists());
    assert!(run.join("events.discarded-1.jsonl").exists());
    let unknown = refused(&resume(&run, "--from 9"));
    assert_has(&unknown, &["holds no checkpoint after 9 rounds", "nothing was changed"]);
}

/// A field that changes what is learnt, once it is allowed to, stays changed.
#[test]
fn a_run_is_resumed_with_another_setting_if_that_is_allowed() {
    let (_folder, run) = finished();

    let change = "--set attribution.include_committed=true --allow attribution --extend 1";
    succeeds(&resume(&run, change));
    succeeds(&resume(&run, "--extend 1"));

    let expected = [
        "resumed with attribution.include_committed true instead of false",
        "resumed with run.rounds 5 instead of 4",
        "resumed with run.rounds 6 instead of 5",
    ];
    assert_eq!(notes(&run), expected);
    let progress = read(&run.join("checkpoints/last/run.ron"));
    assert_has(&progress, &["attribution.include_committed=true"]);
}

#[test]
fn a_run_that_ran_out_of_memory_is_resumed_with_more_micro_batches() {
    let folder = folder();
    let fault = format!("{RULES}, faults: [(env: 0, round: 1, step: 2, fault: out_of_memory)]");
    let run = play(&write_scenario(folder.path(), &fault, 2), &folder.path().join("short"));
    let memory = json(&read(&run.join("memory.json")));
    assert_eq!(memory["memory_bytes"].is_u64(), cfg!(target_os = "linux"), "{memory}");
    assert_eq!(memory.get("device_memory_bytes"), None);

    // Unchanged, it fails again, and says what helps.
    let message = ends_with(3, &resume(&run, ""));
    let help = "resume RUN --allow training.micro_batches --set training.micro_batches=N";
    assert_has(&message, &["env 0: no memory is left", help]);

    let allowed = "--allow training.micro_batches --set training.micro_batches=2";
    succeeds(&resume(&run, allowed));

    assert_eq!(events(&run, "round_finished").len(), 2);
}

#[test]
fn a_run_is_resumed_only_as_what_it_was() {
    let (_folder, run) = finished();

    let changed = r#"--set run.n_envs=3 --set lifecycle.slots=["r0c1"] --set attribution.include_committed=true --set run.rounds=2
        --set training.amp=bf16 --allow run.n_envs --allow learner.lr"#;
    let message = refused(&resume(&run, changed));

    let problems = [
        "run.n_envs: the run began with 2, now 3",
        "lifecycle.slots: the run began with",
        "attribution.include_committed: the run has false, now true; --allow attribution.include_committed lets it change",
        "training.amp: the run has \"off\", now \"bf16\"; --allow training.amp lets it change",
        "run.rounds: 4 rounds played already, but only 2 requested",
        "learner.lr: allowed to change, but it does not; change it with --set",
    ];
    assert_has(&message, &problems);
    let twice = refused(&resume(&run, "--extend 1 --set run.rounds=9"));
    assert_has(&twice, &["already given by --extend 1"]);
}

/// As a power cut leaves it where nothing was synchronised: a checkpoint that knows more than the record.
#[test]
fn a_run_whose_record_has_a_hole_is_resumed_and_ends_with_5() {
    let (_folder, run) = finished();
    let path = run.join("events.jsonl");
    let whole = read(&path);
    let events: Vec<&str> = whole.lines().collect();
    write(&path, events[..events.len() / 2].join("\n") + "\n");

    for _ in 0..2 {
        let message = ends_with(5, &resume(&run, "--extend 1"));
        assert_has(&message, &["the record is incomplete: `events.jsonl` is missing"]);
    }

    let finished = lines(&run).pop().expect("the record has an end");
    let missing = finished["data"]["missing_events"].as_u64().expect("a number");
    assert!(missing > 0 && missing < events.len() as u64, "{missing}");
}

#[cfg(unix)]
#[test]
fn a_trial_s_process_ends_where_another_worker_has_taken_its_trial_over() {
    let folder = folder();
    let scenario = write_scenario(folder.path(), RULES, 10_000);
    let successor = folder.path().join("successor");
    let mut run = command("run --progress none --threads 2 --ends-at");
    let playing = spawn(run.arg(&successor).arg(&scenario).arg("--out").arg(folder.path()));

    write(&successor, "");

    assert_eq!(code(playing), Some(143));
}
