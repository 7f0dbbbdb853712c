//! What is seen of a run while it plays: where it is recorded, then a line a round.

use std::path::Path;
use std::process::{Command, Output};

use crate::program::{call, ended, succeeds, text};
use crate::resume::{RULES, finished, write_scenario};
use crate::support::latest;

/// Two short rounds by rules, into `out`.
fn run(out: &Path, arguments: &[&str]) -> Output {
    let scenario = write_scenario(out.parent().expect("a folder"), RULES, 2);
    let mut call = call(&["run", "--threads", "2"]);
    call.arg(scenario).arg("--out").arg(out).args(arguments);
    let output = ended(&mut call);
    succeeds(&output);
    output
}

fn lines(bytes: &[u8]) -> Vec<String> {
    text(bytes).lines().map(String::from).collect()
}

#[test]
fn without_a_terminal_a_run_says_where_it_is_recorded_and_then_a_line_a_round() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("runs");

    let told = lines(&run(&out, &[]).stderr);

    let place = latest(&out);
    assert_eq!(told[0], format!("run directory  {}", place.display()));
    assert_eq!(
        told[1],
        "digits_minimal: 2 envs, 2 rounds of 8 steps, controller heuristic"
    );
    let heads = "  round  mean rolling  best   reward     seeds steps/s   left";
    assert_eq!(told[4], heads);
    let rounds = &told[5..];
    assert_eq!(rounds.len(), 2, "{told:#?}");
    for (line, round) in rounds.iter().zip(["    1/2 ", "    2/2 "]) {
        assert!(line.starts_with(round) && line.len() <= 80, "{line}");
    }
    assert!(told[2..4].iter().all(|line| line.len() <= 80), "{told:#?}");
}

#[test]
fn those_who_want_more_get_a_line_an_event_and_those_who_want_nothing_none() {
    let folder = tempfile::tempdir().expect("a folder");

    let verbose = lines(&run(&folder.path().join("verbose"), &["-v"]).stderr);
    let silent = lines(&run(&folder.path().join("silent"), &["--progress", "none"]).stderr);

    let episodes = verbose.iter().filter(|line| line.contains("episode finished")).count();
    assert_eq!(episodes, 4, "{verbose:#?}");
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn bars_that_are_asked_for_without_a_terminal_become_lines_and_that_is_said_once() {
    let folder = tempfile::tempdir().expect("a folder");

    let told = lines(&run(&folder.path().join("runs"), &["--progress", "bar"]).stderr);

    let said = "standard error is no terminal: a line a round instead";
    assert_eq!(told.iter().filter(|line| *line == said).count(), 1, "{told:#?}");
    assert!(told.iter().any(|line| line.starts_with("    2/2 ")), "{told:#?}");
}

/// `script` gives the run a terminal.
#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_the_lines_of_rounds_stay_above_the_bars() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = write_scenario(folder.path(), RULES, 2);
    let out = folder.path().join("runs");
    let engine = format!(
        "stty cols 80; {} run {} --out {} --threads 2",
        env!("CARGO_BIN_EXE_simic-engine"),
        scenario.display(),
        out.display()
    );

    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &engine, "/dev/null"])
        .output()
        .expect("script is there");

    let screen = text(&output.stdout);
    assert!(output.status.success(), "{screen}");
    for line in ["run directory  ", "  round  mean rolling", "    1/2 ", "    2/2 "] {
        assert!(screen.contains(line), "{line}: {screen}");
    }
    assert!(screen.contains('━'), "there are bars: {screen}");
}

#[test]
fn a_resumed_run_says_where_it_is_recorded_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = finished(folder.path());

    let output = ended(call(&["resume", "--extend", "1"]).arg(&run));

    let told = lines(&output.stderr);
    assert_eq!(told[0], format!("run directory  {}", run.display()));
    let summary = text(&output.stdout);
    assert!(summary.lines().any(|line| line.starts_with("      5  ")), "{summary}");
}
