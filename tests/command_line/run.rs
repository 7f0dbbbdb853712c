//! The command `run` as a user meets it: what it leaves, what it prints where, and how it ends.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::program::{
    assert_has, command, ended, ends_with, engine, engine_at, folder, json, names, newest, read, refused, repository,
    succeeds, text, write,
};
use crate::resume::wait_for_round;
use crate::support::latest;

/// The smallest run there is.
const SHORT: &str = "run scenarios/quickstart.ron --rounds 1 --envs 2 --steps 2 --set task.batches_per_step=count(1)";

fn short_run(out: &Path, more: &str) -> Output {
    engine(&format!("{SHORT} --out '{}' {more}", out.display()))
}

/// The same in a process of its own.
fn short_process(out: &Path, more: &str) -> Command {
    command(&format!("{SHORT} --out '{}' {more}", out.display()))
}

/// A document of the newest run in `out`.
fn document(out: &Path, name: &str) -> Value {
    json(&read(&latest(out).join(name)))
}

#[test]
fn a_run_leaves_one_folder_with_its_whole_record() {
    let root = folder();

    let end = json(&succeeds(&short_run(root.path(), "--json --tag first --tag short")));

    assert_eq!(end["status"], "completed");
    assert_eq!(end["rounds_done"], 1);
    assert_eq!(end["origins"]["run.rounds"], "--rounds 1");
    assert_eq!(end["origins"]["run.seed"], "scenarios/quickstart.ron:21:15");
    let run_id = end["run_id"].as_str().expect("a run id");
    assert_eq!(names(root.path()), [run_id, "latest"]);
    let run = latest(root.path());
    let files = "checkpoints events.jsonl log.txt manifest.json networks resolved.ron scenario.ron status.json";
    assert_eq!(names(&run).join(" "), files);
    let source = repository().join("scenarios/quickstart.ron");
    assert_eq!(read(&run.join("scenario.ron")), read(&source));
    assert_has(&read(&run.join("resolved.ron")), &["rounds: 1"]);
    assert_eq!(document(root.path(), "status.json")["state"], "completed");
    assert_has(&read(&run.join("log.txt")), &[run_id]);
    let manifest = document(root.path(), "manifest.json");
    assert_eq!(manifest["tags"], json!(["first", "short"]));
}

