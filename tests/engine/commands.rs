//! Commands to a run through its folder: what it does, what its record says, and that no result depends on it.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use simic_engine::internals::checkpoint::{CheckpointId, CheckpointName, Checkpoints};
use simic_engine::internals::record::{ListedState, RunDirectory, list_runs};
use simic_engine::internals::run::{COMMAND_FILE, Command, StopRequest, send_command};
use simic_engine::internals::telemetry::Timestamp;
use simic_engine::prelude::*;

use crate::inside_rounds::{directory, scenario, stopped_after, told};
use crate::recorded::{NOTHING, play, resumed};
use crate::support::{assert_same_run, lines};

/// Behind which step commands are sent: of the second round.
const STEP: u32 = 3;

/// A system that sends a command.
fn sends(app: &mut App, command: Command) {
    let send = move |clock: Res<RunClock>, folder: Res<RunDirectory>| {
        if (clock.round(), clock.step()) == (1, STEP) {
            send_command(folder.path(), command).expect("the command is sent");
        }
    };
    app.add_systems(StepEnd, send.before(EngineSet::Checkpoint));
}

/// Words and texts of the answers to commands.
fn answers(lines: &[Value]) -> Vec<(&str, &str)> {
    let notes = lines.iter().filter(|line| line["type"] == "note");
    let answers = notes.filter_map(|note| Some((note["data"]["command"].as_str()?, note["data"]["text"].as_str()?)));
    answers.collect()
}

/// The run in `root`, once it waits.
fn paused(root: &Path) -> PathBuf {
    let began = Instant::now();
    loop {
        let runs = list_runs(root).unwrap_or_default();
        if let Some(run) = runs.iter().find(|run| run.state == ListedState::Paused) {
            return run.directory.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(120), "it never waits: {runs:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn milliseconds(line: &Value) -> f64 {
    let at: Timestamp = serde_json::from_value(line["t"].clone()).expect("a time");
    at.milliseconds() as f64
}

#[test]
fn a_pause_changes_no_result_and_is_no_time_of_its_round() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [whole, root] = ["whole", "paused"].map(|name| folder.path().join(name));
    let whole = directory(&play(&scenario(""), &whole, NOTHING));

    let run = thread::scope(|scope| {
        scope.spawn(|| {
            let run = paused(&root);
            thread::sleep(Duration::from_millis(700));
            send_command(&run, Command::Continue).expect("the command is sent");
        });
        directory(&play(&scenario(""), &root, |app| sends(app, Command::Pause)))
    });

    assert_same_run(&whole, &run);
    let lines = lines(&run);
    let answers = answers(&lines);
    assert_eq!(
        answers,
        [("pause", "paused by a command"), ("continue", "continued by a command")]
    );
    let of_type = |name: &'static str| lines.iter().filter(move |line| line["type"] == name);
    let notes: Vec<f64> = of_type("note").map(milliseconds).collect();
    let rounds: Vec<&Value> = of_type("round_finished").collect();
    let (waited, passed) = (notes[1] - notes[0], milliseconds(rounds[1]) - milliseconds(rounds[0]));
    let wall = 1e3 * rounds[1]["data"]["perf"]["round_wall_s"].as_f64().expect("a number");
    assert!(waited >= 700.0, "{waited} ms");
    // Times of events are whole milliseconds, and the moment before the last look belongs to the pause.
    assert!(
        wall <= passed - waited + 10.0,
        "{wall} of {passed} ms with {waited} ms of waiting"
    );
}

#[test]
fn a_run_resumes_from_a_checkpoint_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [whole, root] = ["whole", "asked"].map(|name| folder.path().join(name));
    let whole = directory(&play(&scenario(""), &whole, NOTHING));
    let failing_later = |app: &mut App| {
        sends(app, Command::Checkpoint);
        let fail = |clock: Res<RunClock>| assert!((clock.round(), clock.step()) != (1, STEP + 2), "on purpose");
        app.add_systems(StepEnd, fail.before(EngineSet::Checkpoint));
    };
    let report = play(&scenario(""), &root, failing_later);
    let run = report.record.expect("it was recorded").directory;
    assert_eq!(Checkpoints::of(&run).ids()[0], CheckpointId { round: 1, step: STEP });
    assert_eq!(answers(&lines(&run)), [("checkpoint", "a checkpoint by a command")]);

    let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 1).expect("the run can be resumed");
    directory(&engine.play());

    assert_same_run(&whole, &run);
}

