use super::*;
use crate::telemetry::examples;

fn read(directory: &Path) -> RunStatus {
    RunStatus::read(directory).unwrap()
}

fn started_in(directory: &Path) -> StatusSink {
    let mut sink = StatusSink::default();
    sink.start(&RunInfo {
        run_id: "test".into(),
        directory: directory.into(),
        earlier: None,
    })
    .unwrap();
    sink
}

#[test]
fn a_run_starts_runs_and_completes() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = started_in(folder.path());
    assert_eq!(read(folder.path()).state, RunState::Starting);

    let events = [
        Event::run(examples::run_started()),
        Event {
            seq: 1,
            ..Event::round(0, examples::round_finished())
        },
    ];
    sink.write(&events.map(Arc::new)).unwrap();
    let running = read(folder.path());
    assert_eq!(running.state, RunState::Running);
    assert_eq!(running.round, Some(0));
    assert_eq!(running.rolling_accuracy, Some(Num(53.8)));
    assert_eq!((running.rounds, running.n_rounds), (Some(1), Some(3)));
    assert_eq!(running.best_accuracy, Some(Num(81.0)));
    assert_eq!(running.scenario.as_deref(), Some("quickstart"));
    assert_eq!(running.pid, std::process::id());

    sink.finish(&examples::run_finished()).unwrap();
    assert_eq!(read(folder.path()).state, RunState::Completed);
}

#[test]
fn a_run_that_a_command_has_paused_says_so_until_it_continues_or_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = started_in(folder.path());
    let started = Event::run(examples::run_started());
    sink.write(&[Arc::new(started)]).unwrap();
    let mut told = |command: &str| {
        let note = Note {
            text: "by a command".into(),
            author: None,
            command: Some(command.into()),
        };
        sink.write(&[Arc::new(Event::run(note))]).unwrap();
        read(folder.path()).state
    };

    assert_eq!(told("pause"), RunState::Paused);
    assert_eq!(told("checkpoint"), RunState::Paused);
    assert_eq!(told("continue"), RunState::Running);
    assert_eq!(told("pause"), RunState::Paused);

    let mut finished = examples::run_finished();
    finished.status = RunState::Interrupted;
    sink.finish(&finished).unwrap();
    assert_eq!(read(folder.path()).state, RunState::Interrupted);
}

#[test]
fn a_status_of_before_rounds_were_counted_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let old = r#"{"state": "completed", "pid": 7, "heartbeat": "2026-01-01T00:00:00.000Z", "round": 2, "episodes": 9}"#;
    std::fs::write(folder.path().join("status.json"), old).unwrap();

    let status = read(folder.path());

    assert_eq!((status.state, status.rounds), (RunState::Completed, None));
}

#[test]
fn a_failure_before_the_first_round_keeps_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = started_in(folder.path());
    let mut finished = examples::run_finished();
    finished.status = RunState::Failed;
    finished.error = Some("out of memory".into());

    sink.finish(&finished).unwrap();

    let status = read(folder.path());
    assert_eq!(status.state, RunState::Failed);
    assert_eq!(status.error.as_deref(), Some("out of memory"));
}

#[test]
fn a_run_goes_from_state_to_state_as_documented_and_in_no_other_way() {
    use RunState::*;
    let all = [Starting, Running, Paused, Stopping, Completed, Interrupted, Failed];
    let legal = [
        (Starting, Running),
        (Starting, Failed),
        (Running, Paused),
        (Paused, Running),
        (Paused, Stopping),
        (Paused, Failed),
        (Running, Stopping),
        (Running, Completed),
        (Running, Failed),
        (Stopping, Interrupted),
        (Stopping, Failed),
    ];

    for from in all {
        for to in all {
            assert_eq!(
                is_legal_transition(from, to),
                legal.contains(&(from, to)),
                "{from:?} -> {to:?}"
            );
        }
    }
}