#[test]
fn the_manifest_records_what_was_run_with_what() {
    let root = folder();
    succeeds(&ended(&mut short_process(root.path(), "")));

    let manifest = document(root.path(), "manifest.json");

    assert_eq!(manifest["scenario_path"], "scenarios/quickstart.ron");
    let build = &manifest["build"];
    assert!(build["rustc"].as_str().expect("the compiler").starts_with("rustc 1."));
    assert_eq!(build["target"].as_str().expect("the target").split('-').count(), 4);
    // Where there is a commit it is known whether anything differed from it.
    assert_eq!(build.get("git_commit").is_some(), build["git_dirty"].is_boolean());
    assert_eq!(manifest["plugins"]["GovernorPlugin"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["plugins"].as_object().map(|plugins| plugins.len()), Some(15));
    let resolved = read(&latest(root.path()).join("resolved.ron"));
    let hash = blake3::hash(resolved.as_bytes()).to_hex();
    assert_eq!(manifest["scenario_hash"], hash.as_str());
}

#[test]
fn runs_side_by_side_in_one_process_have_logs_of_their_own() {
    let roots = [(); 2].map(|()| folder());

    std::thread::scope(|scope| {
        for root in &roots {
            scope.spawn(|| succeeds(&short_run(root.path(), "")));
        }
    });

    for root in &roots {
        let run = newest(root.path());
        let name = run.file_name().expect("a name").display();
        let log = read(&run.join("log.txt"));
        let begun = format!("a run begins run=\"{name}\"");
        let counts = [begun.as_str(), "a run begins"].map(|words| log.matches(words).count());
        assert_eq!(counts, [1, 1], "{log}");
    }
}

#[test]
#[ignore = "long tier"]
fn a_second_run_touches_nothing_of_the_first() {
    let root = folder();
    succeeds(&short_run(root.path(), ""));
    let first = newest(root.path());
    let before = read(&first.join("events.jsonl"));

    succeeds(&short_run(root.path(), ""));

    assert_eq!(read(&first.join("events.jsonl")), before);
    assert_ne!(newest(root.path()), first);
    assert_eq!(names(root.path()).len(), 3);
}

#[test]
fn a_rollout_of_few_decisions_is_noted_once() {
    let root = folder();
    let twice = SHORT.replace("--rounds 1", "--rounds 2");

    let out = root.path().display();
    let remarks = ends_with(0, &engine(&format!("{twice} --progress none -v --out '{out}'")));

    let times = remarks.matches("decisions to learn from, fewer than 256").count();
    assert_eq!(times, 1, "{remarks}");
}

#[test]
fn fallbacks_are_announced_once_and_summed_up() {
    let root = folder();
    let scenario = r#"(
        name: "failing", task: preset("digits_minimal", (batches_per_step: count(1))),
        run: (rounds: 1, n_envs: 1, max_steps: 3), policy: (controller: "wait"),
        faults: [
            (env: 0, round: 0, step: 1, fault: kernel_error(3)), (env: 0, round: 0, step: 2, fault: kernel_error(3)),
        ],
    )"#;
    write(&root.path().join("failing.ron"), scenario);

    let output = engine_at(root.path(), "run failing.ron --progress none -v");

    let remarks = ends_with(0, &output);
    let announced = remarks.matches("the engine's own kernels failed").count();
    assert_eq!(announced, 1, "{remarks}");
    assert_has(&remarks, &["a kernel failed on request"]);
    let summary = "\nfallbacks      2 batches by libtorch's operators, 0 in f32, 0 not as CUDA graphs\n";
    assert_has(&succeeds(&output), &[summary]);
}

#[test]
fn results_go_to_standard_output_and_everything_else_does_not() {
    let root = folder();

    let quiet = short_run(root.path(), "--quiet");
    let lines = short_run(root.path(), "--progress json");

    for output in [&quiet, &lines] {
        assert_has(&succeeds(output), &["run directory"]);
    }
    assert_eq!(text(&quiet.stderr), "");
    assert_eq!(json(&text(&lines.stderr))["type"], "round_finished");
}

#[test]
#[ignore = "long tier"]
fn the_runs_folder_is_the_flag_s_then_the_variable_s() {
    let root = folder();
    let (flag, variable) = (root.path().join("flag"), root.path().join("variable"));

    succeeds(&ended(short_process(&flag, "").env("SIMIC_ENGINE_RUNS", &variable)));
    assert!(flag.join("latest").exists() && !variable.exists());

    succeeds(&ended(command(SHORT).env("SIMIC_ENGINE_RUNS", &variable)));
    assert!(variable.join("latest").exists());
}

#[test]
fn a_log_file_of_the_user_s_takes_the_place_of_the_run_s() {
    let root = folder();

    succeeds(&engine_at(root.path(), &format!("{SHORT} --log-file engine.log")));

    assert_has(&read(&root.path().join("engine.log")), &["a run begins"]);
    assert!(!newest(&root.path().join("runs")).join("log.txt").exists());
}

#[test]
fn the_environment_turns_mixed_precision_off_over_all_flags() {
    let dry = |flags: &str, word| {
        ended(command(&format!("run --dry-run --set training.amp=bf16 {flags}")).env("SIMIC_ENGINE_AMP", word))
    };
    assert_eq!(
        json(&succeeds(&dry("--json", "off")))["scenario"]["training"]["amp"],
        "off"
    );
    assert_has(&refused(&dry("", "on")), &["SIMIC_ENGINE_AMP is \"on\"; set it to off"]);
}

