use super::*;
use crate::storage::{Fault, StorageFaults};

/// An experiment whose arms have checkpoints before these rounds.
fn with_checkpoints(root: &Path, arms: &[(&str, &[u32])]) -> ExperimentFolder {
    let folder = ExperimentFolder(root.into());
    for (arm, rounds) in arms {
        for round in *rounds {
            let checkpoint = format!("{arm}/checkpoints/round-{round:06}");
            std::fs::create_dir_all(folder.replicate(0).join(checkpoint)).unwrap();
        }
    }
    folder
}

#[test]
fn arms_go_on_from_the_newest_round_that_all_of_them_have() {
    let root = tempfile::tempdir().unwrap();
    let folder = with_checkpoints(root.path(), &[("a", &[1, 2, 4]), ("b", &[1, 2, 3]), ("c", &[3])]);

    let common = |arms: &[&str]| folder.common_round(0, arms).unwrap();

    assert_eq!(common(&["a", "b"]), Some(2));
    assert_eq!(common(&["a", "c"]), None);
    assert_eq!(common(&["a", "begun_never"]), None);
}

/// What cannot be seen is not gone: taken for none, the arms' trainings would be set aside.
#[test]
fn checkpoints_that_cannot_be_looked_at_are_an_error() {
    let root = tempfile::tempdir().unwrap();
    let folder = with_checkpoints(root.path(), &[("a", &[1]), ("b", &[1])]);

    let faults = StorageFaults::under(root.path(), 2, Fault::InputOutput);
    let error = folder.common_round(0, &["a", "b"]).unwrap_err();
    drop(faults);

    assert!(error.path.ends_with("b/checkpoints"), "{error}");
    assert_eq!(folder.common_round(0, &["a", "b"]).unwrap(), Some(1));
}
