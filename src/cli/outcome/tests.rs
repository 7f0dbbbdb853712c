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
    let diverged = || Some(Failure::from(PolicyDiverged { failures: 3 }));
    let broken = || Some(Failure::message("out of memory"));
    let unrecorded = || Some(Failure::from(RecordFails(gap("jsonl"))));
    let interrupt = Some(StopRequest::Interrupt);

    for (report, outcome) in [
        (report(None, None, &[]), Outcome::Done),
        (report(broken(), None, &[]), Outcome::Failed),
        (report(diverged(), None, &[]), Outcome::Halted),
        (report(None, None, &["jsonl"]), Outcome::RecordIncomplete),
        (report(None, interrupt, &[]), Outcome::Stopped(StopRequest::Interrupt)),
        (report(unrecorded(), None, &["jsonl"]), Outcome::RecordIncomplete),
        // The failure counts first.
        (report(broken(), interrupt, &["jsonl"]), Outcome::Failed),
    ] {
        assert_eq!(Outcome::of_run(&report), outcome, "{report:?}");
    }
    let mut before_its_record = report(broken(), None, &[]);
    before_its_record.record = None;
    assert_eq!(Outcome::of_run(&before_its_record), Outcome::Rejected);
}
