//! Sweeps with a judge as a user meets them: points that are played, scored and compared.

use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::program::{
    assert_has, each, ends_with, engine_at, events, folder, json, read, refused, succeeds, text, write,
};

const WAIT_AND_RANDOM: &str =
    r#"(name: "wait", set: []), (name: "random", set: [(path: "policy.controller", value: "random")])"#;

/// A judged sweep of two replicates in a folder of its own; the scenario's own controller is `wait`.
struct Place(tempfile::TempDir);

impl Place {
    fn with(points: &str) -> Self {
        let folder = folder();
        let scenario = r#"(
            task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: 1, n_envs: 2, max_steps: 2),
            policy: (controller: "wait"),
        )"#;
        let sweep = format!(
            r#"(
                name: "tiny",
                scenario: "base.ron",
                points: [{points}],
                replicates: 2,
                evaluation: (episodes: 2, seeds: [10007, 10008], mode: sample),
                judge: (control: "wait"),
            )"#
        );
        write(&folder.path().join("base.ron"), scenario);
        write(&folder.path().join("ab.ron"), sweep);
        Self(folder)
    }

    fn engine(&self, line: &str) -> Output {
        engine_at(self.0.path(), &format!("{line} --threads 2"))
    }

    fn sweep(&self) -> PathBuf {
        self.0.path().join("runs/sweeps/tiny")
    }

    /// The id of the trial of a point and a replicate.
    fn trial(&self, name: &str, replicate: u64) -> String {
        let plan = json(&read(&self.sweep().join("plan.json")));
        let mut trials = plan["trials"].as_array().expect("a list").iter();
        let trial = trials.find(|trial| trial["name"] == name && trial["replicate"] == replicate);
        let id = trial.and_then(|trial| trial["id"].as_str());
        id.expect("it is planned").to_owned()
    }

    /// Measurements of a trial's envs in their first step.
    fn first_step(&self, name: &str, replicate: u64) -> Vec<Value> {
        let run = self.sweep().join("trials").join(self.trial(name, replicate));
        let steps = events(&run, "env_step").into_iter().filter(|step| step["step"] == 1);
        let measured = |step: Value| {
            let data = &step["data"];
            json!([step["env"], data["train_loss"], data["val_loss"], data["val_accuracy"]])
        };
        steps.map(measured).collect()
    }
}

#[test]
#[ignore = "long tier"]
fn points_are_played_scored_by_episodes_that_nothing_was_trained_on_and_judged() {
    let place = Place::with(WAIT_AND_RANDOM);

    let collected = json(&succeeds(&place.engine("run ab.ron --json")));

    let judgement = &collected["judgement"];
    assert_eq!(judgement["metric"], "test_accuracy");
    assert_eq!(judgement["interim"], false);
    let difference = &judgement["differences"][0];
    assert_eq!([&difference["first"], &difference["second"]], ["random", "wait"]);
    assert_eq!(difference["verdict"], "insufficient_data");
    for result in each(&collected["trials"], "result") {
        assert_eq!(result["training"]["is_evaluated"], true);
        let seeds = each(&result["training"]["episodes"], "seed");
        assert_eq!(seeds, [10007, 10007, 10008, 10008]);
    }
    assert_eq!(json(&read(&place.sweep().join("sweep.json"))), collected);
    let trials = read(&place.sweep().join("trials.csv"));
    assert!(trials.starts_with("trial,point,replicate,seed,name,"), "{trials}");
    assert_eq!(trials.matches(",done,").count(), 4, "{trials}");

    let shown = succeeds(&place.engine("show tiny"));
    assert_has(&shown, &["random - wait", "too few"]);
    let valid = succeeds(&place.engine("validate ab.ron"));
    assert!(valid.ends_with("/ab.ron: ok, a sweep of 4 trials\n"), "{valid}");
    succeeds(&place.engine("check tiny"));

    // Points of a replicate meet the same hosts and data; replicates are independent.
    let waiting = place.first_step("wait", 0);
    assert_eq!(waiting.len(), 2);
    assert!(waiting[0][2].is_number(), "{waiting:?}");
    assert_eq!(waiting, place.first_step("random", 0));
    assert_ne!(waiting, place.first_step("wait", 1));
}

#[test]
#[ignore = "long tier"]
fn a_point_that_fails_takes_its_replicate_out_of_the_comparison_and_is_tried_again() {
    let points = r#"(name: "wait", set: []),
                    (name: "broken", set: [(path: "faults", value: [(env: 0, round: 0, step: 2, fault: env_error)])])"#;
    let place = Place::with(points);

    let output = place.engine("run ab.ron");

    ends_with(3, &output);
    assert_has(&text(&output.stdout), &["4 trainings left out"]);
    let id = place.trial("broken", 1);
    let retried = succeeds(&place.engine(&format!("sweep retry tiny {id}")));
    assert!(retried.starts_with("to be tried again: 1;"), "{retried}");
}

#[test]
fn what_cannot_be_judged_is_refused_before_anything_runs() {
    let place = Place::with(WAIT_AND_RANDOM);
    let path = place.0.path().join("ab.ron");
    let sweep = read(&path);

    let control = r#"ab.ron:7:34: judge.control: no point is called "other"; there are: wait, random"#;
    let evaluation = "evaluation: (episodes: 2, seeds: [10007, 10008], mode: sample),";
    let halved = "replicates: 2, early_stop: (first_rounds: 1, factor: 2),";
    for (from, to, expected) in [
        ("control: \"wait\"", "control: \"other\"", control),
        (evaluation, "", "write evaluation: "),
        ("replicates: 2,", halved, "judged points have equal budgets"),
        ("\"random\", set", "\"wait\", set", "two points are called \"wait\""),
    ] {
        write(&path, sweep.replace(from, to));
        assert_has(&refused(&place.engine("run ab.ron")), &[expected]);
    }
    let alone = refused(&place.engine("run ab.ron --until 1"));
    assert_has(&alone, &["--until is for a single run"]);
}
