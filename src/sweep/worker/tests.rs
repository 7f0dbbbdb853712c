mod simulation;

use std::path::{Path, PathBuf};

use super::*;
use crate::sweep::fixtures::plan;
use crate::sweep::{Leases, Results, SweepFile, try_misplaced_again};

fn folder(root: &Path) -> SweepFolder {
    let folder = SweepFolder::of("work", Some(root));
    let folders: [PathBuf; 2] = [folder.leases(), folder.results()];
    for folder in folders {
        std::fs::create_dir_all(folder).unwrap();
    }
    folder
}

fn leaving(only: Option<&str>) -> WorkOptions {
    WorkOptions {
        shard: Shard::WHOLE,
        only: only.map(str::to_owned),
        parallel: 1,
        threads: 1,
        leaves: true,
        commit: None,
        program: PathBuf::new(),
    }
}

#[test]
fn a_worker_that_is_to_play_one_trial_leaves_it_to_who_plays_it_and_says_so() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    let plan = plan("work", 2, SweepFile::default());
    let id = plan.trials[1].id.as_str();
    let other = Leases::read(&folder, Duration::from_secs(3600)).unwrap();
    let _lease = other.take(id).unwrap().expect("it is free");
    let told = Mutex::new(Vec::new());
    let tell = |event: WorkerEvent| told.lock().unwrap().push(format!("{event:?}"));

    work(&folder, &plan, &leaving(Some(id)), &StopSignal::default(), &tell).unwrap();

    let told = told.into_inner().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("Left(") && told[0].contains("Playing("), "{told:?}");
}

#[test]
fn a_worker_begins_with_its_own_part() {
    let plan = plan("work", 5, SweepFile::default());
    let options = WorkOptions {
        shard: Shard { index: 2, count: 2 },
        ..leaving(None)
    };

    let order: Vec<usize> = order(&plan, &options).iter().map(|trial| trial.point).collect();

    assert_eq!(order, [1, 3, 0, 2, 4]);
}

#[test]
fn a_worker_pauses_for_longer_and_longer_where_nothing_can_be_played_and_ends_then() {
    let seconds: Vec<Option<u64>> = (1..=10).map(|count| Some(pause_after(count)?.as_secs())).collect();

    assert_eq!(
        seconds,
        [
            Some(1),
            Some(2),
            Some(4),
            Some(8),
            Some(16),
            Some(32),
            Some(64),
            Some(128),
            Some(256),
            None
        ]
    );
}

#[test]
fn a_result_that_is_damaged_is_set_aside_and_the_trial_waits_again() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    let plan = plan("work", 2, SweepFile::default());
    let [whole, damaged] = [0, 1].map(|trial| plan.trials[trial].id.as_str());
    for id in [whole, damaged] {
        TrialResult::new(TrialEnd::Done, 1, 2.0).write(&folder, id).unwrap();
    }
    let path = folder.results().join(format!("{damaged}.done.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let collected = crate::sweep::Collected::read(&folder, &plan).unwrap();
    assert!(!collected.is_complete && collected.trials[1].result.is_none());

    set_damaged_aside(&folder, &plan).unwrap();

    let results = Results::read(&folder).unwrap();
    assert_eq!((results.end(whole), results.end(damaged)), (Some(TrialEnd::Done), None));
    let kept = folder.results().join(format!("{damaged}.damaged-1.json"));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), &text[..text.len() / 2]);
}

#[test]
fn a_digit_that_was_changed_in_a_result_or_in_the_score_at_a_rung_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    let plan = plan("work", 2, SweepFile::default());
    let [ended, at_rung] = [0, 1].map(|trial| plan.trials[trial].id.as_str());
    TrialResult::new(TrialEnd::Done, 1, 2.5).write(&folder, ended).unwrap();
    write_rung(&folder, at_rung, 0, f64::NEG_INFINITY).unwrap();
    write_rung(&folder, at_rung, 1, 61.5).unwrap();
    set_damaged_aside(&folder, &plan).unwrap();
    assert_eq!(Results::read(&folder).unwrap().end(ended), Some(TrialEnd::Done));

    for (name, before, after) in [
        (format!("{ended}.done.json"), "2.5", "9.5"),
        (format!("{at_rung}.rung01.json"), "61.5", "91.5"),
    ] {
        let path = folder.results().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(before, after)).unwrap();
    }
    set_damaged_aside(&folder, &plan).unwrap();

    let results = Results::read(&folder).unwrap();
    assert_eq!(results.end(ended), None);
    assert!(results.has_rung(at_rung, 0) && !results.has_rung(at_rung, 1));
}

#[test]
fn the_same_command_tries_again_what_has_failed_by_the_place_alone() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    let plan = plan("work", 2, SweepFile::default());
    let [own, by_place] = [0, 1].map(|trial| plan.trials[trial].id.as_str());
    for id in [own, by_place] {
        let result = TrialResult {
            by_place: id == by_place,
            ..TrialResult::new(TrialEnd::Failed, 1, 2.0)
        };
        result.write(&folder, id).unwrap();
    }

    assert_eq!(try_misplaced_again(&folder, &plan).unwrap(), 1);

    let results = Results::read(&folder).unwrap();
    assert_eq!(
        (results.end(own), results.end(by_place)),
        (Some(TrialEnd::Failed), None)
    );
}
