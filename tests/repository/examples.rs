//! Every program of `examples/` is run as a user runs it, and what it prints is what it is to show.
//!
//! `cargo test` builds them; for this test alone: `cargo build --examples && cargo test --test repository examples::`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number before the first `%`.
fn percent(line: &str) -> f64 {
    let before = line.split('%').next().unwrap_or_default();
    let number = before.split_whitespace().last().and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number in {line:?}"))
}

/// The number after `before` in a line.
fn number(line: &str, before: &str) -> f64 {
    let (_, rest) = line.split_once(before).unwrap_or_default();
    let word = rest.split_whitespace().next().unwrap_or_default();
    let number = word.trim_end_matches([',', ';', ':']).parse();
    number.unwrap_or_else(|error| panic!("no number in {line:?}: {error}"))
}

/// The program that was built of an example, next to this test.
fn program(name: &str, source: &Path) -> PathBuf {
    let help = "help: cargo build --examples";
    let test = std::env::current_exe().expect("this test is a file");
    let folder = test.ancestors().nth(2).expect("target/PROFILE/deps");
    let program = folder.join(format!("examples/{name}{}", std::env::consts::EXE_SUFFIX));
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    let built = changed(&program).unwrap_or_else(|error| panic!("{}: {error}; {help}", program.display()));
    let written = changed(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    assert!(built >= written, "{name} was built before it was changed; {help}");
    program
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"))
}

/// The lines that a program prints; it succeeds and complains of nothing.
fn printed(program: &mut Command) -> Vec<String> {
    let output = program.output().unwrap_or_else(|error| panic!("{program:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_well = output.status.success() && errors.is_empty();
    assert!(is_well, "{program:?}: {}\n{errors}", output.status);
    let text = String::from_utf8(output.stdout).expect("an example prints text");
    text.lines().map(str::to_owned).collect()
}

/// The `N` lines that an example prints.
fn lines<const N: usize>(name: &str) -> [String; N] {
    let lines = printed(&mut Command::new(program(name, &source(name))));
    lines
        .try_into()
        .unwrap_or_else(|lines| panic!("not {N} lines: {lines:?}"))
}

/// Tells its steps, one a line.
fn assert_steps<const N: usize>(lines: &[String; N], every: usize) {
    let steps: Vec<f64> = lines.iter().map(|line| number(line, "step ")).collect();
    let expected = (1..=N).map(|step| (step * every) as f64);
    assert_eq!(steps, expected.collect::<Vec<_>>());
}

/// Tells a stage a line, of a seed that comes to be held.
fn assert_grown(lines: &[String]) {
    for stage in ["TRAINING", "BLENDING", "HOLDING"] {
        assert!(lines.iter().any(|line| line.ends_with(stage)), "{stage}: {lines:?}");
    }
}

fn is_percentage(line: &str) -> bool {
    (0.0..=100.0).contains(&percent(line))
}

#[test]
fn custom_batch_hook_measures_each_step() {
    let lines = lines::<8>("custom_batch_hook");
    assert_steps(&lines, 1);
    assert!(lines.iter().all(|line| number(line, "norm is ") > 0.0), "{lines:?}");
}

#[test]
fn custom_controller_germinates_and_commits() {
    let lines = lines::<2>("custom_controller");
    for line in lines {
        let is_shown = line.contains(": 3 germinated, 3 committed, at best ");
        assert!(is_shown && is_percentage(&line), "{line}");
    }
}

#[test]
fn custom_data_are_learnt() {
    // Ten classes; stripes are easy.
    assert!(percent(&lines::<12>("custom_data")[11]) > 90.0);
}

#[test]
fn custom_host_is_grown() {
    let lines = lines::<20>("custom_host");
    assert!(percent(&lines[19]) > percent(&lines[0]), "{lines:?}");
    assert_grown(&lines);
}

#[test]
fn custom_metric_is_recorded_with_each_round() {
    let lines = lines::<2>("custom_metric");
    for (line, round) in lines.iter().zip(1..) {
        assert!(line.starts_with(&format!("round {round}: ")), "{line}");
        assert!(is_percentage(line), "{line}");
    }
}

#[test]
fn custom_network_is_updated_after_each_round() {
    assert_eq!(lines::<1>("custom_network"), ["updates 2"]);
}

#[test]
fn custom_observation_is_seen_by_the_controller() {
    let lines = lines::<6>("custom_observation");
    assert_steps(&lines, 1);
    assert!(lines.iter().all(|line| line.contains(": element 23 of ")), "{lines:?}");
    let mut seen = lines.iter().map(|line| number(line, " is ").abs());
    assert!(seen.clone().all(|value| value <= 1.0) && seen.any(|value| value > 0.0));
}

#[test]
fn custom_reward_is_part_of_what_is_paid() {
    let lines = lines::<4>("custom_reward");
    assert!(lines.iter().all(|line| number(line, ", ") != 0.0), "{lines:?}");
}

#[test]
fn custom_reward_mode_pays_for_records_alone() {
    for line in lines::<2>("custom_reward_mode") {
        let (records, paid) = (number(&line, ": "), number(&line, "paid "));
        assert_eq!(records > 0.0, paid > 0.0, "{line}");
    }
}

#[test]
fn custom_seed_module_grows() {
    assert_grown(&lines::<20>("custom_seed_module"));
}

#[test]
fn custom_sink_follows_a_seed_to_the_end_of_the_run() {
    let lines = printed(&mut Command::new(program("custom_sink", &source("custom_sink"))));
    assert_eq!(lines[0], "e0.r0c0.0: conv_light germinated");
    assert!(lines.contains(&"e0.r0c0.0: TRAINING to BLENDING".into()), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("seeds: 1, episodes: 1"));
}

#[test]
fn custom_system_prints_the_leader_every_tenth_step() {
    let lines = lines::<4>("custom_system");
    assert_steps(&lines, 10);
    let is_leader = |line: &String| line.contains(" leads with ") && percent(line) > 0.0;
    assert!(lines.iter().all(is_leader), "{lines:?}");
}

#[test]
fn kept_state_is_what_lives() {
    for line in lines::<2>("kept_state") {
        let (kept, live) = (number(&line, "kept "), number(&line, "live "));
        assert!(kept == live && kept > 0.0, "{line}");
    }
}

/// Guessing is paid 0.5, the optimum 1.
#[test]
fn learner_comes_near_the_optimum() {
    let rewards = lines::<8>("learner").map(|line| number(&line, "reward "));
    assert!(rewards[0] < 0.8 && rewards[7] > 0.9, "{rewards:?}");
}

#[test]
fn step_by_step_stops_where_it_asks_to() {
    // Two rounds of ten steps, the results of both, and the end.
    let lines = lines::<23>("step_by_step");
    let [.., first, second, end] = &lines;
    for (line, round) in [(first, 1), (second, 2)] {
        assert!(line.starts_with(&format!("round {round}: mean ")), "{line}");
    }
    assert_eq!(end, "2 rounds, 4 episodes; stopped by Some(Interrupt)");
}

/// `assets/crate/main.rs`, which `simic-engine new` writes: a whole command line.
#[test]
fn own_crate_has_the_command_line_with_its_own_names() {
    let main = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/crate/main.rs");
    let blueprints = printed(Command::new(program("own_crate", &main)).args(["list", "blueprints"]));
    let mut own = blueprints.iter().filter(|line| line.contains("channel_scale"));
    let summary = "one learned factor a channel";
    assert!(own.any(|line| line.contains(summary)), "{blueprints:?}");
}

#[test]
fn every_example_is_run_and_says_what_it_shows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in fs::read_dir(folder).expect("the folder of examples") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_run = include_str!("examples.rs").contains(&format!("(\"{name}\")"));
        assert!(is_run, "{name} is not run");
        let text = fs::read_to_string(&path).expect("an example is one file");
        assert!(text.starts_with("//! "), "{name} does not say what it shows");
        let run = format!("cargo run --release --example {name}`");
        assert!(text.contains(&run), "{name} does not say how it is run");
    }
}
