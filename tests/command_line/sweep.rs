//! Sweeps as a user meets them: planned, played, collected, extended, and refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};

use insta::assert_snapshot;
use serde_json::Value;

use crate::program::{command, ended, engine_at, refused, repository, succeeds};

/// Short trials.
const SCENARIO: &str = r#"(
    name: "short",
    task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 3, n_envs: 1, max_steps: 4, seed: 7),
    policy: (preset: "lstm_small"),
)"#;

/// Two controllers, three trainings of each.
const SWEEP: &str = r#"(
    name: "pair",
    scenario: "short.ron",
    axes: [(path: "policy.controller", values: list(["actor_critic", "heuristic"]))],
    replicates: 3,
    budget: (parallel: 2, threads: 1, lease_s: 5),
)"#;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn with(sweep: &str) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        place.write("short.ron", SCENARIO);
        place.write("sweep.ron", sweep);
        place
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        engine_at(self.folder.path(), arguments)
    }

    fn succeeds(&self, arguments: &[&str]) -> String {
        self.relative(&succeeds(&self.run(arguments)))
    }

    fn refused(&self, arguments: &[&str]) -> String {
        self.relative(&refused(&self.run(arguments)))
    }

    /// The text with files by their places in the folder.
    fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn sweep(&self, name: &str) -> PathBuf {
        self.folder.path().join("runs/sweeps").join(name)
    }

    fn status(&self, name: &str) -> BTreeMap<String, u64> {
        let status: Value = serde_json::from_str(&self.succeeds(&["sweep", "status", name, "--json"])).unwrap();
        serde_json::from_value(status["counts"].clone()).unwrap()
    }
}

/// Ids are hashes of resolved scenarios: a field that is added to scenarios changes them all.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 16 && word.chars().all(|digit| digit.is_ascii_hexdigit());
    let words = text
        .split(' ')
        .map(|word| if is_id(word) { "(an id)         " } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn all_shipped_sweeps_are_valid() {
    let place = Place::with(SWEEP);
    let folder = repository().join("scenarios/sweeps");

    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        place.succeeds(&["sweep", file.to_str().unwrap(), "--dry-run"]);
    }
}

#[test]
fn a_sweep_is_planned_played_and_collected() {
    let place = Place::with(SWEEP);

    assert_snapshot!(without_ids(&place.succeeds(&["sweep", "sweep.ron", "--dry-run"])));
    let table = place.succeeds(&["sweep", "sweep.ron"]);

    assert_eq!(place.status("pair"), BTreeMap::from([("done".into(), 6)]));
    assert_eq!(table.matches(" done ").count(), 6, "{table}");
    let trials = std::fs::read_to_string(place.sweep("pair").join("trials.csv")).unwrap();
    assert_eq!(trials.lines().count(), 7);
    let curves = std::fs::read_to_string(place.sweep("pair").join("curves.csv")).unwrap();
    assert_eq!(curves.lines().count(), 1 + 6 * 3);
    let id = trials.lines().nth(1).unwrap().split(',').next().unwrap();
    let run = place.sweep("pair").join("trials").join(id);
    assert!(
        place
            .succeeds(&["resume", run.to_str().unwrap()])
            .contains("nothing is left to do")
    );
    // Nothing is played twice.
    let log = std::fs::read_to_string(place.sweep("pair").join("logs").join(id).with_extension("log")).unwrap();
    place.succeeds(&["sweep", "sweep.ron"]);
    assert_eq!(
        log,
        std::fs::read_to_string(place.sweep("pair").join("logs").join(id).with_extension("log")).unwrap()
    );
}

#[test]
fn a_sweep_file_that_has_changed_is_refused_with_the_difference_and_extended_on_request() {
    let place = Place::with(SWEEP);
    place.succeeds(&["sweep", "sweep.ron", "--plan-only"]);
    place.write("sweep.ron", &SWEEP.replace("\"heuristic\"", "\"wait\""));

    let other = place.refused(&["sweep", "sweep.ron", "--plan-only"]);
    let not_even_extended = place.refused(&["sweep", "sweep.ron", "--plan-only", "--extend"]);

    assert_eq!(
        other.matches("- policy.controller=heuristic seed").count(),
        3,
        "{other}"
    );
    assert_eq!(other.matches("+ policy.controller=wait seed").count(), 3, "{other}");
    assert!(not_even_extended.contains("it removes no trial"), "{not_even_extended}");
    assert_eq!(place.status("pair")["waiting"], 6);

    let more = SWEEP
        .replace("\"heuristic\"", "\"heuristic\", \"wait\"")
        .replace("parallel: 2", "parallel: 1");
    place.write("sweep.ron", &more);
    assert!(
        place
            .refused(&["sweep", "sweep.ron", "--plan-only"])
            .contains("--extend")
    );
    place.succeeds(&["sweep", "sweep.ron", "--plan-only", "--extend"]);
    assert_eq!(place.status("pair")["waiting"], 9);
}

