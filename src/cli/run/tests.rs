use super::*;
use crate::engine::RunRecord;
use crate::health::{EngineError, Failure, Position};
use crate::run::StopRequest;

fn report(failure: Option<Failure>, stopped_by: Option<StopRequest>, failed_durable: &[&str]) -> RunReport {
    RunReport {
        record: Some(RunRecord {
            run_id: "test".into(),
            directory: "runs/test".into(),
            finished: None,
            summary: String::new(),
        }),
        failure: failure.map(|failure| EngineError {
            phase: "test",
            position: Position::default(),
            failure,
        }),
        stopped_by,
        failed_durable: failed_durable.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn every_end_of_a_run_has_its_exit_code() {
    let diverged = || Failure::from(PolicyDiverged { failures: 3 });
    let broken = || Failure::message("out of memory");
    let interrupt = Some(StopRequest::Interrupt);

    assert_eq!(outcome(&report(None, None, &[]), true), Outcome::Done);
    assert_eq!(outcome(&report(Some(broken()), None, &[]), true), Outcome::Failed);
    assert_eq!(outcome(&report(Some(diverged()), None, &[]), true), Outcome::Halted);
    assert_eq!(
        outcome(&report(None, None, &["jsonl"]), true),
        Outcome::RecordIncomplete
    );
    assert_eq!(outcome(&report(None, None, &["jsonl"]), false), Outcome::Done);
    assert_eq!(
        outcome(&report(None, interrupt, &[]), true),
        Outcome::Stopped(StopRequest::Interrupt)
    );
    let before_its_record = RunReport {
        record: None,
        ..report(Some(broken()), None, &[])
    };
    assert_eq!(outcome(&before_its_record, true), Outcome::Rejected);
    assert_eq!(
        outcome(&report(Some(broken()), interrupt, &["jsonl"]), true),
        Outcome::Failed,
        "the failure counts first"
    );
}
