//! `eval --against` what would have done as well: a wider host, networks from scratch, schedules that were drawn.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{call, ended, newest, refused, succeeds, text};

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
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
)"#;

/// A run of the scenario, played to its end.
fn run(at: &Path) -> PathBuf {
    let scenario = at.join("tiny.ron");
    fs::write(&scenario, SCENARIO).expect("written");
    let runs = at.join("runs");
    let output = ended(
        call(&["run", "--threads", "2", "--progress", "none"])
            .arg(&scenario)
            .arg("--out")
            .arg(&runs),
    );
    succeeds(&output);
    newest(&runs)
}

fn eval(run: &Path, arguments: &[&str]) -> std::process::Output {
    ended(call(&["eval", "--threads", "2"]).arg(run).args(arguments))
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
fn a_policy_is_compared_with_what_would_have_done_as_well() {
    let place = tempfile::tempdir().expect("a folder");
    let run = run(place.path());
    let saved = place.path().join("evaluation.json");
    let against = "wait,periodic,widened,from_scratch,schedules";

    let output = eval(
        &run,
        &[
            "--against",
            against,
            "--episodes",
            "6",
            "--schedules",
            "2",
            "--save",
            &saved.to_string_lossy(),
        ],
    );

    let table = succeeds(&output);
    let read: Value = serde_json::from_slice(&fs::read(saved).expect("it is written")).expect("JSON");
    let [players, costs] = ["players", "costs"].map(|key| read[key].as_array().expect("a list"));
    let names = |rows: &[Value]| -> Vec<String> {
        let names = rows.iter().filter_map(|row| row["name"].as_str());
        names.map(String::from).collect()
    };
    let expected = [
        "policy (greedy)",
        "policy (sampled)",
        "wait",
        "periodic",
        "host widened",
        "from scratch, equal epochs",
        "from scratch, equal compute",
        "from scratch, equal seconds",
        "best schedule",
        "best schedule by net",
    ];
    assert_eq!(names(players), expected);
    assert_eq!(names(costs), expected);
    assert!(table.contains("what it took") && table.contains("verdict"), "{table}");

    let size = |index: usize| number(&players[index]["param_ratio"]["mean"], "value");
    assert_eq!((size(2), number(&costs[2], "steps")), (1.0, 8.0));
    // Without the seeds that were still in training in the end.
    assert!(1.0 < size(5) && size(5) <= size(1), "{}", size(5));
    // To half a step of the eight or more that a network from scratch takes.
    let [sampled, equal_epochs, equal_compute] = [1, 5, 6].map(|index| number(&players[index], "gmacs"));
    let difference = (equal_compute - sampled).abs();
    assert!(
        difference <= equal_epochs / 8.0 / 2.0 + 1e-12,
        "{difference} against {equal_epochs}"
    );
    assert!(size(4) >= size(1), "a wider host is no smaller");
    assert!(size(3) > 1.0, "periodic grows");
    assert_eq!(read["differences"].as_array().map(Vec::len), Some(2 * 8));
    assert!(read["differences"][0]["adjusted_p"].is_number());
    assert!(number(&costs[1]["found_by"], "gmacs") > 0.0, "what the training took");
    assert!(number(&costs[8]["found_by"], "gmacs") > 0.0, "what the search took");
    assert_eq!(
        costs[8]["found_by"], costs[9]["found_by"],
        "both were found by one search"
    );
    // The scenario charges a point for as many parameters as the host has.
    let net = number(&players[4]["accuracy"]["mean"], "value") - (size(4) - 1.0);
    let told = number(&players[4]["accuracy_minus_price"]["mean"], "value");
    assert!((told - net).abs() < 1e-9, "{told} against {net}");
    assert_eq!(
        (read["seeds"][0].as_u64(), read["search_seed"].as_u64()),
        (Some(42), Some(43))
    );

    let told = text(&output.stderr);
    assert!(told.starts_with("10 players x 1 seed x 6 episodes x 8 steps"), "{told}");
    assert!(told.contains("schedule 2, seed 43: accuracy ") && told.contains("10/10 best schedule by net, seed 42: "));
}

#[test]
fn schedules_are_sought_for_what_the_training_took_under_a_seed_of_their_own() {
    let place = tempfile::tempdir().expect("a folder");
    let run = run(place.path());
    let arguments = [
        "--against",
        "schedules",
        "--seed",
        "7,43",
        "--episodes",
        "2",
        "--greedy",
        "--json",
    ];

    let output = eval(&run, &arguments);

    let read: Value = serde_json::from_str(&succeeds(&output)).expect("JSON");
    assert_eq!(read["players"].as_array().map(Vec::len), Some(3));
    assert_eq!(read["search_seed"], 44, "43 is evaluated under");
    let (search, training) = (&read["costs"][1]["found_by"], &read["costs"][0]["found_by"]);
    assert!(number(search, "gmacs") >= number(training, "gmacs"), "{read}");
    assert_eq!(read["differences"][0]["verdict"], "insufficient_data");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let run = run(place.path());

    let scenario = place.path().join("tiny.ron");
    let scenario = scenario.to_string_lossy();
    let arguments = ["--scenario", &*scenario, "--against", "schedules"];
    let alone = refused(&eval(&run.join("checkpoints/last/policy"), &arguments));
    assert!(
        alone.contains("is a policy without its run") && alone.contains("--schedules M"),
        "{alone}"
    );
    let unknown = refused(&eval(&run, &["--against", "oracle"]));
    assert!(
        unknown.contains("there is no opponent `oracle`; valid: none, ") && unknown.contains("from_scratch"),
        "{unknown}"
    );
    let twice = refused(&eval(&run, &["--against", "widened,widened"]));
    assert!(twice.contains("--against names `widened` twice"), "{twice}");
}
