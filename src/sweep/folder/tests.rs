use super::*;
use crate::sweep::SuccessiveHalving;
use crate::sweep::fixtures::plan;

/// The first rung would be at 0 rounds, and so would all others.
#[test]
fn a_plan_whose_rungs_never_end_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let endless = SweepFile {
        early_stop: Some(SuccessiveHalving {
            first_rounds: 0,
            factor: 2,
        }),
        ..SweepFile::default()
    };
    let plan = serde_json::to_vec(&plan("endless", 2, endless)).unwrap();
    std::fs::write(root.path().join(PLAN), plan).unwrap();

    let error = SweepFolder::open(root.path(), None).unwrap_err().to_string();

    assert!(error.contains("plan.json"), "{error}");
    assert!(error.contains("early_stop.first_rounds"), "{error}");
}
