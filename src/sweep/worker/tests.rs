mod simulation;

use super::*;
use crate::sweep::fixtures::{folder, plan};
use crate::sweep::{Leases, Results, SweepFile, try_misplaced_again};

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
    let (_root, folder) = folder();
    let plan = plan("work", 2, SweepFile::default());
    let id = plan.trials[1].id.as_str();
    let other = Leases::read(&folder, Duration::from_secs(3600), folder.now().unwrap()).unwrap();
    let _lease = other.take(id).unwrap().expect("it is free");
    let seen = Mutex::new(Vec::new());
    let tell = |event: WorkerEvent| seen.lock().unwrap().push(format!("{event:?}"));

    work(&folder, &plan, &leaving(Some(id)), &StopSignal::default(), &tell).unwrap();

    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].starts_with("Left(") && seen[0].contains("Playing("), "{seen:?}");
}

#[test]
fn a_worker_begins_with_its_own_part_and_plays_replicate_by_replicate() {
    let mut plan = plan("work", 6, SweepFile::default());
    for (index, trial) in plan.trials.iter_mut().enumerate() {
        (trial.point, trial.replicate) = (index / 3, index as u32 % 3);
    }
    let options = WorkOptions {
        shard: Shard { index: 2, count: 2 },
        ..leaving(None)
    };

    let order = order(&plan, &options).into_iter();
    let order: Vec<_> = order.map(|trial| (trial.point, trial.replicate)).collect();

    assert_eq!(order, [(1, 0), (0, 1), (1, 2), (0, 0), (1, 1), (0, 2)]);
}

#[test]
fn a_worker_pauses_for_longer_and_longer_where_nothing_can_be_played_and_ends_then() {
    let seconds = |count| pause_after(count).map(|pause| pause.as_secs());

    assert_eq!([1, 2, 3, 9].map(seconds), [1, 2, 4, 256].map(Some));
    assert_eq!(seconds(10), None);
}

/// Half a file, a seal that is gone, or a digit that was changed in the score at a rung.
#[test]
fn what_is_damaged_is_set_aside_and_the_trial_waits_again() {
    let (_root, folder) = folder();
    let plan = plan("work", 3, SweepFile::default());
    let ids @ [_, cut, changed] = [0, 1, 2].map(|trial| plan.trials[trial].id.as_str());
    for id in ids {
        TrialResult::new(TrialEnd::Done, 1, 2.5).write(&folder, id).unwrap();
    }
    write_rung(&folder, changed, 0, f64::NEG_INFINITY).unwrap();
    write_rung(&folder, changed, 1, 61.5).unwrap();
    set_damaged_aside(&folder, &plan).unwrap();
    let sound = Results::read(&folder).unwrap();
    assert_eq!(ids.map(|id| sound.end(id)), [Some(TrialEnd::Done); 3]);

    let text_of = |name: &str| std::fs::read_to_string(folder.file("results").join(name)).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.file("results").join(name), text).unwrap();
    let [of_cut, of_changed] = [cut, changed].map(|id| format!("{id}.done.json"));
    let at_rung = format!("{changed}.rung01.json");
    let text = text_of(&of_cut);
    let half = &text[..text.len() / 2];
    write(&of_cut, half);
    write(&of_changed, &text_of(&of_changed).replace("\"seal\"", "\"sale\""));
    write(&at_rung, &text_of(&at_rung).replace("61.5", "91.5"));
    let collected = crate::sweep::Collected::read(&folder, &plan).unwrap();
    assert!(!collected.is_complete && collected.trials[1].result.is_none());

    set_damaged_aside(&folder, &plan).unwrap();

    let results = Results::read(&folder).unwrap();
    assert_eq!(ids.map(|id| results.end(id)), [Some(TrialEnd::Done), None, None]);
    assert!(results.has_rung(changed, 0) && !results.has_rung(changed, 1));
    assert_eq!(text_of(&format!("{cut}.damaged-1.json")), half);
}

#[test]
fn the_same_command_tries_again_what_has_failed_by_the_place_alone() {
    let (_root, folder) = folder();
    let plan = plan("work", 2, SweepFile::default());
    let [own, by_place] = [0, 1].map(|trial| plan.trials[trial].id.as_str());
    for id in [own, by_place] {
        let mut result = TrialResult::new(TrialEnd::Failed, 1, 2.0);
        result.by_place = id == by_place;
        result.write(&folder, id).unwrap();
    }

    try_misplaced_again(&folder, &plan).unwrap();

    let results = Results::read(&folder).unwrap();
    assert_eq!(results.end(own), Some(TrialEnd::Failed));
    assert_eq!(results.end(by_place), None);
}
