//! The command `run` as a user meets it: what it leaves behind, what it prints where, and how it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Call, Ends, call, command, ended, engine, newest, refused, repository, succeeds, text};
use crate::support::latest;

/// The smallest run there is, into the folder that follows.
const SHORT: [&str; 11] = [
    "run",
    "scenarios/quickstart.ron",
    "--rounds",
    "1",
    "--envs",
    "2",
    "--steps",
    "2",
    "--set",
    "task.batches_per_step=count(1)",
    "--out",
];

fn short_run(out: &Path) -> Call {
    let mut call = call(&SHORT);
    call.arg(out);
    call
}

/// The same in a process of its own.
fn short_process(out: &Path) -> Command {
    let mut command = command(&SHORT);
    command.arg(out);
    command
}

/// Standard output of a command that must succeed.
fn stdout(command: &mut impl Ends) -> String {
    succeeds(&ended(command))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_leaves_one_folder_with_its_whole_record() {
    let root = tempfile::tempdir().expect("a folder");

    let end = json(&stdout(
        short_run(root.path()).args(["--json", "--tag", "first", "--tag", "short"]),
    ));

    assert_eq!(end["status"], "completed");
    assert_eq!(end["rounds_done"], 1);
    assert_eq!(end["origins"]["run.rounds"], "--rounds 1");
    assert_eq!(end["origins"]["run.seed"], "scenarios/quickstart.ron:21:15");
    let run_id = end["run_id"].as_str().expect("a run id");
    assert_eq!(names(root.path()), [run_id, "latest"]);
    let run = latest(root.path());
    assert_eq!(
        names(&run),
        [
            "checkpoints",
            "events.jsonl",
            "log.txt",
            "manifest.json",
            "networks",
            "resolved.ron",
            "scenario.ron",
            "status.json"
        ]
    );
    let source = repository().join("scenarios/quickstart.ron");
    assert_eq!(read(run.join("scenario.ron")), read(source));
    assert!(read(run.join("resolved.ron")).contains("rounds: 1"));
    assert_eq!(json(&read(run.join("status.json")))["state"], "completed");
    assert!(read(run.join("log.txt")).contains(run_id));
}

#[test]
fn the_manifest_records_what_was_run_with_what_and_no_names_of_people_unasked() {
    let root = tempfile::tempdir().expect("a folder");
    stdout(short_process(root.path()).args(["--tag", "first"]));

    let manifest = json(&read(latest(root.path()).join("manifest.json")));

    assert_eq!(manifest["tags"], json(r#"["first"]"#));
    assert_eq!(manifest["scenario_path"], "scenarios/quickstart.ron");
    let build = &manifest["build"];
    assert!(build["rustc"].as_str().expect("the compiler").starts_with("rustc 1."));
    assert_eq!(build["target"].as_str().expect("the target").split('-').count(), 4);
    // Where there is a commit it is known whether anything differed from it.
    assert_eq!(build.get("git_commit").is_some(), build["git_dirty"].is_boolean());
    assert_eq!(manifest["plugins"]["GovernorPlugin"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["plugins"].as_object().map(|plugins| plugins.len()), Some(15));
    let resolved = read(latest(root.path()).join("resolved.ron"));
    assert_eq!(
        manifest["scenario_hash"],
        blake3::hash(resolved.as_bytes()).to_hex().as_str()
    );
    assert!(manifest.get("host_name").is_none() && manifest.get("user_name").is_none());
}

#[test]
fn a_user_who_asks_to_be_named_is() {
    let root = tempfile::tempdir().expect("a folder");
    stdout(short_process(root.path()).arg("--identify").env("USER", "ada"));

    assert_eq!(
        json(&read(latest(root.path()).join("manifest.json")))["user_name"],
        "ada"
    );
}

#[test]
fn runs_side_by_side_in_one_process_have_logs_of_their_own() {
    let roots = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));

    std::thread::scope(|scope| {
        for root in &roots {
            scope.spawn(|| stdout(&mut short_run(root.path())));
        }
    });

    for root in &roots {
        let run = newest(root.path());
        let begun = format!(
            "a run begins run=\"{}\"",
            run.file_name().expect("a name").to_string_lossy()
        );
        let log = read(run.join("log.txt"));
        assert_eq!(
            (log.matches(&begun).count(), log.matches("a run begins").count()),
            (1, 1),
            "{log}"
        );
    }
}

#[test]
fn a_second_run_touches_nothing_of_the_first() {
    let root = tempfile::tempdir().expect("a folder");
    stdout(&mut short_run(root.path()));
    let first = latest(root.path()).canonicalize().expect("a run");
    let before = read(first.join("events.jsonl"));

    stdout(&mut short_run(root.path()));

    assert_eq!(read(first.join("events.jsonl")), before);
    let second = latest(root.path()).canonicalize().expect("a run");
    assert_ne!(first, second);
    assert_eq!(names(root.path()).len(), 3);
}

#[test]
fn a_rollout_of_few_decisions_is_told_once() {
    let root = tempfile::tempdir().expect("a folder");
    let size = ["--rounds", "2", "--envs", "2", "--steps", "2"];
    let mut run = call(&["run", "scenarios/quickstart.ron", "--progress", "none", "-v"]);
    run.args(size)
        .args(["--set", "task.batches_per_step=count(1)", "--out"])
        .arg(root.path());

    let ended = ended(&mut run);

    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let remarks = text(&ended.stderr);
    assert_eq!(
        remarks.matches("decisions to learn from, fewer than 256").count(),
        1,
        "{remarks}"
    );
}

#[test]
fn fallbacks_are_announced_once_and_summed_up() {
    let root = tempfile::tempdir().expect("a folder");
    let scenario = root.path().join("failing.ron");
    let fault = |step: u32| format!("(env: 0, round: 0, step: {step}, fault: kernel_error(3))");
    let written = format!(
        r#"(
            name: "failing", task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: 1, n_envs: 1, max_steps: 3), policy: (controller: "wait"),
            faults: [{}, {}],
        )"#,
        fault(1),
        fault(2)
    );
    std::fs::write(&scenario, written).expect("the scenario is written");

    let mut run = call(&["run", "--progress", "none", "-v"]);
    let ended = ended(run.arg(&scenario).arg("--out").arg(root.path().join("runs")));

    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let remarks = text(&ended.stderr);
    assert_eq!(
        remarks.matches("the engine's own kernels failed").count(),
        1,
        "{remarks}"
    );
    assert!(remarks.contains("a kernel was told to fail"), "{remarks}");
    let summary = text(&ended.stdout);
    assert!(
        summary.contains("\nfallbacks      2 batches by libtorch's operators, 0 in f32\n"),
        "{summary}"
    );
}

