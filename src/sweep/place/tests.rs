use super::*;
use crate::sweep::fixtures::folder;

/// A worker that was killed while it wrote leaves its unfinished file.
#[test]
fn drafts_of_processes_that_are_gone_are_removed() {
    let (_root, folder) = folder();
    let this = Worker::this();
    let mut gone = this.clone();
    gone.started = Some(1);
    let mut elsewhere = gone.clone();
    elsewhere.machine = "elsewhere".into();
    let draft = |place: PathBuf, worker: &Worker| {
        let path = place.with_added_extension(worker.mark());
        std::fs::write(&path, "half").unwrap();
        path
    };
    let left = [
        draft(folder.file("trials.csv"), &gone),
        draft(folder.file("leases").join(".clock"), &gone),
        draft(folder.file("results").join("0123456789abcdef.done.json"), &gone),
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
