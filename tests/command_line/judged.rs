//! Sweeps with a judge as a user meets them: points that are played, scored and compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::program::{engine, engine_at, refused, succeeds, text};
use crate::support::lines;

const WAIT_AND_RANDOM: &str =
    r#"(name: "wait", set: []), (name: "random", set: [(path: "policy.controller", value: "random")])"#;

/// A judged sweep of two replicates in a folder of its own; the scenario's own controller is `wait`.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn with(points: &str, rounds: u32, steps: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scenario = format!(
            r#"(
                task: preset("digits_minimal", (batches_per_step: count(1))),
                run: (rounds: {rounds}, n_envs: 2, max_steps: {steps}),
                policy: (controller: "wait", preset: "lstm_small"),
            )"#
        );
        let sweep = format!(
            r#"(
                name: "tiny",
                scenario: "base.ron",
                points: [{points}],
                replicates: 2,
                evaluation: (episodes: 2, seeds: [10007], mode: sample),
                judge: (control: "wait"),
            )"#
        );
        fs::write(folder.path().join("base.ron"), scenario).expect("the scenario is written");
        fs::write(folder.path().join("ab.ron"), sweep).expect("the sweep is written");
        Self { folder }
    }

    fn engine(&self, arguments: &[&str]) -> Output {
        engine_at(self.folder.path(), &[&["--threads", "2"], arguments].concat())
    }

    fn sweep(&self) -> PathBuf {
        self.folder.path().join("runs/sweeps/tiny")
    }

    fn play(&self) -> Value {
        serde_json::from_str(&succeeds(&self.engine(&["run", "ab.ron", "--json"]))).expect("JSON")
    }

    /// Runs by point and replicate.
    fn runs(&self) -> BTreeMap<(String, u64), PathBuf> {
        let plan = json(&self.sweep().join("plan.json"));
        let trials = plan["trials"].as_array().expect("a list");
        let run = |trial: &Value| {
            let id = trial["id"].as_str().expect("an id");
            let name = trial["name"].as_str().expect("a name");
            let replicate = trial["replicate"].as_u64().expect("a number");
            ((name.to_owned(), replicate), self.sweep().join("trials").join(id))
        };
        trials.iter().map(run).collect()
    }
}

fn json(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn points_are_played_scored_and_judged() {
    let place = Place::with(WAIT_AND_RANDOM, 1, 2);

    let collected = place.play();

    let judgement = &collected["judgement"];
    assert_eq!(judgement["metric"], "test_accuracy");
    assert_eq!(judgement["interim"], false);
    assert_eq!(judgement["differences"][0]["first"], "random");
    assert_eq!(judgement["differences"][0]["second"], "wait");
    assert_eq!(judgement["differences"][0]["verdict"], "insufficient_data");
    assert_eq!(json(&place.sweep().join("sweep.json")), collected);
    let trials = fs::read_to_string(place.sweep().join("trials.csv")).expect("the table");
    assert!(trials.starts_with("trial,point,replicate,seed,name,"), "{trials}");
    assert_eq!(trials.matches(",done,").count(), 4, "{trials}");

    let shown = succeeds(&place.engine(&["show", "tiny"]));
    assert!(shown.contains("random - wait") && shown.contains("too few"), "{shown}");
    let file = place.folder.path().join("ab.ron").display().to_string();
    let valid = succeeds(&engine(&["validate", &file]));
    assert_eq!(valid, format!("{file}: ok, a sweep of 4 trials\n"));
    succeeds(&place.engine(&["check", "tiny"]));
}

#[test]
fn points_of_a_replicate_meet_the_same_hosts_and_data() {
    let place = Place::with(WAIT_AND_RANDOM, 1, 2);
    place.play();
    let runs = place.runs();
    let first_steps = |name: &str, replicate| -> Vec<Value> {
        let events = lines(&runs[&(name.to_owned(), replicate)]);
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

    let waiting = first_steps("wait", 0);
    assert_eq!(waiting.len(), 2);
    assert!(waiting[0][2].is_number(), "{waiting:?}");
    assert_eq!(waiting, first_steps("random", 0));
    assert_ne!(waiting, first_steps("wait", 1), "replicates are independent");
}

#[test]
fn a_point_that_fails_takes_its_replicate_out_of_the_comparison_and_is_tried_again() {
    let points = r#"(name: "wait", set: []),
                    (name: "broken", set: [(path: "faults", value: [(env: 0, round: 0, step: 2, fault: env_error)])])"#;
    let place = Place::with(points, 1, 2);

    let output = place.engine(&["run", "ab.ron"]);

    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("4 trainings left out"), "{shown}");
    let runs = place.runs();
    let id = runs[&("broken".to_owned(), 1)]
        .file_name()
        .expect("an id")
        .to_string_lossy();
    let retried = succeeds(&place.engine(&["sweep", "retry", "tiny", &id]));
    assert!(retried.starts_with("to be tried again: 1;"), "{retried}");
}

#[test]
fn what_cannot_be_judged_is_refused_before_anything_runs() {
    let place = Place::with(WAIT_AND_RANDOM, 1, 2);
    let path = place.folder.path().join("ab.ron");
    let sweep = fs::read_to_string(&path).expect("the sweep");
    let refuses = |from: &str, to: &str| {
        fs::write(&path, sweep.replace(from, to)).expect("the sweep is written");
        refused(&place.engine(&["run", "ab.ron"]))
    };

    let unknown = refuses("control: \"wait\"", "control: \"other\"");
    assert!(
        unknown.contains("ab.ron:7:34: judge.control: no point is called \"other\"; there are: wait, random"),
        "{unknown}"
    );
    let unscored = refuses("evaluation: (episodes: 2, seeds: [10007], mode: sample),", "");
    assert!(unscored.contains("write evaluation: "), "{unscored}");
    let unequal = refuses(
        "replicates: 2,",
        "replicates: 2, early_stop: (first_rounds: 1, factor: 2),",
    );
    assert!(unequal.contains("judged points have equal budgets"), "{unequal}");
    let twice = refuses("\"random\", set", "\"wait\", set");
    assert!(twice.contains("two points are called \"wait\""), "{twice}");
    let alone = refused(&place.engine(&["run", "ab.ron", "--until", "1"]));
    assert!(alone.contains("--until is for a single run"), "{alone}");
}
