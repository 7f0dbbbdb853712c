//! The command `controls` as a user meets it: a policy against its control experiments.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{command, ended, newest, refused, succeeds, text};

/// Two envs of a few batches, in which seeds grow and are committed within a few steps.
const SCENARIO: &str = r#"(
    name: "tiny",
    task: preset("digits_minimal", (batches_per_step: count(2), val_batches_per_step: count(1))),
    run: (rounds: 2, n_envs: 2, max_steps: 8),
    policy: (
        controller: "actor_critic", preset: "lstm_small",
        periodic: (period: 1, growth: (tempo: "fast")),
        masks: (sequential_germination: false),
    ),
    lifecycle: (
        auto_forward: (g1: true, g2: true, g3: true),
        gates: (min_training_epochs: 1, min_gradient_health: 0.0),
    ),
)"#;

/// A run of the scenario, played to its end.
fn run(at: &Path) -> PathBuf {
    let scenario = at.join("tiny.ron");
    fs::write(&scenario, SCENARIO).expect("written");
    let runs = at.join("runs");
    let output = ended(
        command(&["run", "--threads", "2", "--progress", "none"])
            .arg(&scenario)
            .arg("--out")
            .arg(&runs),
    );
    succeeds(&output);
    newest(&runs)
}

fn controls(run: &Path, arguments: &[&str]) -> std::process::Output {
    ended(command(&["controls", "--threads", "2"]).arg(run).args(arguments))
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
fn a_policy_is_compared_with_all_controls_in_one_table() {
    let place = tempfile::tempdir().expect("a folder");
    let run = run(place.path());

    let output = controls(&run, &["--episodes", "6", "--schedules", "2"]);

    let table = succeeds(&output);
    let read: Value =
        serde_json::from_slice(&fs::read(run.join("controls.json")).expect("it is written")).expect("JSON");
    let rows = read["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "policy (sampled)",
            "policy (greedy)",
            "never grown",
            "final, equal epochs",
            "final, equal compute",
            "final, equal seconds",
            "host widened",
            "best of 2 schedules",
            "best of 2 by net",
            "heuristic",
            "periodic",
            "fragrow"
        ]
    );
    for name in &names {
        assert!(table.contains(name), "{table}");
    }
    assert!(table.starts_with("tiny on digits_minimal: 3 rounds of 2 envs for everybody, from round 3 on, seed 42\n"));
    assert!(table.contains("checkpoint last: after 2 rounds"), "{table}");

    let [sampled, never, equal_epochs, equal_compute] = [0, 2, 3, 4].map(|index| &rows[index]);
    assert_eq!((number(never, "param_ratio"), number(never, "steps")), (1.0, 8.0));
    // Without the seeds that were still in training in the end.
    let ratio = number(equal_epochs, "param_ratio");
    assert!(1.0 < ratio && ratio <= number(sampled, "param_ratio"), "{ratio}");
    // To half a step of the eight or more that a network from scratch takes.
    let a_step = number(equal_epochs, "gmacs") / 8.0;
    let difference = number(equal_compute, "gmacs") - number(sampled, "gmacs");
    assert!(
        difference.abs() <= a_step / 2.0 + 1e-12,
        "{difference} against {a_step}"
    );
    assert!(number(&rows[6], "param_ratio") >= number(sampled, "param_ratio"));
    assert!(number(&rows[10], "param_ratio") > 1.0, "periodic grows");
    assert!(sampled["against"].is_null());
    assert!(
        rows[1..]
            .iter()
            .all(|row| row["against"]["accuracy"]["difference"]["mean"]["value"].is_number())
    );
    assert!(number(&sampled["found_by"], "gmacs") > 0.0, "what the training took");
    assert!(number(&rows[7]["found_by"], "gmacs") > 0.0, "what the search took");
    assert_eq!(
        rows[7]["found_by"], rows[8]["found_by"],
        "both were found by one search"
    );
    // The scenario charges a point for as many parameters as the host has.
    let net = number(&sampled["accuracy"]["mean"], "value") - (number(sampled, "param_ratio") - 1.0);
    assert!(
        (number(sampled, "accuracy_minus_price") - net).abs() < 1e-9,
        "{sampled}"
    );
    assert_eq!(
        (read["seeds"][0].as_u64(), read["search_seed"].as_u64()),
        (Some(42), Some(43))
    );

    let csv = fs::read_to_string(run.join("controls.csv")).expect("it is written");
    assert_eq!(csv.lines().count(), 13);
    assert!(csv.starts_with("row,steps,schedules,accuracy,"), "{csv}");

    let told = text(&output.stderr);
    assert!(told.starts_with("12 rows of 6 episodes each\n"), "{told}");
    assert!(told.contains("schedule 2, seed 43: accuracy ") && told.contains("fragrow, seed 42: accuracy "));
}

#[test]
fn a_few_controls_are_played_under_seeds_of_their_own() {
    let place = tempfile::tempdir().expect("a folder");
    let run = run(place.path());
    let arguments = [
        "--only",
        "never-grown,schedules",
        "--seed",
        "7,43",
        "--episodes",
        "2",
        "--greedy",
        "--json",
    ];

    let output = controls(&run, &arguments);

    let read: Value = serde_json::from_str(&succeeds(&output)).expect("JSON");
    let rows = read["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names[..3], ["policy (sampled)", "policy (greedy)", "never grown"]);
    assert!(rows[1]["against"].is_null(), "the others are compared with greedy play");
    assert_eq!(read["search_seed"], 44, "43 is evaluated under");
    // Until the search has taken what the training took.
    let (search, training) = (&rows[3]["found_by"], &rows[1]["found_by"]);
    assert!(number(search, "gmacs") >= number(training, "gmacs"), "{read}");
    assert_eq!(rows[2]["against"]["verdict"], "insufficient_data");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let run = run(place.path());

    let alone = refused(&controls(&run.join("checkpoints/last/policy"), &[]));
    assert!(alone.contains("is a policy without its run"), "{alone}");
    let missing = refused(&controls(&run, &["--from", "9"]));
    assert!(
        missing.contains("holds no checkpoint after 9 rounds; there are those after "),
        "{missing}"
    );
    let unknown = refused(&controls(&run, &["--only", "oracle"]));
    assert!(unknown.contains("oracle"), "{unknown}");
}
