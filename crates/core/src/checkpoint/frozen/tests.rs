use std::fs;

use super::*;
use crate::checkpoint::shelf::tests::progress;

fn save_policy(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("policy.ron"), "()").unwrap();
    fs::write(folder.join("policy.safetensors"), "").unwrap();
}

/// A run directory with checkpoints after these rounds, each with a policy if `learns`.
fn run(rounds: &[u32], best: Option<u32>, learns: bool) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("resolved.ron"), "()").unwrap();
    for &rounds in rounds {
        let save = |folder: &Path| {
            if learns {
                save_policy(&folder.join("policy"));
            }
            Ok(())
        };
        let shelf = Checkpoints::of(root.path());
        shelf.put(&progress(rounds, best), save).unwrap();
    }
    root
}

fn why(root: &tempfile::TempDir, name: CheckpointName) -> String {
    FrozenPolicy::find(root.path(), name).unwrap_err().to_string()
}

#[test]
fn a_run_s_policy_is_the_one_of_its_newest_checkpoint() {
    let root = run(&[9, 10], None, true);
    save_policy(&root.path().join("checkpoints/.round-000011.new/policy"));

    let found = FrozenPolicy::find(root.path(), CheckpointName::Last).unwrap();

    assert!(found.saved.unwrap().path().ends_with("checkpoints/round-000010/policy"));
    let origin = found.origin.unwrap();
    assert_eq!((origin.rounds, origin.data_hash.as_str()), (10, "ef01"));
}

#[test]
fn an_older_policy_is_found_by_its_rounds_or_as_the_best() {
    let root = run(&[8, 9, 10], Some(8), true);
    let rounds = |name| {
        let origin = FrozenPolicy::find(root.path(), name).unwrap().origin.unwrap();
        (origin.rounds, origin.rounds_played)
    };

    assert_eq!(rounds(CheckpointName::Best), (8, 10));
    assert_eq!(rounds(CheckpointName::Round(9)), (9, 10));
    let missing = why(&root, CheckpointName::Round(7));
    assert!(missing.ends_with("it holds those after 8, 9, 10"), "{missing}");
}

#[test]
fn a_run_without_a_best_checkpoint_names_those_that_it_has() {
    let why = why(&run(&[3], None, false), CheckpointName::Best);

    assert!(why.contains("no best checkpoint"), "{why}");
    assert!(why.ends_with("it holds those after 3 rounds"), "{why}");
}

#[test]
fn a_policy_may_stand_on_its_own() {
    let root = tempfile::tempdir().unwrap();
    save_policy(root.path());

    let found = FrozenPolicy::find(root.path(), CheckpointName::Last).unwrap();

    assert_eq!(found.saved.unwrap().path(), root.path());
    assert_eq!(found.origin, None);
    let best = why(&root, CheckpointName::Best);
    let expected = "is a policy without its run, so there is no checkpoint `best`";
    assert!(best.contains(expected), "{best}");
}

#[test]
fn what_is_missing_is_named() {
    let nothing = why(&tempfile::tempdir().unwrap(), CheckpointName::Last);
    let unplayed = why(&run(&[], None, false), CheckpointName::Last);

    assert!(nothing.contains("neither a run directory (it has no resolved.ron)"));
    assert!(unplayed.contains("has no checkpoint yet"));
}

#[test]
fn a_run_of_rules_has_no_policy_of_its_own() {
    let root = run(&[1], None, false);

    let found = FrozenPolicy::find(root.path(), CheckpointName::Last).unwrap();

    assert_eq!((found.saved, found.origin.unwrap().rounds), (None, 1));
}
