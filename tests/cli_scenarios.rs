//! The command line around scenarios: validate, list, explain, and what `run` accepts and refuses.

use std::path::Path;
use std::process::{Command, Output};

fn engine(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simic-engine"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    for variable in ["SIMIC_ENGINE_AMP", "SIMIC_ENGINE_RUNS"] {
        command.env_remove(variable);
    }
    command.output().expect("the engine starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a command that must succeed.
fn stdout(arguments: &[&str]) -> String {
    let output = engine(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Standard error of a command that must be refused as usage or scenario error.
fn refused(arguments: &[&str]) -> String {
    let output = engine(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

#[test]
fn all_shipped_scenarios_are_valid() {
    let files = [
        "scenarios/quickstart.ron",
        "scenarios/digits-augment.ron",
        "scenarios/wrecked-on-purpose.ron",
        "scenarios/synth-rescue.ron",
    ];
    for file in files {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(file).exists());
    }
    insta::assert_snapshot!(stdout(&[&["validate"], &files[..]].concat()));
}

#[test]
fn list_shows_what_the_build_knows() {
    let lists = ["tasks", "hosts", "blueprints", "controllers"];
    insta::assert_snapshot!(lists.map(|what| stdout(&["list", what])).join("\n"));
}

#[test]
fn explain_shows_a_field_a_choice_a_section_and_all_sections() {
    let paths = [
        "run.n_envs",
        "training.amp",
        "policy.heuristic.rotation",
        "run",
        "task.preset",
        "task.host_opt",
    ];
    let texts: Vec<_> = paths.iter().map(|path| stdout(&["explain", path])).collect();
    insta::assert_snapshot!(texts.join("\n"));
    insta::assert_snapshot!(stdout(&["explain"]));
}

#[test]
fn explain_of_an_unknown_path_names_the_nearest() {
    insta::assert_snapshot!(refused(&["explain", "run.n_env"]));
    insta::assert_snapshot!(refused(&["explain", "min_prune_age"]));
}

#[test]
fn a_dry_run_of_the_built_in_quickstart_shows_its_digits_task() {
    let text = stdout(&["run", "--dry-run", "--rounds", "1"]);
    assert!(text.contains("digits_impaired"), "{text}");
}

#[test]
fn a_field_given_by_flag_and_by_set_is_refused() {
    insta::assert_snapshot!(refused(&["run", "--dry-run", "--rounds", "2", "--set", "run.rounds=3"]));
}

#[test]
fn a_flag_out_of_range_is_refused_like_a_field() {
    insta::assert_snapshot!(refused(&[
        "run",
        "--dry-run",
        "--envs",
        "0",
        "--steps",
        "many",
        "--level",
        "loud"
    ]));
}

#[test]
fn wrong_usage_is_refused() {
    assert!(refused(&["run", "--set", "rounds"]).contains("expected path=value"));
    assert!(refused(&["run", "nowhere.ron"]).contains("cannot read the scenario nowhere.ron"));
    assert!(refused(&["dance"]).contains("unrecognized subcommand"));
}

#[test]
fn a_refused_run_touches_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("runs");
    refused(&["run", "--out", &out.to_string_lossy(), "--set", "run.rounds=0"]);
    assert!(!out.exists());
}
