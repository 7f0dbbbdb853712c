use super::*;

fn press(watcher: &mut Watcher, sent: &str) -> bool {
    keys_of(sent).chars().any(|key| watcher.press(key))
}

#[test]
fn the_keys_end_with_the_terminal() {
    let typed = keys(Input::of(&b"q\x1b[A\x1b[1;5C"[..])).expect("a thread");

    assert_eq!(typed.iter().collect::<String>(), "q↑");
}

/// A watcher of a folder in which no run lies.
fn watcher() -> (tempfile::TempDir, Watcher) {
    let folder = tempfile::tempdir().expect("a folder");
    let watcher = Watcher::new(folder.path(), false, None);
    (folder, watcher)
}

#[test]
fn keys_choose_what_is_shown() {
    let (_folder, mut watcher) = watcher();

    for (keys, panel) in [
        ("\t", Panel::Policy),
        ("\x1b[Z", Panel::Envs),
        ("\x1b[Z", Panel::Help),
        ("i", Panel::Info),
        ("\x1b", Panel::Envs),
    ] {
        assert!(!press(&mut watcher, keys));
        assert_eq!(watcher.panel, panel, "{keys:?}");
    }

    press(&mut watcher, "1");
    assert_eq!(watcher.env, 1);
    press(&mut watcher, "2");
    assert_eq!(watcher.env, 12, "two digits in a row");
    watcher.typed = None;
    press(&mut watcher, "3/");
    assert_eq!((watcher.env, watcher.is_filtered), (3, true));

    press(&mut watcher, "r");
    let speed = |watcher: &Watcher| watcher.replay.as_ref().map(|replay| (replay.speed, replay.is_held));
    assert_eq!(speed(&watcher), Some((2, false)));
    press(&mut watcher, " ++-");
    assert_eq!(speed(&watcher), Some((3, true)));
    press(&mut watcher, "e");
    assert_eq!(speed(&watcher), None);
}

#[test]
fn leaving_another_process_is_one_key_and_ones_own_run_is_asked_to_stop_first() {
    let (folder, mut other) = watcher();
    let stop = StopSignal::default();

    assert!(press(&mut other, "q"));
    let mut own = Watcher::new(folder.path(), false, Some(stop.clone()));
    assert!(!press(&mut own, "q"));
    assert!(stop.is_requested());
    let answer = own.message.clone().expect("it answers");
    assert!(answer.contains("stops at the end of this step"), "{answer}");
    assert!(press(&mut own, "\x03"));
}

#[test]
fn a_run_that_no_process_plays_is_not_asked_for_anything() {
    let (folder, mut watcher) = watcher();

    press(&mut watcher, "p");

    let expected = "no process plays this run, so it can't be asked for: pause";
    assert_eq!(watcher.message.as_deref(), Some(expected));
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
}

#[test]
fn a_folder_that_vanishes_is_said_once_and_the_last_state_stays() {
    let (folder, mut watcher) = watcher();
    watcher.look();
    drop(folder);

    assert!(watcher.look());

    assert!(watcher.message.as_deref().unwrap_or_default().contains("is gone"));
    assert!(!watcher.look());
}
