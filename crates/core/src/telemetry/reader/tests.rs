use super::*;

const HEADER: &str = r#"{"type":"header","schema":"simic.telemetry","major":2,"minor":7}"#;
const NOTE: &str =
    r#"{"seq":0,"t":"2026-01-01T00:00:00.000Z","type":"note","sev":"info","data":{"text":"hi","new":1}}"#;

fn read(text: &str) -> Result<Vec<Event>, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    std::fs::write(&path, text).unwrap();
    EventReader::open(folder.path())?.collect()
}

#[test]
fn unknown_fields_and_unknown_types_are_passed_over() {
    let events = read(&format!("{HEADER}\n{NOTE}\n{{\"type\":\"dream\"}}\n{NOTE}\n")).unwrap();

    assert_eq!(events.len(), 2);
}

#[test]
fn a_missing_field_is_named_with_its_line() {
    let note = NOTE.replace("\"text\":\"hi\",", "");

    let error = read(&format!("{HEADER}\n{note}\n")).unwrap_err().to_string();

    assert!(error.contains("events.jsonl:2"), "{error}");
    assert!(error.contains("`text`"), "{error}");
}

#[test]
fn major_versions_that_are_too_old_or_newer_are_refused() {
    let of_version = |major: u32| {
        read(&format!(
            "{}\n{NOTE}\n",
            HEADER.replace("\"major\":2", &format!("\"major\":{major}"))
        ))
    };

    for major in [1, 4] {
        let error = of_version(major).unwrap_err().to_string();
        assert!(
            error.contains(&format!("schema {major}; this version reads schemas 2 to 3")),
            "{error}"
        );
    }
    assert_eq!(of_version(2).unwrap(), of_version(3).unwrap());
}

#[test]
fn a_torn_last_line_is_tolerated() {
    let events = read(&format!("{HEADER}\n{NOTE}\n{{\"seq\":1,\"ty")).unwrap();

    assert_eq!(events.len(), 1);
}

#[test]
fn a_file_without_a_header_is_refused() {
    let error = read(&format!("{NOTE}\n")).unwrap_err().to_string();

    assert!(error.contains(":1: the first line is no header"), "{error}");
}

/// Messages count rounds from 1.
#[test]
fn a_round_that_has_no_number_from_1_on_is_refused() {
    let note = NOTE.replace("\"seq\":0,", "\"seq\":0,\"round\":4294967295,");

    let error = read(&format!("{HEADER}\n{note}\n")).unwrap_err().to_string();

    assert!(error.contains("events.jsonl:2"), "{error}");
    assert!(error.contains("expected a round, from 0 to 4294967294"), "{error}");
}

fn last(text: &[u8]) -> Option<Event> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    std::fs::write(&path, text).unwrap();
    find_last(folder.path(), |event| Some(event.clone())).unwrap()
}

#[test]
fn the_last_event_is_found_before_headers_and_anything_that_a_killed_writer_left() {
    let event = last(format!("{HEADER}\n{NOTE}\n").as_bytes()).unwrap();

    let sound = format!("{HEADER}\n{NOTE}\n");
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
        assert_eq!(last(&text).as_ref(), Some(&event), "{}", String::from_utf8_lossy(tail));
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