#[test]
fn devices_are_given_one_or_many_and_checked() {
    let dry = |flags: &str| engine(&format!("run --dry-run {flags}"));
    let scenario = |flags: &str| json(&succeeds(&dry(&format!("{flags} --json"))))["scenario"].take();
    let devices = |flags: &str| scenario(flags)["run"]["devices"].take();
    assert_eq!(devices("--device cuda:1"), json!(["cuda:1"]));
    let elsewhere = folder();
    let file = elsewhere.path().join("placed.ron");
    write(&file, r#"(policy: (device: "cuda:0"))"#);
    let policy = scenario(&format!("'{}' --device cpu", file.display()))["policy"]["device"].take();
    assert_eq!(policy, json!(null));
    assert_eq!(devices("--devices cpu,cuda:0"), json!(["cpu", "cuda:0"]));
    let automatic = devices("--device auto");
    assert!(automatic == json!(["cpu"]) || automatic == json!(["cuda:0"]));

    let both = refused(&dry("--device cpu --devices cpu,cpu"));
    assert_has(&both, &["already given by --device cpu"]);
    let unknown = r#"--device gpu: run.devices[0]: "gpu" isn't a device"#;
    assert_has(&refused(&dry("--device gpu")), &[unknown]);
}

/// Disks fill up: here a soft limit on the size of files, in blocks of 512 bytes. The signal that goes with it ends nothing.
#[cfg(target_os = "linux")]
fn with_small_files(command: &Command, blocks: u32) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -S -f {blocks}; exec \"$@\""), "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited.current_dir(repository());
    limited
}

#[cfg(target_os = "linux")]
fn run_with_small_files(root: &Path, rounds: u32) -> Command {
    let mut run = command(&format!(
        "run --rounds {rounds} --envs 2 --steps 12 --set task.batches_per_step=count(1) \
         --set policy.controller=heuristic --progress none"
    ));
    with_small_files(run.arg("--out").arg(root), 48)
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_beyond_the_limit_of_files_is_an_error_and_leaves_nothing() {
    let (folder, run) = crate::resume::finished();
    let before = names(folder.path());
    for (word, name) in [("report", "page.html"), ("export", "network")] {
        let mut command = command(word);
        command.arg(&run).arg("-o").arg(folder.path().join(name));

        let said = ends_with(2, &ended(&mut with_small_files(&command, 1)));

        assert_has(&said, &[name, "File too large"]);
    }
    assert_eq!(names(folder.path()), before);
}

/// The record is what a run is for: it ends at the round's end, with what has been trained, and says what is gone.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "long tier"]
fn a_run_whose_record_cannot_be_written_stops_after_its_round_with_5() {
    let root = folder();

    let ended = ended(&mut run_with_small_files(root.path(), 3));

    let messages = ends_with(5, &ended);
    let parts = [
        "error: record failed at round 1",
        "error: the record is incomplete: `events.jsonl` is missing ",
        "events, from round 1 on: ",
        "File too large",
        "play and record these rounds again with: simic-engine resume ",
        "--from 0",
    ];
    assert_has(&messages, &parts);
    assert_eq!(messages.matches("events are kept in memory").count(), 1, "{messages}");
    assert_has(&text(&ended.stdout), &["run directory"]);
    assert_eq!(document(root.path(), "status.json")["state"], "failed");
    let checkpoint = latest(root.path()).join("checkpoints/round-000001/run.ron");
    assert!(checkpoint.exists());
}

/// A process whose standard error is listened to.
fn heard(command: &mut Command) -> std::process::Child {
    let heard = command.stdout(Stdio::null()).stderr(Stdio::piped());
    heard.spawn().expect("the engine starts")
}

#[test]
#[ignore = "long tier"]
fn a_run_whose_events_are_deleted_while_it_writes_them_stops_after_its_round_with_5() {
    let root = folder();
    let mut run = command("run scenarios/quickstart.ron --rounds 200 --out");
    let child = heard(run.arg(root.path()));
    let run = wait_for_round(root.path(), 1);

    std::fs::remove_file(run.join("events.jsonl")).expect("it is there");

    let ended = child.wait_with_output().expect("the run ends");
    assert_has(&ends_with(5, &ended), &["it was deleted, replaced or cut"]);
}

/// The limit is lifted as soon as the run has said that it cannot write.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_for_a_moment_costs_no_event() {
    use std::io::{BufRead, BufReader};

    let root = folder();
    let mut child = heard(&mut run_with_small_files(root.path(), 2));
    let messages = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut messages = messages.map_while(Result::ok);

    let is_met = messages.any(|line| line.contains("events are kept in memory"));
    assert!(is_met, "the limit is never met");
    let id = child.id().to_string();
    let mut lift = Command::new("prlimit");
    let lifted = lift.args(["--pid", &id, "--fsize=unlimited"]).status();
    assert!(lifted.expect("prlimit is there").success());
    let rest: Vec<String> = messages.collect();

    assert_eq!(child.wait().expect("the run ends").code(), Some(0), "{rest:?}");
    let lines = crate::support::lines(&latest(root.path()));
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
    let last = lines.last().expect("there are events");
    assert_eq!(last["type"], "run_finished");
    assert_eq!(last["data"]["rounds_done"], 2);
    assert!(last["data"].get("missing_events").is_none(), "{last}");
    assert_eq!(document(root.path(), "status.json")["state"], "completed");
}

