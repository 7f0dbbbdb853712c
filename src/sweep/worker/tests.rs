use std::path::PathBuf;

use super::*;
use crate::sweep::fixtures::plan;
use crate::sweep::{Leases, SweepFile};

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
    let tell = |event: Told| told.lock().unwrap().push(format!("{event:?}"));

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

    let order: Vec<usize> = order(&plan, &options).iter().map(|group| group[0].point).collect();

    assert_eq!(order, [1, 3, 0, 2, 4]);
}