#[test]
fn everything_that_is_wrong_with_a_sweep_is_said_before_anything_runs() {
    let place = Place::with(
        r#"(
    scenario: "short.ron",
    set: [(path: "run.seed", value: 3)],
    axes: [
        (path: "learner.lr", values: uniform(low: 0.1, high: 0.2)),
        (path: "run.rounds", values: list([])),
    ],
    replicate: 3,
)"#,
    );
    assert_snapshot!("misspelt", place.refused(&["sweep", "sweep.ron"]));
    let sound = r#"(
    scenario: "short.ron",
    axes: [
        (path: "policy.controller", values: list(["heuristic", "heuristik"])),
        (path: "run.n_env", values: list([1, 0])),
    ],
)"#;
    place.write("sweep.ron", sound);
    assert_snapshot!("impossible", place.refused(&["sweep", "sweep.ron"]));
    place.write(
        "sweep.ron",
        &sound.replace("run.n_env", "run.n_envs").replace("heuristik", "wait"),
    );
    assert_snapshot!("out_of_range", place.refused(&["sweep", "sweep.ron"]));
    place.write("sweep.ron", r#"(scenario: "missing.ron")"#);
    assert!(place.refused(&["sweep", "sweep.ron"]).contains("missing.ron"));
    place.write(
        "sweep.ron",
        r#"(scenario: "short.ron", axes: [(path: "run.rounds", values: list([2, 2]))])"#,
    );
    assert!(
        place
            .refused(&["sweep", "sweep.ron"])
            .contains("is the same training as")
    );
    place.write(
        "sweep.ron",
        r#"(scenario: "short.ron", set: [(path: "run.n_envs", value: 4096), (path: "run.max_steps", value: 4000000000),
            (path: "policy.controller", value: "actor_critic")])"#,
    );
    assert!(place.refused(&["sweep", "sweep.ron"]).contains("of memory"));
    assert!(!place.folder.path().join("runs").exists());
}

#[test]
fn a_trial_that_fails_keeps_its_reason_and_its_log_and_the_others_continue() {
    let sweep = r#"(
        name: "faulty",
        scenario: "short.ron",
        set: [(path: "policy.controller", value: "wait")],
        points: [
            (name: "broken", set: [(path: "faults", value: [(env: 0, round: 1, step: 2, fault: env_error)])]),
            (name: "short", set: [(path: "run.rounds", value: 2)]),
        ],
        budget: (retries: 1),
    )"#;
    let place = Place::with(sweep);

    let output = place.run(&["sweep", "sweep.ron"]);

    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("simic-engine sweep retry "), "{said}");
    assert_eq!(
        place.status("faulty"),
        BTreeMap::from([("done".into(), 1), ("failed".into(), 1)])
    );
    let trials = std::fs::read_to_string(place.sweep("faulty").join("trials.csv")).unwrap();
    let failed = trials.lines().find(|line| line.contains(",failed,")).unwrap();
    assert!(failed.contains("env 0"), "{failed}");
    let id = failed.split(',').next().unwrap();
    let log = std::fs::read_to_string(place.sweep("faulty").join("logs").join(id).with_extension("log")).unwrap();
    assert_eq!(log.matches("$ simic-engine ").count(), 2, "tried twice:\n{log}");

    assert!(
        place
            .succeeds(&["sweep", "retry", "faulty"])
            .starts_with("to be tried again: 1;")
    );
    assert_eq!(place.status("faulty")["waiting"], 1);
    let worked = place.run(&["sweep", "work", "faulty"]);
    assert_eq!(worked.status.code(), Some(3));
    assert_eq!(place.status("faulty")["failed"], 1);

    place.write(
        "sweep.ron",
        &sweep
            .replace("\"faulty\"", "\"hasty\"")
            .replace("retries: 1", "retries: 0, fail_fast: true"),
    );
    assert_eq!(place.run(&["sweep", "sweep.ron"]).status.code(), Some(3));
    assert_eq!(
        place.status("hasty"),
        BTreeMap::from([("failed".into(), 1), ("waiting".into(), 1)])
    );
}

#[test]
fn a_trial_that_takes_too_long_is_ended_and_marked() {
    let place = Place::with(
        r#"(
            name: "slow",
            scenario: "short.ron",
            set: [(path: "policy.controller", value: "wait"), (path: "run.rounds", value: 100000)],
            budget: (time_limit_s: 3),
        )"#,
    );

    assert_eq!(place.run(&["sweep", "sweep.ron"]).status.code(), Some(3));

    let result: Value =
        serde_json::from_slice(&std::fs::read(place.sweep("slow").join("sweep.json")).unwrap()).unwrap();
    let result = &result["trials"][0]["result"];
    assert_eq!(result["timed_out"], true);
    assert_eq!(result["reason"], "it took more than budget.time_limit_s, 3 s");
}

