use super::*;
use crate::telemetry::{EventsMark, Timestamp};
use std::fs;

const HEADER: &str = "{\"type\":\"header\",\"schema\":1}\n";
const RESUMED: &str = "{\"type\":\"header\",\"schema\":1,\"resumed\":true}\n";

/// An event of a kind, with this number and this content.
fn event(seq: u64, kind: &str, data: &str) -> String {
    format!(
        "{{\"seq\":{seq},\"t\":\"2026-01-01T00:00:00.000Z\",\"type\":\"{kind}\",\"sev\":\"info\",\"data\":{data}}}\n"
    )
}

fn note(seq: u64) -> String {
    event(seq, "note", &format!("{{\"text\":\"{seq}\"}}"))
}

/// Checks that a record of known events below `next_seq` is cut between the kept part and the one moved aside, and that the
/// next event has the number `found`.
#[track_caller]
fn assert_cut(kept: &str, aside: &[u8], next_seq: u64, found: u64) {
    let folder = tempfile::tempdir().unwrap();
    let [events, discarded] = ["events.jsonl", "events.discarded-1.jsonl"].map(|name| folder.path().join(name));
    fs::write(&events, [kept.as_bytes(), aside].concat()).unwrap();

    let earlier = cut_back(folder.path(), next_seq, &mut DetectorBank::default()).unwrap();

    assert_eq!(earlier.next_seq, found);
    assert_eq!(fs::read_to_string(events).unwrap(), kept);
    assert_eq!(fs::read(discarded).unwrap_or_default(), aside);
    let files = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1 + usize::from(!aside.is_empty()));
}

#[test]
fn events_of_a_round_that_will_be_played_again_are_moved_aside() {
    let saved = r#"{"path":"checkpoints/round-000001","round":1,"reason":"periodic","size_bytes":1,"wall_ms":1.0}"#;
    let saved = event(2, "checkpoint_saved", saved);
    let after = format!("{}{}{{\"seq\":5,\"ty", note(3), note(4));
    let before = format!("{HEADER}{}{}{saved}", note(0), note(1));

    assert_cut(&before, after.as_bytes(), 2, 3);
}

/// Bytes that no text has, an empty line, a text that ends in the middle of a character.
#[test]
fn a_damaged_end_of_any_kind_is_moved_aside() {
    for damage in [&b"\xff\xfe\n"[..], b"\n", b"\0\0", b"{\"seq\":1,\"msg\":\"\xc3"] {
        assert_cut(&format!("{HEADER}{}", note(0)), damage, 1, 1);
    }
}

/// A known kind of event without a valid content, in the middle of the part to be kept.
#[test]
fn a_damaged_event_is_moved_aside_with_all_that_follow_it() {
    let damaged = note(1).replace("\"text\"", "\"tex\"");
    let after = format!("{damaged}{}", note(2));

    // The checkpoint knows of more.
    assert_cut(&format!("{HEADER}{}", note(0)), after.as_bytes(), 3, 3);
}

/// A kill after the cut must not leave a status that knows of more events than there are.
#[test]
fn what_the_status_vouched_for_is_forgotten_before_events_are_cut_off() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), Some("run"), "run", b"", "", Timestamp::EPOCH).unwrap();
    let folder = directory.path().to_path_buf();
    let ended = RunStatus {
        recorded: Some(EventsMark {
            bytes: 7,
            blake3: String::new(),
        }),
        ..RunStatus::new(RunState::Completed)
    };
    ended.write(&folder).unwrap();
    let point = Continuation {
        directory,
        checkpoint: "checkpoints/round-000001".into(),
        next_round: 1,
        step: 0,
        next_seq: 1,
        changed: Vec::new(),
    };

    // There are no events that could be cut.
    point.cut_back(&mut DetectorBank::default()).unwrap_err();

    assert_eq!(RunStatus::read(&folder).unwrap().recorded, None);
}

#[test]
fn events_of_another_schema_are_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let text = format!(
        "{}{}{}",
        HEADER.replace("\"schema\":1", "\"schema\":2"),
        note(0),
        note(1)
    );
    fs::write(&path, &text).unwrap();

    let refused = cut_back(folder.path(), 1, &mut DetectorBank::default());

    let why = refused.unwrap_err().to_string();
    assert!(why.ends_with("schema 2; this version reads schema 1"), "{why}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_part_of_which_nothing_is_kept_loses_its_header_too() {
    let after = format!("{RESUMED}{}", note(1));

    assert_cut(&format!("{HEADER}{}", note(0)), after.as_bytes(), 1, 1);
}

#[test]
fn nothing_is_moved_where_nothing_is_too_much() {
    assert_cut(&format!("{HEADER}{}{RESUMED}{}", note(0), note(1)), b"", 2, 2);
}
