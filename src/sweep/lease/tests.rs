use super::*;
use crate::sweep::SweepFolder;

const LONG: Duration = Duration::from_secs(3600);

struct Sweep {
    _root: tempfile::TempDir,
    folder: SweepFolder,
}

fn sweep() -> Sweep {
    let root = tempfile::tempdir().unwrap();
    let folder = SweepFolder::of("leases", Some(root.path()));
    std::fs::create_dir_all(folder.leases()).unwrap();
    Sweep { _root: root, folder }
}

impl Sweep {
    fn leases(&self) -> Leases<'_> {
        Leases::read(&self.folder, LONG).unwrap()
    }
}

#[test]
fn only_one_of_two_gets_a_trial() {
    let sweep = sweep();
    let (one, other) = (sweep.leases(), sweep.leases());

    let lease = one.take("a").unwrap().expect("it is free");

    assert!(other.take("a").unwrap().is_none());
    assert!(sweep.leases().take("a").unwrap().is_none());
    assert_eq!(
        sweep.leases().holder("a").unwrap(),
        Holder::Playing(lease.content.clone())
    );
    assert_eq!(sweep.leases().holder("b").unwrap(), Holder::None);
    assert!(lease.renew().unwrap());
}

#[test]
fn a_silent_worker_loses_its_trial_and_notices() {
    let sweep = sweep();
    let mut lost = sweep.leases().take("a").unwrap().unwrap();
    lost.content.failures = 2;
    lost.content.played_s = 3.5;
    lost.renew().unwrap();
    sweep.folder.age(Shelf::Leases, "a.0001").unwrap();

    let heir = sweep.leases().take("a").unwrap().expect("it was lost");

    assert_eq!(
        (heir.attempt(), heir.content.failures, heir.content.played_s),
        (2, 2, 3.5)
    );
    assert!(!lost.renew().unwrap());
    assert!(heir.renew().unwrap());
}

#[test]
fn the_trial_of_a_process_that_is_gone_is_free_at_once() {
    let sweep = sweep();
    let mut lease = sweep.leases().take("a").unwrap().unwrap();
    lease.content.worker.started = Some(1);
    lease.renew().unwrap();

    assert!(matches!(sweep.leases().holder("a").unwrap(), Holder::Lost(Some(_))));
}

#[test]
fn a_process_on_another_machine_is_gone_only_once_it_has_been_silent() {
    let sweep = sweep();
    let mut lease = sweep.leases().take("a").unwrap().unwrap();
    lease.content.worker.machine = "elsewhere".into();
    lease.content.worker.started = Some(1);
    lease.renew().unwrap();

    assert!(matches!(sweep.leases().holder("a").unwrap(), Holder::Playing(_)));
}

#[test]
fn a_lease_that_is_let_go_can_be_taken_at_once() {
    let sweep = sweep();
    sweep.leases().take("a").unwrap().unwrap().release().unwrap();

    assert_eq!(sweep.leases().take("a").unwrap().unwrap().attempt(), 2);
}

#[test]
fn half_a_lease_belongs_to_somebody_until_it_is_old() {
    let sweep = sweep();
    let path = sweep.folder.leases().join("a.0001");
    std::fs::write(&path, "{\"wor").unwrap();

    assert!(sweep.leases().take("a").unwrap().is_none());
    sweep.folder.age(Shelf::Leases, "a.0001").unwrap();
    assert_eq!(sweep.leases().take("a").unwrap().unwrap().attempt(), 2);
}

#[test]
#[cfg(target_os = "linux")]
fn a_trial_whose_worker_was_killed_is_free_once_the_process_that_plays_it_has_ended_too() {
    let sweep = sweep();
    let mut player = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let mut lease = sweep.leases().take("a").unwrap().unwrap();
    assert!(lease.names_player(player.id()));
    assert!(!lease.names_player(player.id()));
    lease.content.worker.started = Some(1);
    lease.renew().unwrap();

    assert!(matches!(sweep.leases().holder("a").unwrap(), Holder::Playing(_)));
    player.kill().unwrap();
    player.wait().unwrap();

    assert!(matches!(sweep.leases().holder("a").unwrap(), Holder::Lost(Some(_))));
}

#[test]
fn a_lease_of_an_earlier_version_names_no_player() {
    let text = r#"{"worker":{"machine":"elsewhere","pid":7,"started":null},"failures":1,"played_s":2.0}"#;

    let content: LeaseContent = serde_json::from_str(text).unwrap();

    assert_eq!((content.failures, content.player), (1, None));
}

#[test]
fn a_file_with_the_last_number_of_all_is_no_lease() {
    let sweep = sweep();
    std::fs::write(sweep.folder.leases().join("a.4294967295"), "").unwrap();

    let lease = sweep.leases().take("a").unwrap().expect("it is free");

    assert_eq!(lease.attempt(), 1);
}

#[test]
fn the_machine_may_stop_a_trial_for_as_long_as_newer_checkpoints_appear() {
    let mut setbacks = Setbacks::default();
    let seconds = |pause: Option<Duration>| pause.map(|pause| pause.as_secs());
    let (first, second) = (Standing::before(1), Standing { round: 1, step: 3 });

    let stuck = [None; 4].map(|newest| seconds(setbacks.pause_after(newest)));
    let moved = [first, second, second, second, second].map(|newest| seconds(setbacks.pause_after(Some(newest))));
    let given_up = setbacks.pause_after(Some(second));

    assert_eq!(stuck, [1, 2, 4, 8].map(Some));
    assert_eq!(moved, [1, 1, 2, 4, 8].map(Some));
    assert_eq!(given_up, None);
    assert_eq!(seconds(setbacks.pause_after(Some(second))), Some(1), "tried again");
}