#[test]
fn a_run_without_checkpoints_inside_rounds_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = scenario("checkpoint_every_minutes: None");

    let run = directory(&play(&scenario, folder.path(), |app| sends(app, Command::Checkpoint)));

    let lines = lines(&run);
    let [(word, text)] = answers(&lines)[..] else {
        panic!("one answer")
    };
    assert!(word == "checkpoint" && text.starts_with("no checkpoint"), "{text}");
    assert!(told(&run).iter().all(|(_, step)| step.is_none()));
}

#[test]
fn a_command_stops_a_run_as_ctrl_c_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [whole, root] = ["whole", "stopped"].map(|name| folder.path().join(name));
    let whole = directory(&play(&scenario(""), &whole, NOTHING));

    let report = play(&scenario(""), &root, |app| sends(app, Command::Stop));

    let run = directory(&report);
    assert_eq!(report.stopped_by, Some(StopRequest::Interrupt));
    assert_eq!(Checkpoints::of(&run).ids()[0], CheckpointId { round: 1, step: STEP });
    resumed(&run, CheckpointName::Last, NOTHING, 1)
        .expect("the run can be resumed")
        .play();
    assert_same_run(&whole, &run);
}

#[test]
fn a_signal_ends_a_pause_and_the_step_before_it_is_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().join("paused");
    let engine = Engine::builder().with(|app: &mut App| sends(app, Command::Pause));
    let mut engine = engine
        .recorded(&root)
        .from_ron(&scenario(""))
        .expect("the scenario is sound");
    let stop = engine.world().resource::<StopSignal>().clone();

    let report = thread::scope(|scope| {
        scope.spawn(|| {
            paused(&root);
            stop.request(StopRequest::Terminate);
        });
        engine.play()
    });

    assert_eq!(report.stopped_by, Some(StopRequest::Terminate));
    let run = directory(&report);
    assert_eq!(Checkpoints::of(&run).ids()[0], CheckpointId { round: 1, step: STEP });
    assert_eq!(list_runs(&root).expect("a list")[0].state, ListedState::Interrupted);
}

#[test]
fn a_word_that_is_no_command_is_removed_and_noted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let writes = |clock: Res<RunClock>, folder: Res<RunDirectory>| {
        if (clock.round(), clock.step()) == (1, 1) {
            std::fs::write(folder.path().join(COMMAND_FILE), "jump\n").expect("it is written");
        }
    };
    let extended = Engine::builder().with(move |app: &mut App| {
        app.add_systems(StepEnd, writes.before(EngineSet::Checkpoint));
    });
    let engine = extended.recorded(folder.path()).from_ron(&scenario(""));

    let run = directory(&engine.expect("the scenario is sound").play());

    assert!(!run.join(COMMAND_FILE).exists());
    let lines = lines(&run);
    let [(word, text)] = answers(&lines)[..] else {
        panic!("one answer")
    };
    assert!(word == "jump" && text.contains("is no command"), "{text}");
}

#[test]
fn a_command_to_a_process_that_has_ended_is_not_obeyed_by_the_next() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = stopped_after(STEP, &scenario(""), NOTHING, folder.path());
    send_command(&run, Command::Stop).expect("the command is sent");

    let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 1).expect("the run can be resumed");
    let report = engine.play();

    assert_eq!(report.stopped_by, None);
    assert!(!run.join(COMMAND_FILE).exists());
}
