use std::fs;

use super::*;
use crate::checkpoint::shelf::tests::progress;

fn save_policy(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("policy.ron"), "()").unwrap();
    fs::write(folder.join("policy.safetensors"), "").unwrap();
}

fn run_directory(root: &Path) {
    fs::write(root.join("resolved.ron"), "()").unwrap();
}

#[test]
fn a_run_s_policy_is_the_one_of_its_newest_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    run_directory(root.path());
    let shelf = Checkpoints::of(root.path());
    for rounds in [9, 10] {
        let save = |folder: &Path| {
            save_policy(&folder.join("policy"));
            Ok(())
        };
        shelf.put(&progress(rounds, None), save).unwrap();
    }
    save_policy(&root.path().join("checkpoints/.round-000011.new/policy"));

    let found = FrozenPolicy::find(root.path(), CheckpointName::Last).unwrap();

    assert!(found.saved.unwrap().path().ends_with("checkpoints/round-000010/policy"));
    let origin = found.origin.unwrap();
    assert_eq!(origin.rounds, 10);
    assert_eq!(origin.data_hash, "ef01");
}

#[test]
fn an_older_policy_is_found_by_its_rounds_or_as_the_best() {
    let root = tempfile::tempdir().unwrap();
    run_directory(root.path());
    let shelf = Checkpoints::of(root.path());
    for rounds in [8, 9, 10] {
        let save = |folder: &Path| {
            save_policy(&folder.join("policy"));
            Ok(())
        };
        shelf.put(&progress(rounds, Some(8)), save).unwrap();
    }
    let rounds = |name| {
        let origin = FrozenPolicy::find(root.path(), name).unwrap().origin.unwrap();
        (origin.rounds, origin.rounds_played)
    };

    assert_eq!(rounds(CheckpointName::Best), (8, 10));
    assert_eq!(rounds(CheckpointName::Round(9)), (9, 10));
    let missing = FrozenPolicy::find(root.path(), CheckpointName::Round(7)).unwrap_err();
    assert!(
        missing
            .to_string()
            .ends_with("holds no checkpoint after 7 rounds; there are those after 8, 9, 10"),
        "{missing}"
    );
}

#[test]
fn a_run_without_a_best_checkpoint_names_those_that_it_has() {
    let root = tempfile::tempdir().unwrap();
    run_directory(root.path());
    Checkpoints::of(root.path())
        .put(&progress(3, None), |_| Ok(()))
        .unwrap();

    let why = FrozenPolicy::find(root.path(), CheckpointName::Best)
        .unwrap_err()
        .to_string();

    assert!(
        why.contains("no best checkpoint") && why.ends_with("there are those after 3 rounds"),
        "{why}"
    );
}

#[test]
fn a_policy_may_stand_on_its_own() {
    let root = tempfile::tempdir().unwrap();
    save_policy(root.path());

    let found = FrozenPolicy::find(root.path(), CheckpointName::Last).unwrap();

    assert_eq!(found.saved.unwrap().path(), root.path());
    assert_eq!(found.origin, None);
    let best = FrozenPolicy::find(root.path(), CheckpointName::Best).unwrap_err();
    assert!(
        best.to_string()
            .contains("is a policy without its run: there is no checkpoint `best`"),
        "{best}"
    );
}

#[test]
fn what_is_missing_is_named() {
    let root = tempfile::tempdir().unwrap();
    let why = |path: &Path| FrozenPolicy::find(path, CheckpointName::Last).unwrap_err().to_string();

    assert!(why(root.path()).contains("neither a run directory (it has no resolved.ron)"));
    run_directory(root.path());
    assert!(why(root.path()).contains("has no checkpoint yet"));
}

#[test]
fn a_run_of_rules_has_no_policy_of_its_own() {
    let root = tempfile::tempdir().unwrap();
    run_directory(root.path());
    Checkpoints::of(root.path())
        .put(&progress(1, None), |_| Ok(()))
        .unwrap();

    let found = FrozenPolicy::find(root.path(), CheckpointName::Last).unwrap();

    assert_eq!((found.saved, found.origin.unwrap().rounds), (None, 1));
}
