//! A network is grown within a budget beside what else the compute could have bought, and what is chosen is written whole.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{engine, refused, succeeds};
use crate::report::section_table;

/// Short rows of one try on the embedded digits.
fn grow(place: &Path, more: &[&str]) -> std::process::Output {
    let scenario = place.join("digits.ron");
    fs::write(
        &scenario,
        r#"(task: preset("digits_baseline", (batches_per_step: count(4))))"#,
    )
    .expect("written");
    let [scenario, to] = [scenario, place.join("grown")].map(|path| path.to_str().expect("text").to_owned());
    let mut arguments = vec![
        "grow",
        "--scenario",
        &scenario,
        "-o",
        &to,
        "--steps",
        "10",
        "--tries",
        "1",
        "--seed",
        "3",
    ];
    arguments.extend(more);
    engine(&arguments)
}

fn growth(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("grow.json")).expect("there")).expect("JSON")
}

#[test]
fn rows_are_compared_at_equal_compute_and_the_chosen_network_is_written_with_its_reason() {
    let place = tempfile::tempdir().expect("a folder");
    let printed = succeeds(&grow(place.path(), &["--budget", "3x", "--rates", "0.01,0.05"]));

    let folder = place.path().join("grown");
    let growth = growth(&folder);
    let rows = growth["rows"].as_array().expect("rows");
    let ways: Vec<&str> = rows.iter().filter_map(|row| row["way"].as_str()).collect();
    assert_eq!(ways, ["trained", "widened", "from_scratch", "grown"]);
    let number = |row: &Value, name: &str| row[name].as_f64().expect("a number");
    let grown = &rows[3];
    for row in &rows[..3] {
        let share = number(row, "gmacs") / number(grown, "gmacs");
        // In whole steps.
        assert!(
            (0.8..1.25).contains(&share),
            "{} took {share} of the grown compute",
            row["name"]
        );
        assert_eq!(row["tried"], 2);
    }
    assert!(number(&rows[1], "parameters") >= number(grown, "parameters"));
    assert_eq!(rows[2]["parameters"], grown["parameters"]);
    let host = number(&rows[0], "parameters");
    assert!(number(grown, "parameters") <= 3.0 * host);
    let why = growth["choice"]["why"].as_str().expect("a sentence");
    assert!(fs::read_to_string(folder.join("card.md")).expect("there").contains(why));
    assert!(printed.contains("grown"), "{printed}");
    let page = fs::read_to_string(folder.join("report.html")).expect("the page is there");
    let shown = section_table(&page, "better");
    assert_eq!(shown.len(), rows.len());
    for (row, shown) in rows.iter().zip(&shown) {
        let test = format!("{:.2}", number(&row["test"], "mean"));
        assert_eq!(
            (&shown[0], &shown[9]),
            (&row["name"].as_str().expect("a name").to_owned(), &test)
        );
    }
    // It can be played again.
    let scenario = folder.join("scenario.ron");
    succeeds(&engine(&["validate", scenario.to_str().expect("text")]));
}

