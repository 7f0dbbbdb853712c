//! What a newcomer types, and what is said to a slip of it.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::program::{call, command, ended, engine, refused, repository, succeeds, text};

const COMMANDS: [&str; 22] = [
    "run",
    "learn",
    "resume",
    "runs",
    "show",
    "report",
    "watch",
    "check",
    "diff",
    "export-tables",
    "eval",
    "validate",
    "data",
    "traj",
    "list",
    "explain",
    "new",
    "sweep",
    "compare",
    "serve-envs",
    "export",
    "grow",
];

fn stdout(arguments: &[&str]) -> String {
    succeeds(&engine(arguments))
}

/// The first line of what a refused command says.
fn complaint(at: &Path, arguments: &[&str]) -> String {
    let message = refused(&ended(command(arguments).current_dir(at)));
    message.lines().next().unwrap_or_default().into()
}

#[test]
fn every_command_s_help_fits_on_a_screen_and_has_examples() {
    for command in COMMANDS {
        let help = stdout(&[command, "--help"]);
        assert!(help.contains("Examples:\n  simic-engine "), "{help}");
        assert!(help.lines().count() <= 50, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert_eq!(help, stdout(&[command, "-h"]), "one help, long or short");
    }
}

#[test]
fn the_help_of_all_commands() {
    insta::assert_snapshot!(
        [
            "resume",
            "runs",
            "show",
            "report",
            "watch",
            "export-tables",
            "check",
            "diff",
            "eval"
        ]
        .map(|command| stdout(&[command, "--help"]))
        .join("\n")
    );
    insta::assert_snapshot!(
        [
            "validate",
            "data",
            "list",
            "explain",
            "new",
            "sweep",
            "compare",
            "serve-envs"
        ]
        .map(|command| stdout(&[command, "--help"]))
        .join("\n")
    );
}

#[test]
fn exit_codes_are_listed_in_the_help_and_in_the_guide() {
    let (help, guide) = (stdout(&["--help"]), include_str!("../../docs/guide/src/failures.md"));
    for code in [
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "101", "129", "130", "134", "143",
    ] {
        let is_word = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == code);
        assert!(is_word(&help) && is_word(guide), "{code}");
    }
}

#[test]
fn a_scenario_that_is_not_there_is_told_with_those_that_may_be_meant() {
    let here = repository();
    let scenarios = here.join("scenarios");

    for name in [
        "quickstart",
        "quickstart.ron",
        "s/quickstart",
        "scenarios/quickstrt.ron",
    ] {
        for command in ["run", "validate"] {
            let message = complaint(here, &[command, name]);
            assert!(
                message.starts_with(&format!("error: cannot read the scenario {name}: ")),
                "{message}"
            );
            assert!(
                message.ends_with("; did you mean scenarios/quickstart.ron?"),
                "{message}"
            );
        }
    }
    assert!(complaint(&scenarios, &["run", "quickstart"]).ends_with("; did you mean quickstart.ron?"));
    let unlike = complaint(here, &["run", "s/tiny"]);
    assert!(
        // A reader of the README may have a file of their own here.
        unlike.contains("; scenario files nearby: ") && unlike.contains("scenarios/ab_rewards.ron, "),
        "{unlike}"
    );
    let folder = complaint(here, &["run", "scenarios"]);
    assert!(
        folder.contains("it is a folder; give one of its files: scenarios/"),
        "{folder}"
    );

    let elsewhere = tempfile::tempdir().expect("a folder");
    let at = elsewhere.path().join("empty");
    std::fs::create_dir(&at).expect("a folder");
    let built_in = complaint(&at, &["run", "quikstart"]);
    assert!(
        built_in.ends_with("; `simic-engine run` without a file plays the built-in quickstart"),
        "{built_in}"
    );
}

/// Passes `scenario` on standard input.
fn with_input(at: &Path, arguments: &[&str], scenario: &[u8]) -> Output {
    let mut child = command(arguments)
        .current_dir(at)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the engine starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(scenario).expect("it is read");
    drop(input);
    child.wait_with_output().expect("the engine ends")
}

