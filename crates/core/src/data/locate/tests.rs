use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// `bytes` as gzip packs them.
pub(crate) fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A new folder with these files.
pub(crate) fn folder_of(files: impl IntoIterator<Item = (impl AsRef<Path>, impl AsRef<[u8]>)>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// Checks that it was refused in these words.
#[track_caller]
pub(crate) fn assert_refused<T>(result: Result<T, DataError>, words: &str) {
    let why = result.err().expect("it is refused").to_string();
    assert!(why.contains(words), "{why}");
}

fn content(path: &Path) -> (String, Vec<u8>) {
    let mut input = open(path).unwrap();
    let mut bytes = Vec::new();
    input.bytes.read_to_end(&mut bytes).unwrap();
    (input.name, bytes)
}

#[test]
fn a_packed_file_is_read_like_a_plain_one_under_any_name() {
    let folder = folder_of([("plain", b"the same".to_vec()), ("also-plain", packed(b"the same"))]);
    let [plain, gzip] = ["plain", "also-plain"].map(|name| folder.path().join(name));

    let same = b"the same".to_vec();
    assert_eq!(content(&plain), (plain.display().to_string(), same.clone()));
    assert_eq!(content(&gzip), (format!("{} (unpacked)", gzip.display()), same));
}

#[test]
fn a_packed_file_that_is_cut_short_is_reported_with_the_byte_that_was_reached() {
    let bytes: Vec<u8> = (0..100_000u64).map(|i| ((i * i) >> 7) as u8).collect();
    let all = packed(&bytes);
    let folder = folder_of([("cut.gz", &all[..all.len() / 2])]);

    let mut input = open(&folder.path().join("cut.gz")).unwrap();
    let error = rest(&input.name, &mut input.bytes, 100_000, 0).unwrap_err().to_string();

    let (_, place) = error.split_once("reading failed at byte ").unwrap();
    let byte: u64 = place.split(' ').next().unwrap().parse().unwrap();
    assert!((1..100_000).contains(&byte), "{error}");
}

#[test]
fn a_missing_file_is_reported_with_every_place_and_where_it_is_published() {
    let find = || find("no-such-set", Some(Path::new("/scenario")), Some("https://example.org"));

    let places = "data file 'no-such-set' was not found; looked at /scenario/no-such-set, ";
    assert_refused(find(), places);
    let published = "data/no-such-set. Place the file there (published at https://example.org)";
    assert_refused(find(), published);
}

#[test]
fn a_file_longer_than_its_header_says_is_not_read_to_its_end() {
    let endless = rest("endless", &mut std::io::repeat(7), 1000, 16);

    let expected = "data file endless continues after the 1016 that its header implies, found 1017 or more";
    assert_refused(endless, expected);
}
