use super::*;
use crate::sweep::SweepFolder;
use crate::sweep::fixtures::folder;

fn leases(folder: &SweepFolder) -> Leases<'_> {
    Leases::read(folder, Duration::from_secs(3600), folder.now().unwrap()).unwrap()
}

/// The lease of a trial that is free.
fn taken(folder: &SweepFolder) -> Lease<'_> {
    leases(folder).take("a").unwrap().expect("it is free")
}

fn holder(folder: &SweepFolder) -> Holder {
    leases(folder).holder("a").unwrap()
}

#[test]
fn only_one_of_two_gets_a_trial() {
    let (_root, folder) = folder();
    let other = leases(&folder);

    let lease = taken(&folder);

    assert!(other.take("a").unwrap().is_none());
    assert!(leases(&folder).take("a").unwrap().is_none());
    assert_eq!(holder(&folder), Holder::Playing(lease.content.clone()));
    assert_eq!(leases(&folder).holder("b").unwrap(), Holder::None);
    assert!(lease.renew().unwrap());
}

#[test]
fn a_silent_worker_loses_its_trial_and_notices() {
    let (_root, folder) = folder();
    let mut lost = taken(&folder);
    (lost.content.failures, lost.content.played_s) = (2, 3.5);
    lost.renew().unwrap();
    folder.age(Shelf::Leases, "a.0001").unwrap();

    let heir = taken(&folder);

    let content = &heir.content;
    assert_eq!((heir.attempt, content.failures, content.played_s), (2, 2, 3.5));
    assert!(!lost.renew().unwrap());
    assert!(heir.renew().unwrap());
}

#[test]
fn the_trial_of_a_process_that_is_gone_is_free_at_once_and_one_of_another_machine_once_it_is_silent() {
    let (_root, folder) = folder();
    let mut lease = taken(&folder);
    lease.content.worker.started = Some(1);
    lease.renew().unwrap();
    assert!(matches!(holder(&folder), Holder::Lost(Some(_))));

    lease.content.worker.machine = "elsewhere".into();
    lease.renew().unwrap();
    assert!(matches!(holder(&folder), Holder::Playing(_)));
}

#[test]
fn half_a_lease_belongs_to_somebody_until_it_is_old() {
    let (_root, folder) = folder();
    std::fs::write(folder.file("leases").join("a.0001"), "{\"wor").unwrap();

    assert!(leases(&folder).take("a").unwrap().is_none());
    folder.age(Shelf::Leases, "a.0001").unwrap();
    assert_eq!(taken(&folder).attempt, 2);
}

#[test]
#[cfg(target_os = "linux")]
fn a_trial_whose_worker_was_killed_is_free_once_the_process_that_plays_it_has_ended_too() {
    let (_root, folder) = folder();
    let mut player = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let mut lease = taken(&folder);
    assert!(lease.names_player(player.id()));
    assert!(!lease.names_player(player.id()));
    lease.content.worker.started = Some(1);
    lease.renew().unwrap();

    assert!(matches!(holder(&folder), Holder::Playing(_)));
    player.kill().unwrap();
    player.wait().unwrap();

    assert!(matches!(holder(&folder), Holder::Lost(Some(_))));
}

#[test]
fn a_lease_of_an_earlier_version_names_no_player() {
    let text = r#"{"worker":{"machine":"elsewhere","pid":7,"started":null},"failures":1,"played_s":2.0}"#;

    let content: LeaseContent = serde_json::from_str(text).unwrap();

    assert_eq!((content.failures, content.player), (1, None));
}

#[test]
fn a_file_with_the_last_number_of_all_is_not_a_lease() {
    let (_root, folder) = folder();
    std::fs::write(folder.file("leases").join("a.4294967295"), "").unwrap();

    assert_eq!(taken(&folder).attempt, 1);
}

#[test]
fn the_machine_may_stop_a_trial_for_as_long_as_newer_checkpoints_appear() {
    let mut setbacks = Setbacks::default();
    let seconds = |pause: Option<Duration>| pause.map(|pause| pause.as_secs());
    let (first, second) = (CheckpointId::before(1), CheckpointId { round: 1, step: 3 });

    let stuck = [None; 4].map(|newest| seconds(setbacks.pause_after(newest)));
    let moved = [first, second, second, second, second].map(|newest| seconds(setbacks.pause_after(Some(newest))));
    let given_up = setbacks.pause_after(Some(second));

    assert_eq!(stuck, [1, 2, 4, 8].map(Some));
    assert_eq!(moved, [1, 1, 2, 4, 8].map(Some));
    assert_eq!(given_up, None);
    assert_eq!(seconds(setbacks.pause_after(Some(second))), Some(1), "tried again");
}
