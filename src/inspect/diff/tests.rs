use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::*;

const HEADER: &str = r#"{"type":"header","schema":1,"run_id":"a","engine":"0.1.0"}"#;

/// A folder with a scenario and these events after a header. `rest` comes after the last line.
fn run(scenario: &str, events: &[Value], rest: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("resolved.ron"), scenario).unwrap();
    let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
    let text = format!("{HEADER}\n{}\n{rest}", lines.join("\n"));
    fs::write(folder.path().join("events.jsonl"), text).unwrap();
    folder
}

fn step(seq: u64, round: u32, env: u32, loss: f64) -> Value {
    json!({
        "seq": seq, "t": format!("{seq}"), "type": "env_step", "round": round, "env": env, "step": 1,
        "data": {"val_loss": loss, "wall_ms": seq},
    })
}

fn between(left: &TempDir, right: &TempDir, extent: Extent) -> Vec<Difference> {
    let kinds = [DiffKind::Scenario, DiffKind::Events];
    diff(left.path(), right.path(), &kinds, extent).unwrap().differences
}

fn fields(differences: Vec<Difference>) -> Vec<String> {
    differences.into_iter().map(|difference| difference.field).collect()
}

#[test]
fn clocks_and_numbers_of_events_make_no_difference_and_neither_does_half_a_line() {
    let left = run("()", &[step(0, 0, 0, 0.5), step(1, 0, 1, 0.5)], "");
    let health = json!({"seq": 1, "type": "checkpoint_saved"});
    let right = run("()", &[step(0, 0, 0, 0.5), health, step(2, 0, 1, 0.5)], "{\"se");

    assert_eq!(between(&left, &right, Extent::OfEvery(9)), []);
}

#[test]
fn the_first_difference_has_its_place_and_both_values() {
    let left = run("()", &[step(0, 3, 0, 0.5), step(1, 3, 1, 0.5)], "");
    let right = run("()", &[step(0, 3, 0, 0.5), step(1, 3, 1, 0.25)], "");

    let found = between(&left, &right, Extent::First);

    let [left, right] = [left, right].map(|run| run.path().join("events.jsonl").display().to_string());
    let expected = "events: round 4, step 1, env 1: env_step data.val_loss";
    assert_eq!(
        found[0].to_string(),
        format!("{expected}\n  0.5  ({left}:3)\n  0.25  ({right}:3)")
    );
}

#[test]
fn a_scenario_that_differs_is_named_before_what_it_leads_to() {
    let left = run("(\n    seed: 1,\n    lr: 0.1,\n)", &[step(0, 0, 0, 0.5)], "");
    let right = run("(\n    seed: 2,\n    lr: 0.2,\n)", &[step(0, 0, 0, 0.75)], "");

    let fields = |extent| fields(between(&left, &right, extent));

    assert_eq!(fields(Extent::First), ["seed"]);
    assert_eq!(fields(Extent::OfEvery(1)), ["seed", "data.val_loss"]);
    assert_eq!(fields(Extent::OfEvery(5)), ["seed", "lr", "data.val_loss"]);
}

#[test]
fn events_that_tell_of_different_things_end_the_comparison() {
    let left = run("()", &[step(0, 0, 0, 0.5), step(1, 0, 1, 0.5), step(2, 1, 0, 0.5)], "");
    let right = run("()", &[step(0, 0, 0, 0.5), step(1, 1, 0, 0.5)], "");
    let shorter = run("()", &[step(0, 0, 0, 0.5)], "");

    let parted = between(&left, &right, Extent::OfEvery(5));
    assert_eq!(parted[0].at.round, Some(0));
    assert_eq!(fields(parted), ["round"]);
    let ended = between(&left, &shorter, Extent::OfEvery(5));
    assert_eq!(ended[0].at.env, Some(1));
    assert_eq!(ended[0].left.value, Some("env_step".into()));
    assert_eq!(ended[0].right.value, None);
    assert_eq!(fields(ended), ["type"]);
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_the_line() {
    let run = run("()", &[step(0, 0, 0, 0.5)], "{\n");
    let nothing = tempfile::tempdir().unwrap();

    let error = diff(run.path(), run.path(), &[DiffKind::Events], Extent::First).unwrap_err();
    assert!(error.to_string().contains("events.jsonl:3: "), "{error}");
    let error = diff(run.path(), nothing.path(), &DiffKind::ALL, Extent::First).unwrap_err();
    let expected = "isn't a run directory: it has no resolved.ron";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[test]
fn what_an_interruption_changes_in_a_checkpoint_is_left_out() {
    let checkpoint = |best: &str, history: &str| {
        let run = run("()", &[], "");
        let folder = run.path().join("checkpoints/round-000003");
        fs::create_dir_all(&folder).unwrap();
        let text = format!("(\n    history: [\n        {history},\n    ],\n    best: {best},\n)\n");
        fs::write(folder.join("run.ron"), text).unwrap();
        run
    };
    let undisturbed = checkpoint("Some((\n        next_round: 2,\n    ))", "70.0");
    let fields_of = |other: &TempDir| {
        let kinds = [DiffKind::Checkpoints];
        let found = diff(undisturbed.path(), other.path(), &kinds, Extent::OfEvery(9)).unwrap();
        assert_eq!(found.compared[0].count, 1);
        fields(found.differences)
    };

    assert_eq!(fields_of(&checkpoint("None", "70.0")), [""; 0]);
    assert_eq!(fields_of(&checkpoint("None", "60.0")), ["history.0"]);
}
