use std::path::PathBuf;

use super::*;

/// A worker that was killed while it wrote leaves the file behind that was to become another.
#[test]
fn drafts_of_processes_that_are_gone_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let folder = SweepFolder::of("killed", Some(root.path()));
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

    tidy(&folder, Duration::from_secs(60)).unwrap();

    assert!(left.iter().all(|path| !path.exists()), "{left:?}");
    assert!(written.iter().all(|path| path.exists()), "{written:?}");
}
