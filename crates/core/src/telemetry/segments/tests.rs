use std::fs;

use super::*;

/// A record of two closed segments of two lines each, header included, and an open one.
fn record() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join(EVENTS_FILE);
    fs::write(&open, header_line("run", false, 0).unwrap()).unwrap();
    for number in 1..=2 {
        append(&open, &format!("{{\"seq\":{number}}}\n"));
        close_segment(folder.path(), number, &header_line("run", false, number).unwrap()).unwrap();
    }
    append(&open, "{\"seq\":3}\n");
    folder
}

fn append(path: &Path, text: &str) {
    let whole = fs::read_to_string(path).unwrap() + text;
    fs::write(path, whole).unwrap();
}

/// The lines that are no headers, with the file and the line of each.
fn lines(folder: &Path) -> Vec<(String, usize, String)> {
    let mut lines = EventLines::open(folder).unwrap();
    let mut found = Vec::new();
    while lines.advance().unwrap() {
        let line = String::from_utf8(lines.line().to_vec()).unwrap();
        if !line.contains("header") {
            let file = lines.path().file_name().unwrap().to_string_lossy().into_owned();
            found.push((file, lines.number(), line.trim_end().to_owned()));
        }
    }
    found
}

fn texts(folder: &Path) -> Vec<String> {
    lines(folder).into_iter().map(|(_, _, line)| line).collect()
}

const ALL: [&str; 3] = ["{\"seq\":1}", "{\"seq\":2}", "{\"seq\":3}"];

#[test]
fn lines_of_all_segments_come_in_order_with_their_places() {
    let folder = record();

    let lines = lines(folder.path());

    let places: Vec<(&str, usize)> = lines.iter().map(|(file, line, _)| (file.as_str(), *line)).collect();
    assert_eq!(
        places,
        [
            ("events-0001.jsonl.zst", 2),
            ("events-0002.jsonl.zst", 2),
            ("events.jsonl", 2)
        ]
    );
    assert_eq!(texts(folder.path()), ALL);
}

/// The kill fell between the two names of closing a segment: its events are in both files.
#[test]
fn a_segment_that_a_killed_process_had_not_quite_closed_is_read_once() {
    let folder = record();
    let open = folder.path().join(EVENTS_FILE);
    let before = fs::read(&open).unwrap();
    close_segment(folder.path(), 3, &header_line("run", false, 3).unwrap()).unwrap();

    fs::write(&open, before).unwrap();

    assert_eq!(texts(folder.path()), ALL);
}

#[test]
fn a_closed_segment_that_is_missing_or_damaged_is_named() {
    let folder = record();
    let closed = folder.path().join("events-0002.jsonl.zst");
    let whole = fs::read(&closed).unwrap();
    let mut undamaged = Vec::new();
    let mut lines = EventLines::open(folder.path()).unwrap();
    while lines.advance().unwrap() {
        undamaged.extend_from_slice(lines.line());
    }
    let told = |folder: &Path| {
        let mut lines = EventLines::open(folder).unwrap();
        let mut found = Vec::new();
        loop {
            match lines.advance() {
                Ok(true) => found.extend_from_slice(lines.line()),
                // One bit of a frame's header means nothing.
                Ok(false) if found == undamaged => return closed.display().to_string(),
                Ok(false) => panic!("the damage is not told"),
                Err(error) => return error.to_string(),
            }
        }
    };

    for position in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[position] ^= 0x10;
        fs::write(&closed, damaged).unwrap();
        assert!(told(folder.path()).contains("events-0002.jsonl.zst"), "byte {position}");
    }
    fs::write(&closed, &whole[..whole.len() / 2]).unwrap();
    assert!(told(folder.path()).contains("events-0002.jsonl.zst"));
    fs::remove_file(&closed).unwrap();
    assert!(told(folder.path()).contains("events-0002.jsonl.zst"));
}

/// The place behind each event in turn.
#[test]
fn a_record_that_is_cut_ends_there_and_the_rest_is_kept_aside() {
    for kept in 1..=3 {
        let folder = record();
        let mut reader = EventLines::open(folder.path()).unwrap();
        while !String::from_utf8_lossy(reader.line()).contains(&format!("\"seq\":{kept}")) {
            assert!(reader.advance().unwrap());
        }

        cut_record(folder.path(), reader.place()).unwrap();

        assert_eq!(texts(folder.path()), ALL[..kept]);
        let aside = fs::read_to_string(folder.path().join("events.discarded-1.jsonl")).unwrap_or_default();
        let aside: Vec<&str> = aside.lines().filter(|line| !line.contains("header")).collect();
        assert_eq!(aside, ALL[kept..]);
        let closed = fs::read_dir(folder.path()).unwrap().flatten();
        let closed = closed.filter(|entry| entry.path().extension().is_some_and(|end| end == "zst"));
        assert_eq!(closed.count(), kept - 1);
    }
}

/// Whole lines that have come since the last time; headers are left out.
fn followed(lines: &mut EventLines) -> Vec<String> {
    let mut found = Vec::new();
    while lines.follow().unwrap() {
        let line = String::from_utf8(lines.line().to_vec()).unwrap();
        found.extend((!line.contains("header")).then(|| line.trim_end().to_owned()));
    }
    found
}

#[test]
fn a_record_that_grows_is_followed_over_the_ends_of_its_segments() {
    let folder = record();
    let open = folder.path().join(EVENTS_FILE);
    let mut lines = EventLines::open(folder.path()).unwrap();
    assert_eq!(followed(&mut lines), ALL);

    append(&open, "{\"seq\":4}\n{\"se");
    assert_eq!(followed(&mut lines), ["{\"seq\":4}"]);
    append(&open, "q\":5}\n{\"seq\":6}\n");
    close_segment(folder.path(), 3, &header_line("run", false, 3).unwrap()).unwrap();
    append(&open, "{\"seq\":7}\n");

    assert!(!lines.is_replaced());
    assert_eq!(followed(&mut lines), ["{\"seq\":5}", "{\"seq\":6}", "{\"seq\":7}"]);
    assert_eq!(lines.path(), open);
    assert_eq!(lines.number(), 2);
}

#[test]
fn a_record_that_was_cut_is_another_one_even_once_it_is_longer() {
    let folder = record();
    let open = folder.path().join(EVENTS_FILE);
    let mut lines = EventLines::open(folder.path()).unwrap();
    followed(&mut lines);
    append(&open, "{\"seq\":4}\n");
    let place = lines.place();
    followed(&mut lines);
    assert!(!lines.is_replaced());

    cut_record(folder.path(), place).unwrap();
    append(&open, "{\"seq\":4,\"again\":true}\n{\"seq\":5}\n");

    assert!(lines.is_replaced());
}