#[test]
fn results_go_to_standard_output_and_everything_else_does_not() {
    let root = tempfile::tempdir().expect("a folder");

    let plain = ended(&mut short_run(root.path()));
    let quiet = ended(short_run(root.path()).arg("--quiet"));
    let json_lines = ended(short_run(root.path()).args(["--progress", "json"]));

    assert!(text(&plain.stdout).contains("run directory"));
    assert!(text(&plain.stderr).contains("\n    1/1 "), "{}", text(&plain.stderr));
    assert!(text(&quiet.stdout).contains("run directory"));
    assert_eq!(text(&quiet.stderr), "");
    assert_eq!(json(text(&json_lines.stderr).trim())["type"], "round_finished");
}

#[test]
fn the_runs_folder_is_the_flag_s_then_the_variable_s() {
    let root = tempfile::tempdir().expect("a folder");
    let (flag, variable) = (root.path().join("flag"), root.path().join("variable"));

    stdout(short_process(&flag).env("SIMIC_ENGINE_RUNS", &variable));
    assert!(flag.join("latest").exists() && !variable.exists());

    let mut without_flag = command(&["run"]);
    without_flag
        .args(["--rounds", "1", "--envs", "1", "--steps", "1"])
        .env("SIMIC_ENGINE_RUNS", &variable);
    stdout(&mut without_flag);
    assert!(variable.join("latest").exists());
}

#[test]
fn a_log_file_of_the_user_s_takes_the_place_of_the_run_s() {
    let root = tempfile::tempdir().expect("a folder");
    let log = root.path().join("engine.log");

    stdout(short_run(&root.path().join("runs")).arg("--log-file").arg(&log));

    assert!(read(log).contains("a run begins"));
    assert!(!latest(&root.path().join("runs")).join("log.txt").exists());
}

