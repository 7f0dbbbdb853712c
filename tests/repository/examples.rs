//! Every program of `examples/` is run as a user runs it, and what it prints is what it is to show.
//!
//! `cargo test` builds them; for this test alone: `cargo build --examples && cargo test --test repository examples::`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What ends in `%` before the first word behind it, as a number.
fn percent(line: &str) -> f64 {
    let number = line
        .split('%')
        .next()
        .and_then(|before| before.split_whitespace().last());
    number_in(number, line)
}

/// The number behind `before` in a line.
fn number(line: &str, before: &str) -> f64 {
    let behind = line
        .split_once(before)
        .and_then(|(_, behind)| behind.split_whitespace().next());
    number_in(behind.map(|word| word.trim_end_matches([',', ';'])), line)
}

fn number_in(word: Option<&str>, line: &str) -> f64 {
    let number = word.and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number in {line:?}"))
}

/// The program that was built of an example, beside this test.
fn program(name: &str, source: &Path) -> PathBuf {
    let help = "help: cargo build --examples";
    let test = std::env::current_exe().expect("this test is a file");
    let folder = test.ancestors().nth(2).expect("target/PROFILE/deps");
    let program = folder
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
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
    assert!(
        output.status.success() && errors.is_empty(),
        "{program:?}: {}\n{errors}",
        output.status
    );
    let text = String::from_utf8(output.stdout).expect("an example prints text");
    text.lines().map(str::to_owned).collect()
}

fn lines(name: &str) -> Vec<String> {
    printed(&mut Command::new(program(name, &source(name))))
}

#[test]
fn custom_batch_hook_measures_each_step() {
    let lines = lines("custom_batch_hook");
    let steps: Vec<f64> = lines
        .iter()
        .map(|line| number(&line.replace(':', ""), "step "))
        .collect();
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert!(lines.iter().all(|line| number(line, "norm is ") > 0.0), "{lines:?}");
}

#[test]
fn custom_controller_germinates_and_commits() {
    let lines = lines("custom_controller");
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert!(line.contains(": 3 germinated, 3 committed, at best "), "{line}");
        assert!((0.0..=100.0).contains(&percent(&line)), "{line}");
    }
}

#[test]
fn custom_data_are_learnt() {
    let accuracies: Vec<f64> = lines("custom_data").iter().map(|line| percent(line)).collect();
    assert_eq!(accuracies.len(), 12);
    // Ten classes; stripes are easy.
    assert!(accuracies[11] > 90.0, "{accuracies:?}");
}

#[test]
fn custom_host_is_grown() {
    let lines = lines("custom_host");
    assert_eq!(lines.len(), 20);
    assert!(percent(&lines[19]) > percent(&lines[0]), "{lines:?}");
    for stage in ["TRAINING", "BLENDING", "HOLDING"] {
        assert!(lines.iter().any(|line| line.ends_with(stage)), "{stage}: {lines:?}");
    }
}

#[test]
fn custom_metric_is_recorded_with_each_round() {
    let lines = lines("custom_metric");
    assert_eq!(lines.len(), 2);
    for (index, line) in lines.iter().enumerate() {
        assert!(line.starts_with(&format!("round {}: ", index + 1)), "{line}");
        assert!((0.0..=100.0).contains(&percent(line)), "{line}");
    }
}

#[test]
fn custom_network_is_updated_after_each_round() {
    assert_eq!(lines("custom_network"), ["updates 2"]);
}

#[test]
fn custom_observation_is_seen_by_the_controller() {
    let lines = lines("custom_observation");
    assert_eq!(lines.len(), 6);
    for (index, line) in lines.iter().enumerate() {
        assert!(
            line.starts_with(&format!("step {}: element 23 of ", index + 1)),
            "{line}"
        );
        assert!(number(line, " is ").abs() <= 1.0, "{line}");
    }
    assert!(lines.iter().any(|line| number(line, " is ") != 0.0), "{lines:?}");
}

