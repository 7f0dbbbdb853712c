use std::fs;

use super::*;

#[test]
fn a_command_is_taken_once() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = CommandInbox::open(folder.path());
    assert_eq!(inbox.take(), None);

    for command in Command::ALL {
        send_command(folder.path(), command).unwrap();
        assert_eq!(inbox.take().as_deref().and_then(Command::of_word), Some(command));
        assert_eq!(inbox.take(), None);
    }

    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn of_two_commands_the_newer_counts() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = CommandInbox::open(folder.path());

    send_command(folder.path(), Command::Pause).unwrap();
    send_command(folder.path(), Command::Stop).unwrap();

    assert_eq!(inbox.take().as_deref(), Some("stop"));
    assert_eq!(inbox.take(), None);
}

#[test]
fn a_command_may_be_written_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = CommandInbox::open(folder.path());

    fs::write(folder.path().join(COMMAND_FILE), "pause\n").unwrap();

    assert_eq!(inbox.take().as_deref(), Some("pause"));
}

#[test]
fn text_that_isnt_a_word_is_taken_as_far_as_a_word_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = CommandInbox::open(folder.path());

    fs::write(folder.path().join(COMMAND_FILE), [0xff; 4096]).unwrap();

    let word = inbox.take().unwrap();
    assert_eq!(word.chars().count(), LONGEST as usize);
    assert_eq!(Command::of_word(&word), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_was_sent_to_a_process_that_has_ended_is_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    send_command(folder.path(), Command::Stop).unwrap();

    let inbox = CommandInbox::open(folder.path());

    assert_eq!(inbox.take(), None);
}

#[test]
fn a_folder_in_the_way_is_moved_aside_and_no_command() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = CommandInbox::open(folder.path());
    fs::create_dir(folder.path().join(COMMAND_FILE)).unwrap();

    assert_eq!(inbox.take(), None);

    send_command(folder.path(), Command::Pause).unwrap();
    assert!(folder.path().join(COMMAND_FILE).is_file());
}

#[test]
fn a_command_to_no_folder_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let error = send_command(&folder.path().join("gone"), Command::Pause).unwrap_err();

    assert!(error.to_string().contains("gone"), "{error}");
}
