use std::fs;

use super::*;

/// A record of two closed segments of two lines each, header included, and an open one.
fn record() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(EVENTS_FILE), header_line("run", false, 0).unwrap()).unwrap();
    for number in 1..=2 {
        append(&folder, &format!("{{\"seq\":{number}}}\n"));
        close(&folder, number);
    }
    append(&folder, "{\"seq\":3}\n");
    folder
}

fn append(folder: &tempfile::TempDir, text: &str) {
    let open = folder.path().join(EVENTS_FILE);
    let whole = fs::read_to_string(&open).unwrap() + text;
    fs::write(open, whole).unwrap();
}

fn close(folder: &tempfile::TempDir, number: u32) {
    let header = header_line("run", false, number).unwrap();
    close_segment(folder.path(), number, &header).unwrap();
}

const ALL: [&str; 3] = ["{\"seq\":1}", "{\"seq\":2}", "{\"seq\":3}"];

/// The lines as `step` finds them, without headers.
fn lines(of: &mut EventLines, step: fn(&mut EventLines) -> Result<bool, FileError>) -> Vec<String> {
    let mut found = Vec::new();
    while step(of).unwrap() {
        let line = String::from_utf8(of.line().to_vec()).unwrap();
        found.extend((!line.contains("header")).then(|| line.trim_end().to_owned()));
    }
    found
}

fn texts(folder: &tempfile::TempDir) -> Vec<String> {
    lines(&mut EventLines::open(folder.path()).unwrap(), EventLines::advance)
}

#[test]
fn lines_of_all_segments_come_in_order_with_their_places() {
    let folder = record();
    let mut lines = EventLines::open(folder.path()).unwrap();
    let mut places = Vec::new();

    while lines.advance().unwrap() {
        let file = lines.path().file_name().unwrap().to_string_lossy().into_owned();
        places.push((file, lines.number()));
    }

    let files = ["events-0001.jsonl.zst", "events-0002.jsonl.zst", "events.jsonl"];
    // A header and an event each.
    let expected = files.map(|file| [1, 2].map(|line| (file.to_owned(), line)));
    assert_eq!(places, expected.concat());
    assert_eq!(texts(&folder), ALL);
}

/// The kill fell between the two names of closing a segment: its events are in both files.
#[test]
fn a_segment_that_a_killed_process_had_not_quite_closed_is_read_once() {
    let folder = record();
    let open = folder.path().join(EVENTS_FILE);
    let before = fs::read(&open).unwrap();
    close(&folder, 3);

    fs::write(&open, before).unwrap();

    assert_eq!(texts(&folder), ALL);
}

#[test]
fn a_closed_segment_that_is_missing_or_damaged_is_named() {
    let folder = record();
    let closed = folder.path().join("events-0002.jsonl.zst");
    let whole = fs::read(&closed).unwrap();
    let read = || {
        let mut lines = EventLines::open(folder.path())?;
        let mut found = Vec::new();
        while lines.advance()? {
            found.extend_from_slice(lines.line());
        }
        Ok::<_, FileError>(found)
    };
    let undamaged = read().unwrap();
    let is_named = || match read() {
        // One bit of a frame's header means nothing.
        Ok(found) => found == undamaged,
        Err(error) => error.to_string().contains("events-0002.jsonl.zst"),
    };

    for position in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[position] ^= 0x10;
        fs::write(&closed, damaged).unwrap();
        assert!(is_named(), "byte {position}");
    }
    fs::write(&closed, &whole[..whole.len() / 2]).unwrap();
    assert!(is_named());
    fs::remove_file(&closed).unwrap();
    assert!(is_named());
}

/// Cuts at the place after each event, one by one.
#[test]
fn a_record_that_is_cut_ends_there_and_the_rest_is_kept_aside() {
    for kept in 1..=3 {
        let folder = record();
        let mut reader = EventLines::open(folder.path()).unwrap();
        while !String::from_utf8_lossy(reader.line()).contains(&format!("\"seq\":{kept}")) {
            assert!(reader.advance().unwrap());
        }

        cut_record(folder.path(), reader.place()).unwrap();

        assert_eq!(texts(&folder), ALL[..kept]);
        let aside = fs::read_to_string(folder.path().join("events.discarded-1.jsonl")).unwrap_or_default();
        let aside: Vec<&str> = aside.lines().filter(|line| !line.contains("header")).collect();
        assert_eq!(aside, ALL[kept..]);
        let closed = fs::read_dir(folder.path()).unwrap().flatten();
        let closed = closed.filter(|entry| entry.path().extension().is_some_and(|end| end == "zst"));
        assert_eq!(closed.count(), kept - 1);
    }
}

#[test]
fn a_record_that_grows_is_followed_over_the_ends_of_its_segments() {
    let folder = record();
    let mut record = EventLines::open(folder.path()).unwrap();
    assert_eq!(lines(&mut record, EventLines::follow), ALL);

    append(&folder, "{\"seq\":4}\n{\"se");
    assert_eq!(lines(&mut record, EventLines::follow), ["{\"seq\":4}"]);
    append(&folder, "q\":5}\n{\"seq\":6}\n");
    close(&folder, 3);
    append(&folder, "{\"seq\":7}\n");

    assert!(!record.is_replaced());
    let found = lines(&mut record, EventLines::follow);
    assert_eq!(found, ["{\"seq\":5}", "{\"seq\":6}", "{\"seq\":7}"]);
    assert_eq!((record.path(), record.number()), (&*folder.path().join(EVENTS_FILE), 2));
}

#[test]
fn a_record_that_was_cut_is_another_one_even_once_it_is_longer() {
    let folder = record();
    let mut record = EventLines::open(folder.path()).unwrap();
    lines(&mut record, EventLines::follow);
    append(&folder, "{\"seq\":4}\n");
    let place = record.place();
    lines(&mut record, EventLines::follow);
    assert!(!record.is_replaced());

    cut_record(folder.path(), place).unwrap();
    append(&folder, "{\"seq\":4,\"again\":true}\n{\"seq\":5}\n");

    assert!(record.is_replaced());
}