#[test]
fn custom_reward_is_part_of_what_is_paid() {
    let lines = lines("custom_reward");
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| number(line, ", ") != 0.0), "{lines:?}");
}

#[test]
fn custom_reward_mode_pays_for_records_alone() {
    let lines = lines("custom_reward_mode");
    assert_eq!(lines.len(), 2);
    for line in lines {
        let (records, paid) = (number(&line, ": "), number(&line, "paid "));
        assert_eq!(records > 0.0, paid > 0.0, "{line}");
    }
}

#[test]
fn custom_seed_module_grows() {
    let lines = lines("custom_seed_module");
    assert_eq!(lines.len(), 20);
    for stage in ["TRAINING", "BLENDING", "HOLDING"] {
        assert!(lines.iter().any(|line| line.ends_with(stage)), "{stage}: {lines:?}");
    }
}

#[test]
fn custom_sink_follows_a_seed_to_the_end_of_the_run() {
    let lines = lines("custom_sink");
    assert_eq!(lines[0], "e0.r0c0.0: conv_light germinated");
    assert!(lines.contains(&"e0.r0c0.0: TRAINING to BLENDING".into()), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("1 seeds in 1 episodes"));
}

#[test]
fn custom_system_prints_the_leader_every_tenth_step() {
    let lines = lines("custom_system");
    let steps: Vec<f64> = lines
        .iter()
        .map(|line| number(&line.replace(':', ""), "step "))
        .collect();
    assert_eq!(steps, [10.0, 20.0, 30.0, 40.0]);
    assert!(
        lines
            .iter()
            .all(|line| line.contains(" leads with ") && percent(line) > 0.0),
        "{lines:?}"
    );
}

#[test]
fn kept_state_is_what_lives() {
    let lines = lines("kept_state");
    assert_eq!(lines.len(), 2);
    for line in lines {
        let (kept, live) = (number(&line, "kept "), number(&line, "live "));
        assert!(kept == live && kept > 0.0, "{line}");
    }
}

/// Guessing is paid 0.5, the optimum 1.
#[test]
fn learner_comes_near_the_optimum() {
    let rewards: Vec<f64> = lines("learner").iter().map(|line| number(line, "reward ")).collect();
    assert_eq!(rewards.len(), 8);
    assert!(rewards[0] < 0.8 && rewards[7] > 0.9, "{rewards:?}");
}

#[test]
fn step_by_step_stops_where_it_asks_to() {
    let lines = lines("step_by_step");
    let [.., first, second, end] = &lines[..] else {
        panic!("{lines:?}")
    };
    // Two rounds of ten steps, the results of both, and the end.
    assert_eq!(lines.len(), 23);
    assert!(
        first.starts_with("round 1: mean ") && second.starts_with("round 2: mean "),
        "{lines:?}"
    );
    assert_eq!(end, "2 rounds, 4 episodes; stopped by Some(Interrupt)");
}

/// `assets/crate/main.rs`, which `simic-engine new` writes: a whole command line.
#[test]
fn own_crate_has_the_command_line_with_its_own_names() {
    let main = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/crate/main.rs");
    let blueprints = printed(Command::new(program("own_crate", &main)).args(["list", "blueprints"]));
    let own = blueprints.iter().find(|line| line.contains("channel_scale"));
    assert!(
        own.is_some_and(|line| line.contains("one learned factor a channel")),
        "{blueprints:?}"
    );
}

#[test]
fn every_example_is_run_and_says_what_it_shows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = fs::read_dir(folder).expect("the folder of examples");
    let names: BTreeSet<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .replace(".rs", "")
        })
        .collect();
    let tests = include_str!("examples.rs");
    for name in names {
        assert!(tests.contains(&format!("lines(\"{name}\")")), "{name} is not run");
        let text = fs::read_to_string(source(&name)).expect("an example is one file");
        assert!(text.starts_with("//! "), "{name} does not say what it shows");
        assert!(
            text.contains(&format!("cargo run --release --example {name}`")),
            "{name} does not say how it is run"
        );
    }
}
