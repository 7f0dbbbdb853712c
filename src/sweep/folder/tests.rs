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

/// A folder of that name would lie anywhere.
#[test]
fn a_plan_whose_trials_are_misnamed_is_refused() {
    let refused = |id: &str| {
        let root = tempfile::tempdir().unwrap();
        let mut plan = plan("misnamed", 3, SweepFile::default());
        plan.trials[1].id = id.into();
        std::fs::write(root.path().join(PLAN), serde_json::to_vec(&plan).unwrap()).unwrap();
        SweepFolder::open(root.path(), None)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };

    assert_eq!(refused("0000000000000001"), Ok(()));
    for id in [
        "../../../elsewhere",
        "0000000000000002",
        "000000000000000",
        "000000000000000G",
        "",
    ] {
        let error = refused(id).unwrap_err();
        assert!(
            error.contains("plan.json: the trial of point 1, replicate 0, has the id") && error.contains(id),
            "{error}"
        );
    }
}
