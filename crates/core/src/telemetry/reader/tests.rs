use super::*;

const HEADER: &str = r#"{"type":"header","schema":1}"#;
const NOTE: &str =
    r#"{"seq":0,"t":"2026-01-01T00:00:00.000Z","type":"note","sev":"info","data":{"text":"hi","new":1}}"#;

fn folder_with(text: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("events.jsonl"), text).unwrap();
    folder
}

fn read(text: &str) -> Result<Vec<Event>, ReadError> {
    EventReader::open(folder_with(text.as_bytes()).path())?.collect()
}

#[test]
fn unknown_fields_and_a_torn_last_line_are_passed_over() {
    let text = format!("{HEADER}\n{NOTE}\n{NOTE}\n{{\"seq\":1,\"ty");

    assert_eq!(read(&text).unwrap().len(), 2);
}

/// Messages count rounds from 1, so that the last number of all can't be a round.
#[test]
fn what_is_wrong_is_named_with_its_line() {
    let textless = NOTE.replace("\"text\":\"hi\",", "");
    let late = NOTE.replace("\"seq\":0,", "\"seq\":0,\"round\":4294967295,");
    let unknown = NOTE.replace("\"note\"", "\"dream\"");
    let [textless, late, unknown] = [textless, late, unknown].map(|note| format!("{HEADER}\n{note}\n"));
    for (text, parts) in [
        (format!("{NOTE}\n"), ["jsonl:1: ", "the first line isn't a header"]),
        (textless, ["jsonl:2: ", "note: missing field `text`"]),
        (unknown, ["jsonl:2: ", "unknown variant `dream`"]),
        (late, ["jsonl:2: ", "expected a round, from 0 to 4294967294"]),
    ] {
        let why = read(&text).unwrap_err().to_string();
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    }
}

#[test]
fn another_schema_is_refused_by_its_number() {
    let header = HEADER.replace("\"schema\":1", "\"schema\":2");

    let why = read(&format!("{header}\n{NOTE}\n")).unwrap_err().to_string();

    assert!(
        why.ends_with("jsonl:1: written with telemetry schema 2; this version reads schema 1"),
        "{why}"
    );
}

fn last(text: &[u8]) -> Option<Event> {
    find_last(folder_with(text).path(), |event| Some(event.clone())).unwrap()
}

#[test]
fn the_last_event_is_found_before_headers_and_anything_that_a_killed_writer_left() {
    let sound = format!("{HEADER}\n{NOTE}\n");
    let event = last(sound.as_bytes());
    assert!(event.is_some());

    let tails: [&[u8]; 6] = [
        HEADER.as_bytes(),
        b"{\"seq\":1,\"ty",
        b"\n\n",
        b"\0\0\0\0",
        b"{\"seq\":1,\"msg\":\"\xc3",
        b"\xff\xfe\n",
    ];
    for tail in tails {
        let text = [sound.as_bytes(), tail].concat();
        assert_eq!(last(&text), event, "{}", String::from_utf8_lossy(tail));
    }
    assert_eq!(last(format!("{HEADER}\n").as_bytes()), None);
    assert_eq!(last(b""), None);
}

/// A line may lie across several blocks.
#[test]
fn the_last_event_may_be_longer_than_what_is_read_at_once() {
    let long = NOTE.replace("hi", &"x".repeat(3 * BLOCK_BYTES as usize));
    for tail in ["\n", &"y".repeat(BLOCK_BYTES as usize)] {
        let event = last(format!("{HEADER}\n{NOTE}\n{long}\n{tail}").as_bytes()).unwrap();

        assert_eq!(serde_json::to_string(&event).unwrap().len() / 1000, long.len() / 1000);
    }
}
