//! Display of a run while it plays: where it is recorded, then one line per round.

use std::path::Path;

use crate::program::{ends_with, engine, folder, succeeds};
use crate::resume::{RULES, finished, write_scenario};
use crate::support::latest;

/// Lines on standard error of two short rounds by rules, recorded in `out`.
fn lines_of_run(out: &Path, asked: &str) -> Vec<String> {
    let scenario = write_scenario(out.parent().expect("a folder"), RULES, 2);
    let [scenario, out] = [&scenario, out].map(Path::display);
    let output = engine(&format!("run '{scenario}' --out '{out}' --threads 2 {asked}"));
    ends_with(0, &output).lines().map(String::from).collect()
}

#[test]
fn without_a_terminal_a_run_says_where_it_is_recorded_and_then_a_line_a_round() {
    let folder = folder();
    let out = folder.path().join("runs");

    let lines = lines_of_run(&out, "");

    let place = latest(&out);
    assert_eq!(lines[0], format!("run directory  {}", place.display()));
    let task = "digits_minimal: 2 envs, 2 rounds of 8 steps, controller heuristic";
    assert_eq!(lines[1], task);
    let heads = "  round  mean rolling  best   reward     seeds steps/s   left";
    assert_eq!(lines[4], heads);
    assert_eq!(lines.len(), 7, "{lines:#?}");
    for (line, round) in lines[5..].iter().zip(["    1/2 ", "    2/2 "]) {
        assert!(line.starts_with(round), "{line}");
    }
    assert!(lines[2..].iter().all(|line| line.len() <= 80), "{lines:#?}");
}

#[test]
fn who_wants_more_gets_a_line_an_event_in_place_of_bars_as_well_and_who_wants_nothing_none() {
    let folder = folder();

    let verbose = lines_of_run(&folder.path().join("verbose"), "-v --progress bar");
    let silent = lines_of_run(&folder.path().join("silent"), "--progress none");

    let count = |words: &str| verbose.iter().filter(|line| line.contains(words)).count();
    let said = "standard error isn't a terminal, so each round prints a line";
    assert_eq!((count("episode finished"), count(said)), (4, 1), "{verbose:#?}");
    assert!(verbose.iter().any(|line| line.starts_with("    2/2 ")), "{verbose:#?}");
    assert!(silent.is_empty(), "{silent:#?}");
}

/// `script` gives the run a terminal.
#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_the_lines_of_rounds_stay_above_the_bars() {
    use crate::program::{PROGRAM, assert_has, text};

    let folder = folder();
    let scenario = write_scenario(folder.path(), RULES, 2);
    let out = folder.path().join("runs");
    let [scenario, out] = [scenario, out].map(|path| path.display().to_string());
    let run = format!("stty cols 80; {PROGRAM} run {scenario} --out {out} --threads 2");

    let mut script = std::process::Command::new("script");
    script.args(["--quiet", "--return", "--command", &run, "/dev/null"]);
    let output = script.output().expect("script is there");

    let screen = text(&output.stdout);
    assert!(output.status.success(), "{screen}");
    // Bars among them.
    let shown = ["run directory  ", "  round  mean rolling", "    1/2 ", "    2/2 ", "━"];
    assert_has(&screen, &shown);
}

#[test]
fn a_resumed_run_says_where_it_is_recorded_as_well() {
    let (_folder, run) = finished();

    let output = engine(&format!("resume '{}' --extend 1", run.display()));

    let said = ends_with(0, &output);
    let first = format!("run directory  {}\n", run.display());
    assert!(said.starts_with(&first), "{said}");
    let summary = succeeds(&output);
    assert!(summary.lines().any(|line| line.starts_with("      5  ")), "{summary}");
}
