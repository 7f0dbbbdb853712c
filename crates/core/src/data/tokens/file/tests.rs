use super::*;
use crate::data::locate::tests::{assert_refused, folder_of, packed};

const SPLIT: SplitSpec = SplitSpec {
    seed: 0,
    val_permille: 100,
    test_permille: 50,
};

/// A file of `content` in a new folder.
fn load_bytes(content: &[u8], block: usize, split: SplitSpec) -> Result<TokenSet, DataError> {
    let folder = folder_of([("a.txt", content)]);
    let path = "a.txt".into();
    load(&TextFile { path, block }, split, Some(folder.path()))
}

#[test]
fn a_thousand_tokens_are_fifteen_windows_of_64_and_the_last_target_is_token_960() {
    assert_eq!(windows(1000, 64), 15);

    let content: Vec<u8> = (0..999_u32).map(|index| (index % 251) as u8).collect();
    let set = load_bytes(&content, 64, SPLIT).unwrap();
    let (input, targets) = set.window(14).unwrap();
    assert_eq!((input.len(), targets.len()), (64, 64));
    assert_eq!(targets[63], set.tokens.to_vec().unwrap()[960]);
    assert_eq!(input[1..], targets[..63]);
}

#[test]
fn the_last_windows_are_for_test_and_those_before_them_for_validation() {
    let set = load_bytes(&[7; 4000], 10, SPLIT).unwrap();

    assert_eq!((set.train, set.val, set.test), (0..340, 340..380, 380..400));
}

#[test]
fn tokens_are_bytes_and_a_separator_ends_the_file() {
    let mut every_value = SPLIT;
    (every_value.val_permille, every_value.test_permille) = (500, 0);

    let set = load_bytes(&[0, 255, 128], 1, every_value).unwrap();

    assert_eq!(set.tokens.to_vec().unwrap(), [0, 255, 128, 256]);
    assert_eq!((set.vocab, set.sizes().train, set.sizes().val), (257, 2, 1));
}

#[test]
fn a_file_that_is_too_short_or_absent_is_refused_with_its_name_and_size() {
    let short = load_bytes(b"hello", 64, SPLIT);
    assert_refused(short, "a.txt' has 5 bytes, which are 0 windows of 64 tokens: ");

    assert_refused(load_bytes(&packed(b"hello"), 2, SPLIT), "a.txt is packed with gzip");
    let with_mark: &[u8] = b"\xff\xfeh\0i\0";
    let wide = [&b"h\0i\0"[..], b"\0h\0i", b"h\0\0\0", b"\0\0\0h"].map(|letters| letters.repeat(1 << 15));
    for bytes in wide.iter().map(Vec::as_slice).chain([with_mark]) {
        assert_refused(load_bytes(bytes, 2, SPLIT), "a.txt is in UTF-16 or UTF-32");
    }
    for (bytes, expected) in [
        (&b"\x28\xb5\x2f\xfd and more"[..], "packed with zstd"),
        (b"BZh91AY&SY", "packed with bzip2"),
        (b"\xfd7zXZ\0\0", "packed with xz"),
        (b"PK\x03\x04", "a zip archive"),
        (b"%PDF-1.7", "a PDF document"),
    ] {
        assert_refused(load_bytes(bytes, 2, SPLIT), &format!("a.txt is {expected}; "));
    }
    // Zeros in any place.
    for bytes in [&b"h\0h\0i"[..], b"\0\0"] {
        assert!(load_bytes(&bytes.repeat(40), 2, SPLIT).is_ok());
    }
    let path = "absent.txt".into();
    let absent = load(&TextFile { path, block: 64 }, SPLIT, None);
    assert_refused(absent, "data file 'absent.txt' was not found");
}

#[test]
fn other_text_has_another_hash_and_so_has_another_block() {
    let hash = |content: &[u8], block| load_bytes(content, block, SPLIT).unwrap().hash;

    assert_eq!(hash(&[1; 400], 8), hash(&[1; 400], 8));
    assert_ne!(hash(&[1; 400], 8), hash(&[2; 400], 8));
    assert_ne!(hash(&[1; 400], 8), hash(&[1; 400], 9));
}
