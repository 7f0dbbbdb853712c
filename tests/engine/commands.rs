//! Commands to a run through its folder: what it does, what its record says, and that no result depends on it.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use simic_engine::internals::checkpoint::{CheckpointId, CheckpointName, Checkpoints};
use simic_engine::internals::record::{ListedState::Known, RunDirectory, list_runs};
use simic_engine::internals::run::{COMMAND_FILE, Command, StopRequest, send_command};
use simic_engine::internals::telemetry::{RunState, Timestamp};
use simic_engine::prelude::*;

use crate::inside_rounds::scenario;
use crate::recorded::{NOTHING, directory, events, play, resumed};
use crate::support::{assert_same_run, builder};

/// The step of the second round after which commands are sent.
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
fn answers(run: &Path) -> Vec<[String; 2]> {
    let notes = events(run, "note").into_iter();
    let texts = notes.map(|note| ["command", "text"].map(|field| note["data"][field].as_str().map(String::from)));
    texts.filter_map(|[word, text]| Some([word?, text?])).collect()
}

/// The run in `root`, once it waits.
fn paused(root: &Path) -> PathBuf {
    let began = Instant::now();
    loop {
        let runs = list_runs(root).unwrap_or_default();
        if let Some(run) = runs.iter().find(|run| run.state == Known(RunState::Paused)) {
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
fn neither_a_pause_nor_a_checkpoint_that_was_asked_for_changes_a_result() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [whole, root, asked] = ["whole", "paused", "asked"].map(|name| folder.path().join(name));
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
    let expected = [["pause", "paused by a command"], ["continue", "continued by a command"]];
    assert_eq!(answers(&run), expected);
    // A pause isn't part of its round's time.
    let (notes, rounds) = (events(&run, "note"), events(&run, "round_finished"));
    let [waited, passed] = [&notes, &rounds].map(|lines| milliseconds(&lines[1]) - milliseconds(&lines[0]));
    let wall = 1e3 * rounds[1]["data"]["perf"]["round_wall_s"].as_f64().expect("a number");
    assert!(waited >= 700.0, "{waited} ms");
    // Times of events are whole milliseconds, and the moment before the last look belongs to the pause.
    let most = passed - waited + 10.0;
    assert!(wall <= most, "{wall} of {passed} ms with {waited} ms of waiting");

    let failing_later = |app: &mut App| {
        sends(app, Command::Checkpoint);
        let fail = |clock: Res<RunClock>| assert!((clock.round(), clock.step()) != (1, STEP + 2), "on purpose");
        app.add_systems(StepEnd, fail.before(EngineSet::Checkpoint));
    };
    let report = play(&scenario(""), &asked, failing_later);
    let run = report.record.expect("it was recorded").directory;
    assert_eq!(Checkpoints::of(&run).ids()[0], CheckpointId { round: 1, step: STEP });
    assert_eq!(answers(&run), [["checkpoint", "checkpoint requested by a command"]]);
    let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 1).expect("the run can be resumed");
    directory(&engine.play());
    assert_same_run(&whole, &run);
}

#[test]
fn a_word_that_is_not_a_command_is_removed_and_noted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let extend = |app: &mut App| {
        let jump = |clock: Res<RunClock>, folder: Res<RunDirectory>| {
            if (clock.round(), clock.step()) == (1, 1) {
                std::fs::write(folder.path().join(COMMAND_FILE), "jump\n").expect("it is written");
            }
        };
        app.add_systems(StepEnd, jump.before(EngineSet::Checkpoint));
    };

    let run = directory(&play(&scenario(""), folder.path(), extend));

    assert!(!run.join(COMMAND_FILE).exists());
    let answers = answers(&run);
    assert_eq!((answers.len(), answers[0][0].as_str()), (1, "jump"));
    assert!(answers[0][1].contains("isn't a command"), "{answers:?}");
}

#[test]
fn a_command_stops_a_run_as_ctrl_c_does_and_the_process_that_resumes_it_does_not_obey_it_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = play(&scenario(""), folder.path(), |app| sends(app, Command::Stop));

    let run = directory(&report);
    assert_eq!(report.stopped_by, Some(StopRequest::Interrupt));
    assert_eq!(Checkpoints::of(&run).ids()[0], CheckpointId { round: 1, step: STEP });

    send_command(&run, Command::Stop).expect("the command is sent");
    let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 1).expect("the run can be resumed");

    assert_eq!(engine.play().stopped_by, None);
    assert!(!run.join(COMMAND_FILE).exists());
}

#[test]
fn a_signal_ends_a_pause_and_the_step_before_it_is_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let engine = builder().with(|app: &mut App| sends(app, Command::Pause));
    let engine = engine.recorded(folder.path()).from_ron(&scenario(""));
    let mut engine = engine.expect("the scenario is sound");
    let stop = engine.world().resource::<StopSignal>().clone();

    let report = thread::scope(|scope| {
        scope.spawn(|| {
            paused(folder.path());
            stop.request(StopRequest::Terminate);
        });
        engine.play()
    });

    assert_eq!(report.stopped_by, Some(StopRequest::Terminate));
    let run = directory(&report);
    assert_eq!(Checkpoints::of(&run).ids()[0], CheckpointId { round: 1, step: STEP });
    let listed = list_runs(folder.path()).expect("a list");
    assert_eq!(listed[0].state, Known(RunState::Interrupted));
}
