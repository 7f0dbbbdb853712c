//! Experiments as a user meets them: arms that are declared in a scenario, played by `run`, gone on with by `resume`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{command, succeeds, text};
use crate::support::{assert_same_run, lines};

const ARMS: &str = r#"(id: "wait"), (id: "random", policy: (controller: "random"))"#;

/// Arms of `steps` steps; the scenario's own controller is `wait`.
fn write_experiment(folder: &Path, arms: &str, rounds: u32, steps: u32, more: &str) -> PathBuf {
    let path = folder.join("ab.ron");
    let text = format!(
        r#"(
            name: "tiny",
            task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: {rounds}, n_envs: 2, max_steps: {steps}),
            policy: (controller: "wait", preset: "lstm_small"),
            experiment: ab((arms: [{arms}], replicates: 2, eval_episodes: 2{more})),
        )"#
    );
    fs::write(&path, text).expect("the scenario is written");
    path
}

fn engine(arguments: &[&str]) -> Command {
    command(&[&["--threads", "2"], arguments].concat())
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

fn play(scenario: &Path, out: &Path, id: &str) -> (PathBuf, String) {
    let arguments = ["run", path(scenario), "--out", path(out), "--id", id, "--json"];
    let output = engine(&arguments).output().expect("the binary starts");
    let shown = succeeds(&output);
    (out.join(id), shown)
}

fn json(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The report without wall times: everything that must come again.
fn reproducible(experiment: &Path) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("seconds");
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut report = json(&experiment.join("ab.json"));
    strip(&mut report);
    report
}

#[test]
fn two_arms_are_played_side_by_side_scored_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = write_experiment(folder.path(), ARMS, 2, 2, "");

    let (experiment, shown) = play(&scenario, folder.path(), "tiny");

    let report = json(&experiment.join("ab.json"));
    assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON"), report);
    assert_eq!(report["stamps"]["comparison_valid"], true);
    assert_eq!(report["stamps"]["interim"], false);
    assert_eq!(report["stamps"]["same_split"], false);
    assert_eq!(report["primary"]["split"], "test");
    assert_eq!(report["pairs"][0]["conclusion"], "insufficient_data");
    let replicates = report["replicates"].as_array().expect("a list");
    assert_eq!(replicates.len(), 2);
    for (replicate, number) in replicates.iter().zip([1, 2]) {
        assert_eq!(replicate["orders"].as_array().map(Vec::len), Some(2));
        for arm in replicate["arms"].as_array().expect("a list") {
            assert_eq!(arm["seed"], 41 + number);
            assert_eq!(
                arm["budget"],
                serde_json::json!({"episodes": 4, "env_steps": 8, "updates": 0})
            );
            assert_eq!(arm["training"]["episodes"].as_array().map(Vec::len), Some(2));
            assert!(arm["training"]["episodes"][0]["test_accuracy"].is_number());
        }
        assert!(replicate["fingerprint"]["build"]["engine"].is_string());
    }
}

