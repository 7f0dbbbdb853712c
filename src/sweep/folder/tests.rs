use super::*;
use crate::sweep::SuccessiveHalving;
use crate::sweep::fixtures::plan;

/// Result of opening a sweep's folder with its plan.
fn opened(plan: &Plan) -> Result<(), String> {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join(PLAN), serde_json::to_vec(plan).unwrap()).unwrap();
    let opened = SweepFolder::open(root.path(), None);
    opened.map(drop).map_err(|error| error.to_string())
}

/// The first rung would be at 0 rounds, and so would all others.
#[test]
fn a_plan_whose_rungs_never_end_is_refused() {
    let (first_rounds, factor) = (0, 2);
    let mut endless = plan("endless", 2, SweepFile::default());
    endless.sweep.early_stop = Some(SuccessiveHalving { first_rounds, factor });

    let error = opened(&endless).unwrap_err();

    assert!(error.contains("plan.json"), "{error}");
    assert!(error.contains("early_stop.first_rounds"), "{error}");
}

/// A folder of that name would lie anywhere.
#[test]
fn a_plan_whose_trials_are_misnamed_is_refused() {
    let mut plan = plan("misnamed", 3, SweepFile::default());
    assert_eq!(opened(&plan), Ok(()));
    let other = "0000000000000002";
    for id in ["../../../elsewhere", other, "000000000000000", "000000000000000G", ""] {
        plan.trials[1].id = id.into();
        let error = opened(&plan).unwrap_err();
        let expected = "plan.json: the trial of point 1, replicate 0, has the id";
        assert!(error.contains(expected) && error.contains(id), "{error}");
    }
}
