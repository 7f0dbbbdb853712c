use super::*;
use std::fs;

const HEADER: &str = "{\"type\":\"header\",\"schema\":\"simic.telemetry\",\"major\":2,\"minor\":0}\n";
const RESUMED: &str = "{\"type\":\"header\",\"schema\":\"simic.telemetry\",\"major\":2,\"resumed\":true}\n";

fn note(seq: u64) -> String {
    format!(
        "{{\"seq\":{seq},\"t\":\"2026-01-01T00:00:00.000Z\",\"type\":\"note\",\"sev\":\"info\",\
         \"data\":{{\"text\":\"{seq}\"}}}}\n"
    )
}

fn saved(seq: u64) -> String {
    format!(
        "{{\"seq\":{seq},\"t\":\"2026-01-01T00:00:00.000Z\",\"type\":\"checkpoint_saved\",\"sev\":\"info\",\
         \"data\":{{\"path\":\"checkpoints/round-000001\",\"round\":1,\"reason\":\"periodic\",\"size_bytes\":1,\
         \"wall_ms\":1.0}}}}\n"
    )
}

fn cut(text: &str, next_seq: u64) -> (tempfile::TempDir, Earlier) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("events.jsonl"), text).unwrap();
    let earlier = cut_back(folder.path(), next_seq, &mut DetectorBank::default()).unwrap();
    (folder, earlier)
}

#[test]
fn events_of_a_round_that_will_be_played_again_are_moved_aside() {
    let (before, after) = (
        format!("{HEADER}{}{}{}", note(0), note(1), saved(2)),
        format!("{}{}", note(3), note(4)),
    );

    let (folder, earlier) = cut(&format!("{before}{after}{{\"seq\":5,\"ty"), 2);

    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("events.jsonl"), before);
    assert_eq!(read("events.discarded-1.jsonl"), format!("{after}{{\"seq\":5,\"ty"));
    assert_eq!(earlier.next_seq, 3);
}

/// Bytes that no text has, an empty line, a text that ends in the middle of a character.
#[test]
fn a_damaged_end_of_any_kind_is_moved_aside() {
    let whole = format!("{HEADER}{}", note(0));
    for damage in [&b"\xff\xfe\n"[..], b"\n", b"\0\0", b"{\"seq\":1,\"msg\":\"\xc3"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        fs::write(&path, [whole.as_bytes(), damage].concat()).unwrap();

        let earlier = cut_back(folder.path(), 1, &mut DetectorBank::default()).unwrap();

        assert_eq!(earlier.next_seq, 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        assert_eq!(
            fs::read(folder.path().join("events.discarded-1.jsonl")).unwrap(),
            damage
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

/// A known kind of event whose content is none, in the middle of what is to be kept.
#[test]
fn a_damaged_event_is_moved_aside_with_all_that_stands_behind_it() {
    let damaged = note(1).replace("\"text\"", "\"tex\"");
    let (before, after) = (format!("{HEADER}{}", note(0)), format!("{damaged}{}", note(2)));

    let (folder, earlier) = cut(&format!("{before}{after}"), 3);

    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("events.jsonl"), before);
    assert_eq!(read("events.discarded-1.jsonl"), after);
    assert_eq!(earlier.next_seq, 3, "the checkpoint knows of more");
}

#[test]
fn events_of_another_major_version_are_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let text = format!("{}{}{}", HEADER.replace("\"major\":2", "\"major\":4"), note(0), note(1));
    fs::write(&path, &text).unwrap();

    assert!(matches!(
        cut_back(folder.path(), 1, &mut DetectorBank::default()),
        Err(ReadError::Major { .. })
    ));

    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_part_of_which_nothing_is_kept_loses_its_header_too() {
    let before = format!("{HEADER}{}", note(0));

    let (folder, earlier) = cut(&format!("{before}{RESUMED}{}", note(1)), 1);

    assert_eq!(fs::read_to_string(folder.path().join("events.jsonl")).unwrap(), before);
    assert_eq!(earlier.next_seq, 1);
}

#[test]
fn nothing_is_moved_where_nothing_is_too_much() {
    let (folder, earlier) = cut(&format!("{HEADER}{}{RESUMED}{}", note(0), note(1)), 2);

    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(earlier.next_seq, 2);
}
