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

/// A worker that was killed while it wrote leaves the file behind that was to become another.
#[test]
fn drafts_of_processes_that_are_gone_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let folder = SweepFolder(root.path().into());
    std::fs::create_dir_all(folder.leases()).unwrap();
    std::fs::create_dir_all(folder.results()).unwrap();
    let this = Worker::this();
    let gone = Worker {
        started: Some(1),
        ..this.clone()
    };
    let elsewhere = Worker {
        machine: "elsewhere".into(),
        ..gone.clone()
    };
    let draft = |place: PathBuf, worker: &Worker| {
        let path = place.with_added_extension(worker.mark().to_string());
        std::fs::write(&path, "half").unwrap();
        path
    };
    let left = [
        draft(folder.file("trials.csv"), &gone),
        draft(folder.leases().join(".clock"), &gone),
        draft(folder.results().join("0123456789abcdef.done.json"), &gone),
        draft(folder.file("curves.csv"), &elsewhere),
    ];
    let old = std::fs::File::options().write(true).open(&left[3]).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let written = [
        draft(folder.file("trials.csv"), &this),
        draft(folder.file("trials.csv"), &elsewhere),
        folder.file("trials.csv"),
    ];
    std::fs::write(&written[2], "whole").unwrap();

    folder.tidy(Duration::from_secs(60)).unwrap();

    assert!(left.iter().all(|path| !path.exists()), "{left:?}");
    assert!(written.iter().all(|path| path.exists()), "{written:?}");
}