#[test]
fn the_statistics_are_computed_again_from_what_is_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = write_experiment(folder.path(), ARMS, 1, 2, "");
    let (experiment, _) = play(&scenario, folder.path(), "tiny");
    let stored = fs::read_to_string(experiment.join("ab.json")).expect("the report");

    for source in [experiment.join("ab.json"), experiment.clone()] {
        let output = engine(&["ab-report", path(&source), "--json"]).output();
        assert_eq!(succeeds(&output.expect("the binary starts")), stored);
    }
    let table = engine(&["ab-report", path(&experiment)]).output();
    let table = succeeds(&table.expect("the binary starts"));
    assert!(table.contains("random - wait"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn arms_of_a_replicate_meet_the_same_hosts_and_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = write_experiment(folder.path(), ARMS, 1, 2, "");
    let (experiment, _) = play(&scenario, folder.path(), "tiny");
    let first_steps = |replicate: &str, arm: &str| -> Vec<Value> {
        let events = lines(&experiment.join(replicate).join(arm));
        let steps = events
            .iter()
            .filter(|event| event["type"] == "env_step" && event["step"] == 1);
        steps
            .map(|event| {
                let data = &event["data"];
                serde_json::json!([event["env"], data["train_loss"], data["val_loss"], data["val_accuracy"]])
            })
            .collect()
    };

    let waiting = first_steps("replicate-01", "wait");
    assert_eq!(waiting.len(), 2);
    assert!(waiting[0][2].is_number(), "{waiting:?}");
    assert_eq!(waiting, first_steps("replicate-01", "random"));
    assert_ne!(
        waiting,
        first_steps("replicate-02", "wait"),
        "replicates are independent"
    );
}

#[test]
fn an_arm_is_an_ordinary_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = write_experiment(folder.path(), ARMS, 1, 2, "");
    let (experiment, _) = play(&scenario, folder.path(), "tiny");

    let arm = experiment.join("replicate-02/random");

    let manifest = json(&arm.join("manifest.json"));
    assert_eq!(manifest["seed"], 43);
    assert!(arm.join("tb").is_dir());
    let resolved = fs::read_to_string(arm.join("resolved.ron")).expect("the arm's scenario");
    assert!(resolved.contains("controller: \"random\"") && resolved.contains("experiment: None"));
    let output = engine(&["resume", path(&arm), "--extend", "1", "--progress", "none"]).output();
    succeeds(&output.expect("the binary starts"));
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Plays an experiment in one go, and once more with a kill in the first replicate and one in the second.
fn killed_twice_equals_left_alone(interleave: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let arms =
        r#"(id: "rules", policy: (controller: "heuristic")), (id: "learnt", policy: (controller: "actor_critic"))"#;
    let more = format!(", interleave: {interleave}");
    let scenario = write_experiment(folder.path(), arms, 4, 6, &more);
    let (alone, _) = play(&scenario, folder.path(), "alone");

    let killed = folder.path().join("killed");
    let begin = ["run", path(&scenario), "--out", path(folder.path()), "--id", "killed"];
    let resume = ["resume", path(&killed)];
    let moments = [
        (&begin[..], "replicate-01/learnt/checkpoints/round-000002"),
        (&resume[..], "replicate-02/rules/checkpoints/round-000003"),
    ];
    for (arguments, moment) in moments {
        let mut child = engine(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        wait_until(|| killed.join(moment).exists());
        child.kill().expect("the experiment is killed");
        child.wait().expect("it is gone");
    }
    succeeds(&engine(&resume).output().expect("the binary starts"));

    assert_eq!(reproducible(&killed), reproducible(&alone));
    for run in ["replicate-01/rules", "replicate-01/learnt", "replicate-02/learnt"] {
        assert_same_run(&killed.join(run), &alone.join(run));
    }
    // Nothing is left to do.
    succeeds(&engine(&resume).output().expect("the binary starts"));
}

#[test]
fn an_experiment_in_lockstep_that_was_killed_twice_ends_as_if_left_alone() {
    killed_twice_equals_left_alone("lockstep");
}

#[test]
fn an_experiment_in_rounds_that_was_killed_twice_ends_as_if_left_alone() {
    killed_twice_equals_left_alone("randomized_rounds");
}

#[cfg(unix)]
#[test]
fn an_experiment_that_is_asked_to_stop_can_be_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = write_experiment(folder.path(), ARMS, 30, 4, "");
    let experiment = folder.path().join("stopped");
    let arguments = ["run", path(&scenario), "--out", path(folder.path()), "--id", "stopped"];
    let child = engine(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    wait_until(|| experiment.join("replicate-01/wait/checkpoints/round-000001").exists());
    let kill = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill is there").success());

    let output = child.wait_with_output().expect("it ends");

    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("simic-engine resume"),
        "{}",
        text(&output.stderr)
    );
    assert!(!experiment.join("replicate-01/result.json").exists());
    let refused = engine(&["resume", path(&experiment), "--extend", "3"]).output();
    let refused = refused.expect("the binary starts");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("as it was declared"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_replicate_that_fails_is_listed_as_missing_and_the_experiment_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = write_experiment(folder.path(), ARMS, 1, 2, "");
    let (experiment, _) = play(&scenario, folder.path(), "tiny");
    // As if the first replicate had failed, and the second had not been played.
    let result = experiment.join("replicate-01/result.json");
    let mut failed = json(&result);
    failed["failure"] = "wait: a disk was full".into();
    failed["arms"] = Value::Array(Vec::new());
    fs::write(&result, failed.to_string()).expect("the result is written");
    fs::remove_dir_all(experiment.join("replicate-02")).expect("the replicate is removed");

    let output = engine(&["resume", path(&experiment)])
        .output()
        .expect("the binary starts");

    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(
        table.contains("replicate 1 is missing: wait: a disk was full"),
        "{table}"
    );
    let report = json(&experiment.join("ab.json"));
    assert_eq!(report["missing"][0]["replicate"], 0);
    assert_eq!(report["primary"]["arms"][0]["scores"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_dry_run_says_what_the_arms_are_and_how_much_work_they_make() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = write_experiment(folder.path(), ARMS, 3, 5, "");

    let output = engine(&["run", path(&scenario), "--dry-run"]).output();
    let shown = succeeds(&output.expect("the binary starts"));

    let expected = "// tiny: 2 arms x 2 replicates, each 3 rounds of 2 envs x 5 steps\n\
                    // 120 env-steps to train on, 8 episodes of 5 steps to score by\n\
                    //   wait: wait, paid by committed\n\
                    //   random: random, paid by committed\n";
    assert!(shown.starts_with(expected), "{shown}");
    // What is printed is a scenario again, with the same arms.
    let copy = folder.path().join("copy.ron");
    fs::write(&copy, &shown).expect("the copy is written");
    let again = engine(&["run", path(&copy), "--dry-run"]).output();
    assert_eq!(succeeds(&again.expect("the binary starts")), shown);
}