#[test]
fn a_scenario_can_come_from_standard_input() {
    let at = tempfile::tempdir().expect("a folder");
    let scenario = br#"(
        name: "piped",
        task: preset("digits_minimal", (batches_per_step: count(1))),
        run: (rounds: 1, n_envs: 1, max_steps: 2),
        policy: (controller: "wait"),
    )"#;

    let output = with_input(at.path(), &["run", "-", "--progress", "none"], scenario);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = crate::support::latest(&at.path().join("runs"));
    assert_eq!(std::fs::read(run.join("scenario.ron")).expect("it is kept"), scenario);
    let manifest = std::fs::read(run.join("manifest.json")).expect("there is a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let folder = at.path().canonicalize().expect("it is there");
    assert_eq!(manifest["scenario_folder"], folder.to_string_lossy().as_ref());

    let output = ended(call(&["run", "-"]).input(b"(\n  run: (rounds: 0),\n)"));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).starts_with("standard input:2:"),
        "{}",
        text(&output.stderr)
    );
    let output = ended(call(&["validate", "-"]).input(b"\xff"));
    assert!(
        text(&output.stderr).contains("standard input:1:1 is not UTF-8"),
        "{}",
        text(&output.stderr)
    );
}

/// Programs read every refusal on standard output.
#[test]
fn with_json_every_refusal_is_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("taken");
    std::fs::write(&file, "").expect("a file");
    let file = file.to_string_lossy();
    let message = |arguments: &[&str]| -> String {
        let output = engine(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let problems: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        assert_eq!(problems[0]["severity"], "error");
        problems[0]["message"].as_str().expect("a message").into()
    };

    assert!(message(&["run", "--set", "run.rounds=0"]).contains("out of range"));
    assert!(message(&["run", "nowhere.ron"]).starts_with("cannot read the scenario nowhere.ron: "));
    assert!(message(&["run", "--set", "rounds"]).contains("expected path=value"));
    let size = ["--rounds", "1", "--envs", "1", "--steps", "1"];
    assert!(message(&[&["run", "--out", &file][..], &size].concat()).starts_with("start-up failed: run directory: "));
    assert!(message(&["resume", "nope"]).starts_with("there is no run nope"));
    assert!(message(&["explain", "run.n_env"]).contains("run.n_env"));
    assert!(message(&["dance"]).contains("unrecognized subcommand"));
    assert!(message(&["list", "tasks", "--log-file", &folder.path().to_string_lossy()]).contains("the log file"));
}

#[test]
fn errors_are_coloured_where_colours_are_asked_for() {
    let complaint = |arguments: &[&str]| refused(&engine(arguments));
    for arguments in [
        &["resume", "nope"][..],
        &["run", "nowhere.ron"],
        &["explain", "nothing"],
    ] {
        let coloured = complaint(&[arguments, &["--color", "always"]].concat());
        assert!(coloured.starts_with("\x1b[1;31merror:\x1b[0m "), "{coloured}");
        assert!(complaint(arguments).starts_with("error: "));
    }
}

#[test]
fn a_file_that_no_scenario_can_be_is_refused_before_it_is_read() {
    let at = tempfile::tempdir().expect("a folder");
    let large = at.path().join("large.ron");
    let file = std::fs::File::create(&large).expect("a file");
    file.set_len((16 << 20) + 1).expect("it grows");
    assert!(complaint(at.path(), &["validate", "large.ron"]).contains("larger than 16 MiB"));
    assert!(complaint(at.path(), &["validate", "/dev/null"]).contains("no regular file"));

    let output = ended(call(&["validate", "-"]).input(&vec![b' '; (16 << 20) + 1]));
    assert!(text(&output.stderr).contains("larger than 16 MiB"));
}

#[test]
fn a_sweep_file_is_told_from_a_scenario() {
    let at = tempfile::tempdir().expect("a folder");
    let sweep = r#"(axes: [(path: "run.n_envs", values: list([1, 2]))])"#;
    std::fs::write(at.path().join("sweep.ron"), sweep).expect("a file");

    let message = complaint(at.path(), &["reward-audit", "sweep.ron"]);

    assert!(
        message.contains("`simic-engine sweep sweep.ron --dry-run`"),
        "{message}"
    );
}

#[test]
fn a_name_cannot_steer_the_terminal() {
    let at = tempfile::tempdir().expect("a folder");
    let run = at.path().join("20260101-100000-\u{1b}]0;mine\u{7}");
    std::fs::create_dir(&run).expect("a folder");
    let root = at.path().to_string_lossy();

    for listed in [
        engine(&["runs", "--out", &root]),
        engine(&["check", &run.to_string_lossy()]),
    ] {
        let said = text(&listed.stdout) + &text(&listed.stderr);
        assert!(said.contains("\\u{1b}]0;mine"), "{said:?}");
        assert!(!said.contains(['\u{1b}', '\u{7}']), "{said:?}");
    }
}
