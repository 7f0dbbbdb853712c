use super::*;
use crate::telemetry::examples;

fn read(directory: &Path) -> RunStatus {
    RunStatus::read(directory).unwrap()
}

/// The sink of a run that has begun, and the run's folder.
fn begun() -> (tempfile::TempDir, StatusSink) {
    let (folder, mut sink) = (tempfile::tempdir().unwrap(), StatusSink::default());
    let run = RunInfo {
        run_id: "test".into(),
        directory: folder.path().into(),
        earlier: None,
    };
    sink.start(&run).unwrap();
    (folder, sink)
}

#[test]
fn a_run_starts_runs_and_completes() {
    let (folder, mut sink) = begun();
    assert_eq!(read(folder.path()).state, RunState::Starting);

    let mut round = Event::round(0, examples::round_finished());
    round.seq = 1;
    let events = [Event::run(examples::run_started()), round];
    sink.write(&events.map(Arc::new)).unwrap();
    let running = read(folder.path());
    assert_eq!((running.state, running.round), (RunState::Running, Some(0)));
    assert_eq!((running.rounds, running.n_rounds), (Some(1), Some(3)));
    assert_eq!(running.rolling_accuracy, Some(Num(53.8)));
    assert_eq!(running.best_accuracy, Some(Num(81.0)));
    assert_eq!(running.scenario.as_deref(), Some("quickstart"));
    assert_eq!(running.pid, std::process::id());

    sink.finish(&examples::run_finished()).unwrap();
    assert_eq!(read(folder.path()).state, RunState::Completed);
}

#[test]
fn a_run_that_a_command_has_paused_says_so_until_it_continues_or_ends() {
    let (folder, mut sink) = begun();
    let started = Event::run(examples::run_started());
    sink.write(&[Arc::new(started)]).unwrap();
    let mut state = |command: &str| {
        let mut note = examples::note();
        note.command = Some(command.into());
        sink.write(&[Arc::new(Event::run(note))]).unwrap();
        read(folder.path()).state
    };

    assert_eq!(state("pause"), RunState::Paused);
    assert_eq!(state("checkpoint"), RunState::Paused);
    assert_eq!(state("continue"), RunState::Running);
    assert_eq!(state("pause"), RunState::Paused);

    let mut finished = examples::run_finished();
    finished.status = RunState::Interrupted;
    sink.finish(&finished).unwrap();
    assert_eq!(read(folder.path()).state, RunState::Interrupted);
}

#[test]
fn a_failure_before_the_first_round_keeps_its_reason() {
    let (folder, mut sink) = begun();
    let mut finished = examples::run_finished();
    (finished.status, finished.error) = (RunState::Failed, Some("out of memory".into()));

    sink.finish(&finished).unwrap();

    let status = read(folder.path());
    assert_eq!(status.state, RunState::Failed);
    assert_eq!(status.error.as_deref(), Some("out of memory"));
}

#[test]
fn a_run_goes_from_state_to_state_as_documented_and_in_no_other_way() {
    use RunState::*;
    let all = [Starting, Running, Paused, Stopping, Completed, Interrupted, Failed];
    let legal = |from| match from {
        Starting => vec![Running, Failed],
        Running => vec![Paused, Stopping, Completed, Failed],
        Paused => vec![Running, Stopping, Failed],
        Stopping => vec![Interrupted, Failed],
        Completed | Interrupted | Failed => vec![],
    };

    for from in all {
        let found = all.into_iter().filter(|&to| is_legal_transition(from, to));
        assert_eq!(found.collect::<Vec<_>>(), legal(from), "from {from:?}");
    }
}
