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

fn content(path: &Path) -> (String, Vec<u8>) {
    let mut input = open(path).unwrap();
    let mut bytes = Vec::new();
    input.bytes.read_to_end(&mut bytes).unwrap();
    (input.name, bytes)
}

#[test]
fn a_packed_file_is_read_like_a_plain_one_under_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, gzip) = (folder.path().join("plain"), folder.path().join("also-plain"));
    std::fs::write(&plain, b"the same").unwrap();
    std::fs::write(&gzip, packed(b"the same")).unwrap();

    assert_eq!(content(&plain), (plain.display().to_string(), b"the same".to_vec()));
    assert_eq!(
        content(&gzip),
        (format!("{} (unpacked)", gzip.display()), b"the same".to_vec())
    );
}

#[test]
fn a_packed_file_that_is_cut_short_is_told_with_the_byte_that_was_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gz");
    let bytes: Vec<u8> = (0..100_000u64).map(|i| ((i * i) >> 7) as u8).collect();
    let all = packed(&bytes);
    std::fs::write(&path, &all[..all.len() / 2]).unwrap();

    let mut input = open(&path).unwrap();
    let error = rest(&input.name, &mut input.bytes, 100_000, 0).unwrap_err();

    let DataError::Unreadable { byte, .. } = error else {
        panic!("{error}");
    };
    assert!((1..100_000).contains(&byte), "{byte}");
}

#[test]
fn a_missing_file_is_told_with_every_place_and_where_it_is_published() {
    let error = find("no-such-set", Some(Path::new("/scenario")), Some("https://example.org"))
        .unwrap_err()
        .to_string();

    assert!(
        error.starts_with("data file 'no-such-set' was not found; looked at /scenario/no-such-set, "),
        "{error}"
    );
    assert!(
        error.contains("data/no-such-set. Place the file there (published at https://example.org)"),
        "{error}"
    );
}

#[test]
fn a_file_longer_than_its_header_says_is_not_read_to_its_end() {
    let mut endless = std::io::repeat(7);

    let error = rest("endless", &mut endless, 1000, 16).unwrap_err();

    assert!(
        matches!(
            error,
            DataError::SizeMismatch {
                expected: 1016,
                found: 1017,
                ..
            }
        ),
        "{error}"
    );
}
