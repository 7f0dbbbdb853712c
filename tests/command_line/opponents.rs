//! `eval --against` what would have done as well: a wider host, networks from scratch, schedules that were drawn.

use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::Value;

use crate::eval::eval;
use crate::program::{
    assert_has, copy_of, each, ends_with, engine_at, json, newest, played, read, refused, succeeds, write,
};

/// Two envs of a few batches, in which seeds grow and are committed within a few steps.
const SCENARIO: &str = r#"(
    name: "tiny",
    task: preset("digits_minimal", (batches_per_step: count(2), val_batches_per_step: count(1))),
    run: (rounds: 2, n_envs: 2, max_steps: 8),
    policy: (
        controller: "actor_critic",
        periodic: (period: 1, tempo: "fast"),
        masks: (sequential_germination: false),
    ),
    lifecycle: (
        auto_forward: true,
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
)"#;

/// A run of the scenario, played to its end.
fn run() -> (tempfile::TempDir, PathBuf) {
    static RUN: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("tiny.ron"), SCENARIO);
            succeeds(&engine_at(folder, "run tiny.ron --progress none --threads 2"));
        })
    });
    let folder = copy_of(&RUN);
    let run = newest(&folder.path().join("runs"));
    (folder, run)
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
#[ignore = "long tier"]
fn a_policy_is_compared_with_what_would_have_done_as_well() {
    let (folder, _) = run();

    let asked = "eval latest --against wait,periodic,widened,from_scratch,schedules --episodes 6 --schedules 2";
    let output = engine_at(folder.path(), &format!("{asked} --save evaluation.json --threads 2"));

    assert_has(&succeeds(&output), &["what it took", "verdict"]);
    let document = json(&read(&folder.path().join("evaluation.json")));
    let (players, costs) = (&document["players"], &document["costs"]);
    let expected = [
        "policy (greedy)",
        "policy (sampled)",
        "wait",
        "periodic",
        "host widened",
        "from scratch, equal steps",
        "from scratch, equal compute",
        "from scratch, equal seconds",
        "best schedule",
        "best schedule by net",
    ];
    assert_eq!(each(players, "name"), expected);
    assert_eq!(each(costs, "name"), expected);

    let size = |index: usize| number(&players[index]["param_ratio"]["mean"], "value");
    assert_eq!((size(2), number(&costs[2], "steps")), (1.0, 8.0));
    // Without the seeds that were still in training in the end.
    assert!(1.0 < size(5) && size(5) <= size(1), "{}", size(5));
    // To half a step of the eight or more that a network from scratch takes.
    let [sampled, equal_steps, equal_compute] = [1, 5, 6].map(|index| number(&players[index], "gmacs"));
    let difference = (equal_compute - sampled).abs();
    let half_a_step = equal_steps / 8.0 / 2.0;
    assert!(difference <= half_a_step + 1e-12, "{difference} against {half_a_step}");
    assert!(size(4) >= size(1), "a wider host isn't smaller");
    assert!(size(3) > 1.0, "periodic grows");
    assert_eq!(document["differences"].as_array().map(Vec::len), Some(2 * 8));
    assert!(document["differences"][0]["adjusted_p"].is_number());
    // What the training took, and the search, which has found both.
    assert!(number(&costs[1]["found_by"], "gmacs") > 0.0);
    assert!(number(&costs[8]["found_by"], "gmacs") > 0.0);
    assert_eq!(costs[8]["found_by"], costs[9]["found_by"]);
    // The scenario charges a point for as many parameters as the host has.
    let net = number(&players[4]["accuracy"]["mean"], "value") - (size(4) - 1.0);
    let priced = number(&players[4]["accuracy_minus_price"]["mean"], "value");
    assert!((priced - net).abs() < 1e-9, "{priced} against {net}");
    assert_eq!([&document["seeds"][0], &document["search_seed"]], [42, 43]);

    let said = ends_with(0, &output);
    assert!(said.starts_with("10 players x 1 seed x 6 episodes x 8 steps"), "{said}");
    let last = "10/10 best schedule by net, seed 42: ";
    assert_has(&said, &["schedule 2, seed 43: accuracy ", last]);
}

#[test]
#[ignore = "long tier"]
fn schedules_are_sought_for_what_the_training_took_under_a_seed_of_their_own() {
    let (_folder, run) = run();

    let output = eval(&run, "--against schedules --seed 7,43 --episodes 2 --greedy --json");

    let document = json(&succeeds(&output));
    assert_eq!(document["players"].as_array().map(Vec::len), Some(3));
    assert_eq!(document["search_seed"], 44, "43 is evaluated under");
    let (search, training) = (&document["costs"][1]["found_by"], &document["costs"][0]["found_by"]);
    assert!(number(search, "gmacs") >= number(training, "gmacs"), "{document}");
    assert_eq!(document["differences"][0]["verdict"], "insufficient_data");
}

#[test]
fn schedules_without_a_number_need_the_run_of_the_policy() {
    let (folder, run) = run();

    let place = folder.path().display();
    let asked = format!("--scenario '{place}/tiny.ron' --against schedules");
    let alone = refused(&eval(&run.join("checkpoints/last/policy"), &asked));

    assert_has(&alone, &["is a policy without its run", "--schedules M"]);
}
