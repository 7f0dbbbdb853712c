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

    let found = FrozenPolicy::find(root.path()).unwrap();

    assert!(found.saved.unwrap().path().ends_with("checkpoints/round-000010/policy"));
    let origin = found.origin.unwrap();
    assert_eq!(origin.rounds, 10);
    assert_eq!(origin.data_hash, "ef01");
}

#[test]
fn a_policy_may_stand_on_its_own() {
    let root = tempfile::tempdir().unwrap();
    save_policy(root.path());

    let found = FrozenPolicy::find(root.path()).unwrap();

    assert_eq!(found.saved.unwrap().path(), root.path());
    assert_eq!(found.origin, None);
}

#[test]
fn what_is_missing_is_named() {
    let root = tempfile::tempdir().unwrap();
    let why = |path: &Path| FrozenPolicy::find(path).unwrap_err().to_string();

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

    let found = FrozenPolicy::find(root.path()).unwrap();

    assert_eq!((found.saved, found.origin.unwrap().rounds), (None, 1));
}