#[cfg(target_os = "linux")]
fn full_disk() -> Stdio {
    let full = std::fs::File::options().write(true).open("/dev/full");
    full.expect("Linux has one").into()
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "long tier"]
fn standard_error_that_cannot_be_written_changes_no_ending() {
    let root = folder();

    for (mut command, code) in [
        (command("validate missing.ron"), 2),
        (command("run --set run.rounds=0"), 2),
        (short_process(root.path(), "--progress plain -v"), 0),
        (short_process(root.path(), "--progress bar"), 0),
    ] {
        let ended = command.stdout(Stdio::null()).stderr(full_disk()).status();
        assert_eq!(ended.expect("it starts").code(), Some(code), "{command:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    for line in ["list tasks", "explain run.n_envs --json", "--help", "run --dry-run"] {
        let ended = command(line).stdout(full_disk()).stderr(Stdio::null()).status();
        assert_eq!(ended.expect("it starts").code(), Some(3), "{line}");
    }
}

#[test]
fn a_reader_that_stops_reading_is_not_an_error() {
    let mut list = command("list tasks");
    let piped = list.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the engine starts");
    drop(child.stdout.take());

    let ended = child.wait_with_output().expect("the engine ends");

    assert_eq!(ends_with(0, &ended), "");
}

/// Two envs whose seeds have to train for ten steps and are pruned before.
#[test]
fn a_run_that_commits_nothing_says_why_and_what_to_change() {
    let root = folder();
    let scenario = r#"(
        task: preset("digits_minimal", (batches_per_step: count(1))),
        run: (rounds: 1, n_envs: 2, max_steps: 16),
        policy: (controller: "schedule", schedule: (entries: [
            (step: 1, command: germinate(
                slot: "r0c0", blueprint: "norm", style: "sigmoid_add", tempo: "standard", target: "full")),
            (step: 6, command: prune(slot: "r0c0", speed: "instant", curve: "linear")),
        ])),
        lifecycle: (
            auto_forward: true,
            gates: (min_training_steps: 10, min_gradient_health: 0.7),
            exploding_factor: 10.0,
        ),
    )"#;
    write(&root.path().join("pruned.ron"), scenario);
    succeeds(&engine_at(root.path(), "run pruned.ron -q --threads 1"));

    let shown = succeeds(&engine_at(root.path(), "show latest"));

    let expected = [
        "No seed was committed; ",
        "in TRAINING, 5 steps old: pruned by schedule\n",
        "choose another policy.controller",
        "lifecycle.min_prune_age",
    ];
    assert_has(&shown, &expected);
}