#[test]
fn devices_are_given_one_or_many_and_checked() {
    let devices = |flags: &[&str]| {
        let preview = json(&stdout(call(&["run", "--dry-run", "--json"]).args(flags)));
        preview["scenario"]["run"]["devices"].clone()
    };
    assert_eq!(devices(&["--device", "cuda:1"]), json(r#"["cuda:1"]"#));
    assert_eq!(devices(&["--devices", "cpu,cuda:0"]), json(r#"["cpu", "cuda:0"]"#));
    let automatic = devices(&["--device", "auto"]);
    assert!(automatic == json(r#"["cpu"]"#) || automatic == json(r#"["cuda:0"]"#));

    let both = engine(&["run", "--dry-run", "--device", "cpu", "--devices", "cpu,cpu"]);
    assert!(refused(&both).contains("already given by --device cpu"));
    let unknown = engine(&["run", "--dry-run", "--device", "gpu"]);
    assert!(text(&unknown.stderr).contains(r#"--device gpu: run.devices[0]: "gpu" is no device"#));
}

#[test]
fn a_folder_that_cannot_be_made_is_a_start_up_error() {
    let root = tempfile::tempdir().expect("a folder");
    let file = root.path().join("taken");
    std::fs::write(&file, "").expect("a file");

    let folder = ended(&mut short_run(&file));

    assert!(refused(&folder).contains("error: start-up failed: run directory: "));
    let log = ended(call(&["list", "tasks", "--log-file"]).arg(root.path()));
    assert!(refused(&log).contains("the log file"));
}

/// Disks fill up: here a soft limit on the size of files, with the signal that goes with it ignored.
#[cfg(target_os = "linux")]
fn run_with_small_files(root: &Path, rounds: &str) -> Command {
    let mut limited = Command::new("sh");
    limited
        .current_dir(repository())
        .args(["-c", "trap '' 25; ulimit -S -f 48; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_simic-engine"))
        .args(["run", "--rounds", rounds, "--envs", "2", "--steps", "12"])
        .args(["--set", "task.batches_per_step=count(1)"])
        .args(["--set", "policy.controller=heuristic"])
        .args(["--progress", "none", "--out"])
        .arg(root);
    limited
}

/// The record is what a run is for: it ends at the round's end, with what has been trained, and says what is gone.
#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_record_cannot_be_written_stops_after_its_round_with_5() {
    let root = tempfile::tempdir().expect("a folder");

    let ended = ended(&mut run_with_small_files(root.path(), "3"));

    let messages = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{messages}");
    for part in [
        "error: record failed at round 1",
        "error: the record is incomplete: `events.jsonl` is missing ",
        "events, from round 1 on: ",
        "File too large",
        "play and record these rounds again with: simic-engine resume ",
        "--from 0",
    ] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
    assert_eq!(messages.matches("events are kept in memory").count(), 1, "{messages}");
    assert!(text(&ended.stdout).contains("run directory"));
    let run = latest(root.path());
    assert_eq!(json(&read(run.join("status.json")))["state"], "failed");
    assert!(run.join("checkpoints/round-000001/run.ron").exists());
}

#[test]
fn a_run_whose_events_are_deleted_while_it_writes_them_stops_after_its_round_with_5() {
    let root = tempfile::tempdir().expect("a folder");
    let child = command(&["run", "scenarios/quickstart.ron", "--rounds", "200", "--out"])
        .arg(root.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the engine starts");
    let run = crate::resume::wait_for_round(root.path(), 1);

    std::fs::remove_file(run.join("events.jsonl")).expect("it is there");
    let ended = child.wait_with_output().expect("the run ends");

    let messages = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{messages}");
    assert!(messages.contains("it was deleted, replaced or cut"), "{messages}");
}

/// The limit is lifted as soon as the run has said that it cannot write.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_for_a_moment_costs_no_event() {
    use std::io::{BufRead, BufReader};

    let root = tempfile::tempdir().expect("a folder");
    let mut child = run_with_small_files(root.path(), "2")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the engine starts");
    let mut messages = BufReader::new(child.stderr.take().expect("it is piped")).lines();

    let failure = messages
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.contains("events are kept in memory"));
    assert!(failure.is_some(), "the limit is never met");
    let lifted = Command::new("prlimit")
        .args(["--pid", &child.id().to_string(), "--fsize=unlimited"])
        .status()
        .expect("prlimit is there");
    assert!(lifted.success());
    let rest: Vec<String> = messages.map_while(Result::ok).collect();

    assert_eq!(child.wait().expect("the run ends").code(), Some(0), "{rest:?}");
    let lines = crate::support::lines(&latest(root.path()));
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
    let last = lines.last().expect("there are events");
    assert_eq!(
        (&last["type"], &last["data"]["rounds_done"]),
        (&"run_finished".into(), &2.into())
    );
    assert!(last["data"].get("missing_events").is_none(), "{last}");
    assert_eq!(
        json(&read(latest(root.path()).join("status.json")))["state"],
        "completed"
    );
}

#[cfg(target_os = "linux")]
fn full_disk() -> Stdio {
    let full = std::fs::File::options().write(true).open("/dev/full");
    full.expect("Linux has one").into()
}

#[cfg(target_os = "linux")]
#[test]
fn standard_error_that_cannot_be_written_changes_no_ending() {
    let root = tempfile::tempdir().expect("a folder");
    let code = |command: &mut Command| command.stderr(full_disk()).status().expect("it starts").code();

    let missing = code(&mut command(&["validate", "missing.ron"]));
    let refused = code(command(&["run", "--set", "run.rounds=0"]).stdout(Stdio::null()));
    let played = code(
        short_process(root.path())
            .args(["--progress", "plain", "-v"])
            .stdout(Stdio::null()),
    );
    let drawn = code(
        short_process(root.path())
            .args(["--progress", "bar"])
            .stdout(Stdio::null()),
    );

    assert_eq!([missing, refused, played, drawn], [Some(2), Some(2), Some(0), Some(0)]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    for arguments in [
        &["list", "tasks"][..],
        &["explain", "run.n_envs", "--json"],
        &["--help"],
        &["run", "--dry-run"],
    ] {
        let ended = command(arguments).stdout(full_disk()).stderr(Stdio::null()).status();
        assert_eq!(ended.expect("it starts").code(), Some(3), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let mut child = command(&["list", "tasks"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the engine starts");
    drop(child.stdout.take());

    let ended = child.wait_with_output().expect("the engine ends");

    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(text(&ended.stderr), "");
}

/// A run of two envs whose seeds have to train for ten steps.
fn short_of_commits(folder: &Path, name: &str, steps: u32, policy: &str) -> PathBuf {
    let scenario = folder.join(format!("{name}.ron"));
    let text = format!(
        r#"(
            task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: 1, n_envs: 2, max_steps: {steps}),
            policy: ({policy}),
            lifecycle: (
                auto_forward: (g1: true, g2: true, g3: true),
                gates: (min_training_steps: 10, min_gradient_health: 0.7),
                exploding_factor: 10.0,
            ),
        )"#
    );
    std::fs::write(&scenario, text).expect("the scenario is written");
    let out = folder.join("out");
    let arguments = ["-q", "--threads", "1", "--id", name, "--out"];
    stdout(call(&["run"]).args(arguments).arg(&out).arg(&scenario));
    out.join(name)
}

#[test]
fn a_run_that_commits_nothing_says_why_and_what_to_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let weights = "wait: 0.01, germinate: 1.0, set_alpha_target: 0.0, prune: 9.0, commit: 0.0, advance: 0.0";
    let random = format!(r#"controller: "random", random: (op_weights: ({weights}))"#);
    let pruned = short_of_commits(folder.path(), "pruned", 16, &random);
    let over = short_of_commits(folder.path(), "over", 10, r#"controller: "heuristic""#);

    let [pruned, over] = [pruned, over].map(|run| {
        let shown = stdout(call(&["show"]).arg(&run));
        assert!(shown.contains("No seed was committed; "), "{shown}");
        shown
    });

    for told in [
        "in TRAINING, 5 steps old: pruned by random\n",
        "lifecycle.gates.min_training_steps asks 10 steps of training",
        "policy.random.op_weights.prune",
    ] {
        assert!(pruned.contains(told), "{pruned}");
    }
    for told in ["in TRAINING, ", " steps old: the episode was over\n", "run.max_steps"] {
        assert!(over.contains(told), "{over}");
    }
}
