use super::ListedState::Known;
use super::*;
use crate::telemetry::{Event, examples};

const NOW: Timestamp = Timestamp::from_milliseconds(1_767_225_600_000);
/// A number that no process has: Linux counts to 2^22.
const NO_PROCESS: u32 = u32::MAX;

fn status(state: RunState, silent_for_s: i64, pid: u32) -> RunStatus {
    RunStatus {
        pid,
        heartbeat: Timestamp::from_milliseconds(NOW.milliseconds() - silent_for_s * 1000),
        ..RunStatus::new(state)
    }
}

fn write(folder: &Path, manifest: &str, status: &RunStatus) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("manifest.json"), manifest).unwrap();
    status.write(folder).unwrap();
}

#[test]
fn a_run_without_an_end_is_stale_if_no_process_has_claimed_it() {
    let silent = |seconds| status(RunState::Running, seconds, NO_PROCESS);

    assert_eq!(ListedState::of(&silent(0), Some(false), NOW), ListedState::Stale);
    assert_eq!(
        ListedState::of(&silent(100_000), Some(true), NOW),
        Known(RunState::Running)
    );
}

#[test]
fn without_locks_a_run_is_stale_if_it_is_silent_and_its_process_gone() {
    let of = |silent_for_s, pid| ListedState::of(&status(RunState::Starting, silent_for_s, pid), None, NOW);

    assert_eq!(of(61, NO_PROCESS), ListedState::Stale);
    assert_eq!(of(59, NO_PROCESS), Known(RunState::Starting));
    if cfg!(target_os = "linux") {
        assert_eq!(of(100_000, std::process::id()), Known(RunState::Starting));
    }
}

#[test]
fn runs_are_listed_by_age_with_what_is_wrong_with_them() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let running = RunStatus {
        rounds: Some(2),
        n_rounds: Some(8),
        best_accuracy: Some(Num(67.5)),
        scenario: Some("digits".into()),
        ..status(RunState::Running, 100, NO_PROCESS)
    };
    let old = r#"{"created": "2025-12-01T00:00:00.000Z", "tags": ["a"]}"#;
    write(&at("old"), old, &running);
    let new = r#"{"created": "2025-12-31T00:00:00.000Z", "tags": []}"#;
    write(&at("new"), new, &status(RunState::Running, 0, 1));
    let end = Event::run(examples::run_finished());
    std::fs::write(at("new").join(EVENTS_FILE), serde_json::to_string(&end).unwrap() + "\n").unwrap();
    write(&at("broken"), "{", &status(RunState::Failed, 0, 1));
    std::fs::create_dir(at("20260101-120000-empty-ab12")).unwrap();
    std::fs::create_dir(at("plots")).unwrap();
    std::fs::write(at("latest"), "new").unwrap();

    let runs = list_runs(root.path()).unwrap();

    let names: Vec<&str> = runs.iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!(names, ["broken", "new", "old", "20260101-120000-empty-ab12"]);
    let [broken, new, old, empty] = &runs[..] else {
        panic!("{runs:?}")
    };
    let problem = |run: &RunEntry| run.problem.clone().unwrap();
    assert!(problem(broken).starts_with("its manifest.json cannot be read: "));
    assert_eq!(
        (broken.state, new.state),
        (Known(RunState::Failed), Known(RunState::Completed))
    );
    assert_eq!(new.problem, None);
    assert_eq!(old.state, ListedState::Stale);
    assert_eq!((old.rounds, old.n_rounds), (Some(2), Some(8)));
    assert_eq!(old.best_accuracy, Some(Num(67.5)));
    assert_eq!(old.tags, ["a"]);
    assert!(old.size_bytes > 100);
    assert_eq!(empty.state, ListedState::Unreadable);
    assert!(problem(empty).starts_with("it has no status.json"));
}
