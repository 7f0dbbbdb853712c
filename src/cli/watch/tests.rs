use super::*;

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn press(watcher: &mut Watcher, keys: &str) -> bool {
    keys.chars()
        .any(|character| watcher.press(key(KeyCode::Char(character))))
}

#[test]
fn keys_choose_what_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut watcher = Watcher::new(folder.path(), false, None);

    assert!(!watcher.press(key(KeyCode::Tab)));
    assert_eq!(watcher.panel, Panel::Policy);
    watcher.press(key(KeyCode::BackTab));
    watcher.press(key(KeyCode::BackTab));
    assert_eq!(watcher.panel, Panel::Help);
    press(&mut watcher, "i");
    assert_eq!(watcher.panel, Panel::Info);
    watcher.press(key(KeyCode::Esc));
    assert_eq!(watcher.panel, Panel::Envs);

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
    let folder = tempfile::tempdir().expect("a folder");
    let stop = StopSignal::default();

    assert!(press(&mut Watcher::new(folder.path(), false, None), "q"));
    let mut own = Watcher::new(folder.path(), false, Some(stop.clone()));
    assert!(!press(&mut own, "q"));
    assert!(stop.is_requested());
    assert!(
        own.message
            .as_deref()
            .is_some_and(|message| message.contains("stops at the end of this step"))
    );
    assert!(own.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
}

#[test]
fn a_run_that_no_process_plays_is_not_asked_for_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut watcher = Watcher::new(folder.path(), false, None);

    press(&mut watcher, "p");

    assert_eq!(
        watcher.message.as_deref(),
        Some("no process plays this run: it cannot be asked for: pause")
    );
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
}

#[test]
fn a_folder_that_vanishes_is_said_once_and_the_last_state_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut watcher = Watcher::new(folder.path(), false, None);
    watcher.look();
    drop(folder);

    assert!(watcher.look());

    assert!(
        watcher
            .message
            .as_deref()
            .is_some_and(|message| message.contains("is gone"))
    );
    assert!(!watcher.look());
}
