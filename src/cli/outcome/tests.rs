use super::*;
use crate::engine::RunRecord;
use crate::health::{EngineError, Failure, Position};
use crate::keep::KeptNetworks;
use crate::telemetry::RecordGap;

fn report(failure: Option<Failure>, stopped_by: Option<StopRequest>, incomplete: &[&str]) -> RunReport {
    RunReport {
        record: Some(RunRecord {
            run_id: "test".into(),
            directory: "runs/test".into(),
            results: None,
        }),
        failure: failure.map(|failure| EngineError {
            phase: "test",
            position: Position::default(),
            failure,
        }),
        stopped_by,
        gaps: incomplete.iter().map(|part| gap(part)).collect(),
        networks: KeptNetworks::default(),
    }
}

fn gap(part: &str) -> RecordGap {
    RecordGap {
        part: part.into(),
        lost_events: 3,
        round: Some(4),
        why: "no room".into(),
    }
}

#[test]
fn every_end_of_a_run_has_its_exit_code() {
    let diverged = || Failure::from(PolicyDiverged { failures: 3 });
    let broken = || Failure::message("out of memory");
    let interrupt = Some(StopRequest::Interrupt);

    assert_eq!(Outcome::of_run(&report(None, None, &[]), true), Outcome::Done);
    assert_eq!(
        Outcome::of_run(&report(Some(broken()), None, &[]), true),
        Outcome::Failed
    );
    assert_eq!(
        Outcome::of_run(&report(Some(diverged()), None, &[]), true),
        Outcome::Halted
    );
    assert_eq!(
        Outcome::of_run(&report(None, None, &["jsonl"]), true),
        Outcome::RecordIncomplete
    );
    assert_eq!(Outcome::of_run(&report(None, None, &["jsonl"]), false), Outcome::Done);
    assert_eq!(
        Outcome::of_run(&report(None, interrupt, &[]), true),
        Outcome::Stopped(StopRequest::Interrupt)
    );
    let unrecorded = Failure::from(RecordFails(gap("jsonl")));
    assert_eq!(
        Outcome::of_run(&report(Some(unrecorded), None, &["jsonl"]), true),
        Outcome::RecordIncomplete
    );
    let before_its_record = RunReport {
        record: None,
        ..report(Some(broken()), None, &[])
    };
    assert_eq!(Outcome::of_run(&before_its_record, true), Outcome::Rejected);
    assert_eq!(
        Outcome::of_run(&report(Some(broken()), interrupt, &["jsonl"]), true),
        Outcome::Failed,
        "the failure counts first"
    );
}
