use std::collections::BTreeSet;

use super::*;
use crate::storage::{Fault, StorageFaults};
use crate::sweep::{SweepFile, SweepFolder, fixtures};

/// The folder of one trial, which is there.
fn begun(tags: &[&str]) -> (tempfile::TempDir, SweepFolder, Plan) {
    let (root, folder) = fixtures::folder();
    let sweep = SweepFile {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..SweepFile::default()
    };
    let plan = fixtures::plan("work", 1, sweep);
    std::fs::create_dir_all(folder.trial(&plan.trials[0].id)).unwrap();
    (root, folder, plan)
}

fn asked(folder: &SweepFolder, plan: &Plan) -> Result<Vec<String>, FileError> {
    let (rung, until, is_last) = (0, 2, true);
    let whole = TrialSegment { rung, until, is_last };
    arguments(folder, plan, &plan.trials[0], whole, 1, Path::new("fence"))
}

fn names(folder: &SweepFolder) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder.trials()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_trial_whose_checkpoints_cannot_be_read_is_neither_restarted_nor_moved() {
    let (_root, folder, plan) = begun(&[]);
    let trial = folder.trial(&plan.trials[0].id);
    std::fs::create_dir_all(trial.join("checkpoints/round-000001")).unwrap();

    let faults = StorageFaults::under(&trial, 1, Fault::InputOutput);
    let error = asked(&folder, &plan).unwrap_err();
    drop(faults);

    assert!(error.to_string().contains("checkpoints: "), "{error}");
    assert_eq!(names(&folder), BTreeSet::from([plan.trials[0].id.clone()]));
    assert_eq!(asked(&folder, &plan).unwrap()[0], "resume");
}

#[test]
fn a_trial_without_a_checkpoint_is_set_aside_and_restarted() {
    let (_root, folder, plan) = begun(&[]);
    let id = &plan.trials[0].id;
    std::fs::create_dir_all(folder.trials().join(format!("{id}.discarded-1"))).unwrap();
    std::fs::write(folder.trial(id).join("resolved.ron"), "()").unwrap();

    let arguments = asked(&folder, &plan).unwrap();

    assert_eq!(arguments[0], "run");
    let discarded = [1, 2].map(|count| format!("{id}.discarded-{count}"));
    assert_eq!(names(&folder), BTreeSet::from(discarded));
    let kept = folder.trials().join(format!("{id}.discarded-2/resolved.ron"));
    assert!(kept.is_file());
}

#[test]
fn a_tag_that_looks_like_an_option_is_one_word_with_its_option() {
    let (_root, folder, plan) = begun(&["-x"]);

    assert!(asked(&folder, &plan).unwrap().contains(&"--tag=-x".into()));
}

#[test]
fn a_full_disk_is_distinguished_from_a_trial_that_fails() {
    for (code, reason, expected) in [
        (3, "trials/b/checkpoints: No space left on device (os error 28)", true),
        (2, "trials/b/checkpoints: No space left on device (os error 28)", true),
        (5, "the record could not be written", true),
        (3, "trials/b/log.txt: Too many open files (os error 24)", true),
        (3, "data/train.npy: No such file or directory (os error 2)", false),
        (4, "the policy diverged", false),
    ] {
        assert_eq!(is_of_place(Some(code), reason), expected, "{code}: {reason}");
    }
}
