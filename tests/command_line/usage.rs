//! A newcomer's commands, and the messages on their slips.

use std::process::Output;

use crate::program::{
    assert_has, call, command, ended, ends_with, engine, engine_at, folder, json, newest, read, refused, repository,
    succeeds, text, write,
};

const COMMANDS: &str = "run learn resume runs show report watch check diff export-tables eval validate data traj list \
                        explain new sweep compare serve-envs export grow adapt";

/// The help of a command.
fn help(command: &str) -> String {
    succeeds(&engine(&format!("{command} --help")))
}

#[test]
fn every_command_s_help_fits_on_a_screen_and_has_examples() {
    for command in COMMANDS.split(' ') {
        let help = help(command);
        assert_has(&help, &["Examples:\n  simic-engine "]);
        assert!(help.lines().count() <= 50, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        let short = succeeds(&engine(&format!("{command} -h")));
        assert_eq!(help, short, "one help, long or short");
    }
}

#[test]
fn the_help_of_all_commands() {
    let help_of = |commands: &str| commands.split(' ').map(help).collect::<Vec<_>>().join("\n");
    let of_runs = "resume runs show report watch export-tables check diff eval";
    insta::assert_snapshot!(help_of(of_runs));
    let others = "validate data list explain new sweep compare serve-envs";
    insta::assert_snapshot!(help_of(others));
}

#[test]
fn exit_codes_are_listed_in_the_help_and_in_the_guide() {
    let (help, guide) = (help(""), include_str!("../../docs/guide/src/failures.md"));
    for code in "0 1 2 3 4 5 6 7 8 101 129 130 134 143".split(' ') {
        let is_word = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == code);
        assert!(is_word(&help) && is_word(guide), "{code}");
    }
}

/// The first line of what a refused command says.
fn complaint(output: &Output) -> String {
    refused(output).lines().next().unwrap_or_default().into()
}

#[test]
fn a_missing_scenario_is_named_with_those_that_may_be_meant() {
    for name in "quickstart quickstart.ron s/quickstart scenarios/quickstrt.ron".split(' ') {
        for command in ["run", "validate"] {
            let message = complaint(&engine(&format!("{command} {name}")));
            let begins = message.starts_with(&format!("error: cannot read the scenario {name}: "));
            let names = message.ends_with("; did you mean scenarios/quickstart.ron?");
            assert!(begins && names, "{message}");
        }
    }
    let unlike = complaint(&engine("run s/tiny"));
    // A reader of the README may have a file of their own here.
    assert_has(&unlike, &["; scenario files nearby: ", "scenarios/ab_rewards.ron, "]);
    let folder_of_some = complaint(&engine("run scenarios"));
    assert_has(&folder_of_some, &["it is a folder; give one of its files: scenarios/"]);

    let elsewhere = folder();
    let scenarios = repository().join("scenarios");
    for (at, name, expected) in [
        (scenarios.as_path(), "quickstart", "; did you mean quickstart.ron?"),
        (elsewhere.path(), "quikstart", "; scenario files nearby: none"),
    ] {
        let message = complaint(&ended(command(&format!("run {name}")).current_dir(at)));
        assert!(message.ends_with(expected), "{message}");
    }
}

#[test]
fn a_scenario_can_come_from_standard_input() {
    let at = folder();
    let scenario = r#"(
        name: "piped",
        task: preset("digits_minimal", (batches_per_step: count(1))),
        run: (rounds: 1, n_envs: 1, max_steps: 2),
        policy: (controller: "wait"),
    )"#;

    let line = format!("run - --progress none --out '{}'", at.path().display());
    succeeds(&ended(call(&line).input(scenario.as_bytes())));

    let run = newest(at.path());
    assert_eq!(read(&run.join("scenario.ron")), scenario);
    let manifest = json(&read(&run.join("manifest.json")));
    assert_eq!(manifest["scenario_folder"].as_str(), repository().to_str());

    let large = vec![b' '; (16 << 20) + 1];
    let cases: [(&str, &[u8], &str); 3] = [
        ("run -", b"(\n  run: (rounds: 0),\n)", "standard input:2:"),
        ("validate -", b"\xff", "standard input:1:1 is not UTF-8"),
        ("validate -", &large, "larger than 16 MiB"),
    ];
    for (line, input, expected) in cases {
        let said = ends_with(2, &ended(call(line).input(input)));
        assert_has(&said, &[expected]);
    }
}

/// Programs read every refusal on standard output.
#[test]
fn with_json_every_refusal_is_json() {
    let at = folder();
    write(&at.path().join("taken"), "");
    let place = at.path().display().to_string();
    let taken = "run --rounds 1 --envs 1 --steps 1 --out PLACE/taken";

    for (line, words) in [
        ("run --set run.rounds=0", "out of range"),
        ("run nowhere.ron", "cannot read the scenario nowhere.ron: "),
        ("run --set rounds", "expected path=value"),
        (taken, "start-up failed: run directory: "),
        ("resume nope", "there is no run nope"),
        ("explain run.n_env", "run.n_env"),
        ("dance", "unrecognized subcommand"),
        ("list tasks --log-file PLACE", "the log file"),
    ] {
        let output = engine(&format!("{} --json", line.replace("PLACE", &place)));
        ends_with(2, &output);
        let problem = &json(&text(&output.stdout))[0];
        assert_eq!(problem["severity"], "error");
        assert_has(problem["message"].as_str().expect("a message"), &[words]);
    }
}

#[test]
fn errors_are_coloured_where_colours_are_asked_for() {
    for line in ["resume nope", "run nowhere.ron", "explain nothing"] {
        let coloured = refused(&engine(&format!("{line} --color always")));
        assert!(coloured.starts_with("\x1b[1;31merror:\x1b[0m "), "{coloured}");
        assert!(refused(&engine(line)).starts_with("error: "));
    }
}

#[test]
fn a_file_that_no_scenario_can_be_is_refused_before_it_is_read() {
    let at = folder();
    let large = std::fs::File::create(at.path().join("large.ron"));
    large.and_then(|file| file.set_len((16 << 20) + 1)).expect("it grows");
    let sweep = r#"(axes: [(path: "run.n_envs", values: list([1, 2]))])"#;
    write(&at.path().join("sweep.ron"), sweep);

    for (line, expected) in [
        ("validate large.ron", "larger than 16 MiB"),
        ("validate /dev/null", "regular file"),
        ("reward-audit sweep.ron", "/sweep.ron --dry-run`"),
    ] {
        assert_has(&complaint(&engine_at(at.path(), line)), &[expected]);
    }
}

#[test]
fn a_name_cannot_steer_the_terminal() {
    let at = folder();
    let run = at.path().join("runs/20260101-100000-\u{1b}]0;mine\u{7}");
    std::fs::create_dir_all(&run).expect("a folder");

    let check = format!("check '{}'", run.display());
    for listed in [engine_at(at.path(), "runs"), engine(&check)] {
        let said = text(&listed.stdout) + &text(&listed.stderr);
        assert!(said.contains("\\u{1b}]0;mine"), "{said:?}");
        assert!(!said.contains(['\u{1b}', '\u{7}']), "{said:?}");
    }
}
