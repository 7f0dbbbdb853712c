use super::*;
use crate::storage::{Fault, StorageFaults};
use crate::sweep::fixtures;
use crate::sweep::{SweepFile, SweepFolder};

fn begun(root: &Path, tags: &[&str]) -> (SweepFolder, Plan) {
    let folder = SweepFolder::of("work", Some(root));
    let sweep = SweepFile {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..SweepFile::default()
    };
    let plan = fixtures::plan("work", 1, sweep);
    std::fs::create_dir_all(folder.trial(&plan.trials[0].id)).unwrap();
    (folder, plan)
}

fn asked(folder: &SweepFolder, plan: &Plan) -> Result<Vec<String>, FileError> {
    let whole = Segment {
        rung: 0,
        until: 2,
        is_last: true,
    };
    arguments(folder, plan, &plan.trials[0], whole, (1, Path::new("fence")))
}

fn names(folder: &SweepFolder) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.trials())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_trial_whose_checkpoints_cannot_be_read_is_neither_restarted_nor_moved() {
    let root = tempfile::tempdir().unwrap();
    let (folder, plan) = begun(root.path(), &[]);
    let trial = folder.trial(&plan.trials[0].id);
    std::fs::create_dir_all(trial.join("checkpoints/round-000001")).unwrap();

    let faults = StorageFaults::under(&trial, 1, Fault::InputOutput);
    let error = asked(&folder, &plan).unwrap_err();
    drop(faults);

    assert!(error.to_string().contains("checkpoints: "), "{error}");
    assert_eq!(names(&folder), [plan.trials[0].id.as_str()]);
    assert_eq!(asked(&folder, &plan).unwrap()[0], "resume");
}

#[test]
fn a_trial_without_a_checkpoint_is_set_aside_and_restarted() {
    let root = tempfile::tempdir().unwrap();
    let (folder, plan) = begun(root.path(), &[]);
    let id = &plan.trials[0].id;
    std::fs::create_dir_all(folder.trials().join(format!("{id}.discarded-1"))).unwrap();
    std::fs::write(folder.trial(id).join("resolved.ron"), "()").unwrap();

    let arguments = asked(&folder, &plan).unwrap();

    assert_eq!(arguments[0], "run");
    assert_eq!(
        names(&folder),
        [format!("{id}.discarded-1"), format!("{id}.discarded-2")]
    );
    let kept = folder.trials().join(format!("{id}.discarded-2/resolved.ron"));
    assert!(kept.is_file());
}

#[test]
fn a_tag_that_looks_like_an_option_is_one_word_with_its_option() {
    let root = tempfile::tempdir().unwrap();
    let (folder, plan) = begun(root.path(), &["-x"]);

    assert!(asked(&folder, &plan).unwrap().contains(&"--tag=-x".into()));
}

#[test]
fn a_full_disk_is_told_from_a_trial_that_fails() {
    let full = "/runs/sweeps/a/trials/b/checkpoints: No space left on device (os error 28)";
    assert!(is_of_place(Some(3), full) && is_of_place(Some(2), full));
    assert!(is_of_place(Some(5), "the record could not be written"));
    assert!(!is_of_place(
        Some(3),
        "data/train.npy: No such file or directory (os error 2)"
    ));
    assert!(!is_of_place(Some(4), "the policy diverged"));
}