#[test]
fn a_given_network_that_is_frozen_is_inside_what_is_written_bit_for_bit() {
    let place = tempfile::tempdir().expect("a folder");
    succeeds(&grow(place.path(), &["--budget", "2x"]));
    let given = place.path().join("given.safetensors");
    fs::rename(place.path().join("grown/kept.safetensors"), &given).expect("moved");
    let weights = given.to_str().expect("text");

    succeeds(&grow(
        place.path(),
        &["--budget", "3x", "--weights", weights, "--freeze", "--force"],
    ));

    let growth = growth(&place.path().join("grown"));
    let ways: Vec<&Value> = growth["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| &row["way"])
        .collect();
    assert_eq!(ways, ["given", "trained", "head", "grown"]);
    let notes = growth["notes"].to_string();
    assert!(notes.contains("--host"), "{notes}");
    use simic_engine::extend::GrownNetwork;
    let before = GrownNetwork::load(&given).expect("a network");
    let after = GrownNetwork::load(&place.path().join("grown/kept.safetensors")).expect("a network");
    for (name, tensor) in &before.parameters {
        assert_eq!(after.parameters.get(name), Some(tensor), "{name}");
    }
}

/// With a policy for the slots and blueprints of the task, and what was known before measured again.
#[test]
fn a_policy_may_decide_and_what_is_read_of_old_data_is_measured() {
    let place = tempfile::tempdir().expect("a folder");
    succeeds(&grow(place.path(), &["--budget", "2x"]));
    let given = place.path().join("given.safetensors");
    fs::rename(place.path().join("grown/kept.safetensors"), &given).expect("moved");
    let train = place.path().join("train.ron");
    let text = r#"(task: preset("digits_baseline", (batches_per_step: count(2))), policy: (controller: "actor_critic", preset: "lstm_small"),
        run: (rounds: 1, n_envs: 1, max_steps: 4))"#;
    fs::write(&train, text).expect("written");
    let [train, runs, given] =
        [train, place.path().join("runs"), given].map(|path| path.to_str().expect("text").to_owned());
    succeeds(&engine(&[
        "run",
        &train,
        "--out",
        &runs,
        "--id",
        "policy",
        "--progress",
        "none",
    ]));
    let old = place.path().join("old");
    for class in 0..10 {
        let class = old.join(class.to_string());
        fs::create_dir_all(&class).expect("made");
        for index in 0..10 {
            let pixels = (0..64).map(|pixel| ((pixel * (index + 3)) % 251) as u8).collect();
            let image = image::GrayImage::from_raw(8, 8, pixels).expect("64 pixels");
            image.save(class.join(format!("{index}.png"))).expect("written");
        }
    }
    let policy = Path::new(&runs).join("policy/checkpoints/last/policy");
    let old = old.to_str().expect("text");
    let policy = policy.to_str().expect("text");

    succeeds(&grow(
        place.path(),
        &[
            "--budget",
            "4x",
            "--weights",
            &given,
            "--policy",
            policy,
            "--old",
            old,
            "--force",
        ],
    ));

    let growth = growth(&place.path().join("grown"));
    for row in growth["rows"].as_array().expect("rows") {
        assert!(row["old"]["mean"].is_number(), "{row}");
    }
    for tried in growth["tried"].as_array().expect("rows") {
        assert_eq!(tried["name"], "what the policy grows");
    }
    let said = refused(&grow(place.path(), &["--policy", place.path().to_str().expect("text")]));
    assert!(said.contains("policy.ron: there is no such file"), "{said}");
}

#[test]
fn weights_that_are_of_no_known_host_are_refused_with_what_to_say() {
    let place = tempfile::tempdir().expect("a folder");
    let weights = place.path().join("mine.safetensors");
    // One tensor of no known network: the length of the header, the header, its bytes.
    let header = r#"{"conv.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 4]].concat();
    fs::write(&weights, bytes).expect("written");

    let said = refused(&grow(place.path(), &["--weights", weights.to_str().expect("text")]));

    assert!(said.contains("resnet20") && said.contains("--host"), "{said}");
}

#[test]
fn what_cannot_be_grown_is_refused_before_anything_is_played_and_nothing_is_written() {
    let place = tempfile::tempdir().expect("a folder");
    let said = |more: &[&str]| refused(&grow(place.path(), more));
    assert!(said(&["--budget", "plenty"]).contains("valid: 2x"));
    assert!(said(&["--budget", "1.0001x"]).contains("raise it"));
    assert!(said(&["--host", "resnet21"]).contains("resnet20"));
    assert!(said(&["--weights", "missing.safetensors"]).contains("missing.safetensors"));
    assert!(said(&["--freeze"]).contains("--weights"));
    assert!(!place.path().join("grown").exists());
    fs::create_dir(place.path().join("grown")).expect("made");
    fs::write(place.path().join("grown/thesis.tex"), "years").expect("written");
    assert!(said(&[]).contains("thesis.tex"));
}