#[test]
fn only_the_better_half_continues_after_a_rung() {
    let place = Place::with(
        r#"(
            name: "halved",
            scenario: "short.ron",
            axes: [(path: "policy.controller", values: list(["wait", "heuristic", "random"]))],
            set: [(path: "run.rounds", value: 4)],
            replicates: 2,
            early_stop: (first_rounds: 1, factor: 2),
            budget: (parallel: 2),
        )"#,
    );

    place.succeeds(&["sweep", "sweep.ron"]);

    assert_eq!(
        place.status("halved"),
        BTreeMap::from([("done".into(), 2), ("given_up".into(), 4)])
    );
    let trials = std::fs::read_to_string(place.sweep("halved").join("trials.csv")).unwrap();
    let column = trials
        .lines()
        .next()
        .unwrap()
        .split(',')
        .position(|name| name == "rounds")
        .unwrap();
    let mut rounds: Vec<&str> = trials
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(column).unwrap())
        .collect();
    rounds.sort_unstable();
    assert_eq!(rounds, ["1", "1", "2", "2", "4", "4"]);
}

#[test]
fn a_sweep_that_is_not_there_is_named_with_the_places_that_were_looked_in() {
    let place = Place::with(SWEEP);

    let error = place.refused(&["sweep", "status", "nope"]);

    assert!(error.contains("there is no sweep nope"), "{error}");
    assert!(error.contains("runs/sweeps/nope"), "{error}");
}

#[test]
fn methods_of_a_sweep_are_compared_over_their_trainings() {
    let place = Place::with(&SWEEP.replace("\"actor_critic\"", "\"wait\""));
    place.succeeds(&["sweep", "sweep.ron"]);

    let table = place.succeeds(&["compare", "pair", "--metric", "param_ratio"]);
    let json: Value = serde_json::from_str(&place.succeeds(&["compare", "pair", "--json", "--csv", "tables"])).unwrap();

    assert_eq!(
        table.lines().filter(|line| line.chars().count() > 80).count(),
        0,
        "{table}"
    );
    assert_eq!(json["methods"][0]["method"], "wait");
    assert_eq!(json["methods"][0]["trainings"], 3);
    assert_eq!(json["differences"][0]["verdict"], "insufficient_data");
    assert_eq!(json["differences"][0]["design"], "paired");
    for name in ["scores", "differences"] {
        assert!(
            place
                .folder
                .path()
                .join("tables")
                .join(name)
                .with_extension("csv")
                .is_file()
        );
    }
    let unknown = place.refused(&["compare", "pair", "--by", "run.nothing"]);
    assert!(unknown.contains("has no such field"), "{unknown}");
}

#[test]
fn with_an_evaluation_trials_are_scored_by_episodes_that_nothing_was_trained_on() {
    let place = Place::with(&SWEEP.replace(
        "replicates: 3,",
        "replicates: 1, evaluation: (episodes: 2, seeds: [101, 102], mode: sample),",
    ));

    place.succeeds(&["sweep", "sweep.ron"]);

    let sweep: Value = serde_json::from_slice(&std::fs::read(place.sweep("pair").join("sweep.json")).unwrap()).unwrap();
    for trial in sweep["trials"].as_array().unwrap() {
        let training = &trial["result"]["training"];
        assert_eq!(training["is_evaluated"], true);
        let seeds: Vec<u64> = training["episodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|episode| episode["seed"].as_u64().unwrap())
            .collect();
        assert_eq!(seeds, [101, 101, 102, 102]);
    }
}

#[cfg(unix)]
#[test]
fn an_engine_for_many_machines_that_ends_early_is_a_failure_and_leaves_a_sweep_that_can_be_continued() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::with(SWEEP);
    let programs = place.folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    for name in ["python3", "sbatch"] {
        place.write(&format!("bin/{name}"), "#!/bin/sh\nexit 1\n");
        std::fs::set_permissions(programs.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }

    for cluster in ["ray", "slurm"] {
        let ended = ended(
            place
                .command(&["sweep", "sweep.ron", "--on", cluster])
                .env("PATH", &programs),
        );

        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{cluster}: {said}");
        assert!(said.contains("error: ") && said.contains("exit status: 1"), "{said}");
    }
    assert!(
        place
            .succeeds(&["sweep", "status", "pair"])
            .starts_with("pair: 6 waiting")
    );
}
