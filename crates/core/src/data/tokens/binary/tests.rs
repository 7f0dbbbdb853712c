use proptest::prelude::*;

use super::*;
use crate::data::dataset::tests::digits_task;
use crate::data::locate::tests::{assert_refused, folder_of};
use crate::scenario::PartSizes;

fn bits_16(tokens: impl IntoIterator<Item = u16>) -> Vec<u8> {
    tokens.into_iter().flat_map(u16::to_le_bytes).collect()
}

/// The header of llm.c for 16-bit tokens.
fn header(magic: u32, version: u32, count: u32) -> Vec<u8> {
    let mut header: Vec<u8> = [magic, version, count].into_iter().flat_map(u32::to_le_bytes).collect();
    header.resize(HEADER, 0);
    header
}

/// Files `train`, `val` and `test` in a new folder, in windows of 4 tokens below 100.
fn load_files(contents: [Option<&[u8]>; 3], format: TokenFormat) -> Result<TokenSet, DataError> {
    let [train, val, test] = ["train", "val", "test"].map(String::from);
    let named = [&train, &val, &test].into_iter().zip(contents);
    let folder = folder_of(named.filter_map(|(name, content)| Some((name, content?))));
    let files = TokenFiles {
        train,
        val: contents[1].map(|_| val),
        test: contents[2].map(|_| test),
        format,
        vocab: 100,
        block: 4,
    };
    load(&files, digits_task().split, Some(folder.path()))
}

/// The error of a training file, without its folder.
fn message(content: &[u8], format: TokenFormat) -> String {
    let text = load_files([Some(content), None, None], format).unwrap_err().to_string();
    let (before, after) = text.split_once('/').unwrap();
    let (_, name) = after.split_once("train").unwrap();
    format!("{before}train{name}")
}

#[test]
fn one_file_is_split_into_windows_for_training_then_validation_then_test() {
    let set = load_files([Some(&bits_16(0..41)), None, None], TokenFormat::U16).unwrap();

    assert_eq!([&set.train, &set.val, &set.test], [&(0..7), &(7..9), &(9..10)]);
    assert_eq!(set.tokens.to_vec().unwrap(), (0..41).collect::<Vec<i32>>());
    assert_eq!(set.window(9).unwrap(), (vec![36, 37, 38, 39], vec![37, 38, 39, 40]));
}

#[test]
fn each_file_is_windows_of_its_own() {
    let [train, val, test] = [bits_16(0..11), bits_16(50..59), bits_16(80..90)];
    let set = load_files([Some(&train), Some(&val), Some(&test)], TokenFormat::U16).unwrap();

    let (train, val, test) = (2, 2, 2);
    assert_eq!(set.sizes(), PartSizes { train, val, test });
    for (window, input, targets) in [
        (set.train.end - 1, [4, 5, 6, 7], [5, 6, 7, 8]),
        (set.val.start, [50, 51, 52, 53], [51, 52, 53, 54]),
        (set.test.end - 1, [84, 85, 86, 87], [85, 86, 87, 88]),
    ] {
        assert_eq!(set.window(window).unwrap(), (input.to_vec(), targets.to_vec()));
    }
}

#[test]
fn a_test_part_may_be_drawn_where_validation_is_a_file() {
    let (train, val) = (bits_16(0..41), bits_16(50..59));
    let set = load_files([Some(&train), Some(&val), None], TokenFormat::U16).unwrap();

    assert_eq!((set.train.clone(), set.test.clone()), (0..9, 9..10));
    assert_eq!(set.window(set.val.start).unwrap().0, [50, 51, 52, 53]);
}

proptest! {
    #[test]
    fn every_format_gives_the_same_tokens(values in proptest::collection::vec(0_u16..100, 21..60)) {
        let narrow = bits_16(values.iter().copied());
        let wide: Vec<u8> = values.iter().flat_map(|&value| u32::from(value).to_le_bytes()).collect();
        let count = values.len() as u32;
        let set = |content: &[u8], format| load_files([Some(content), None, None], format).unwrap();

        let plain = set(&narrow, TokenFormat::U16);

        let expected: Vec<i32> = values.iter().map(|&value| i32::from(value)).collect();
        prop_assert_eq!(plain.tokens.to_vec().unwrap(), expected);
        for other in [
            set(&narrow, TokenFormat::Auto),
            set(&wide, TokenFormat::U32),
            set(&[header(20_240_520, 1, count), narrow.clone()].concat(), TokenFormat::Auto),
            set(&[header(20_240_801, 7, count), wide.clone()].concat(), TokenFormat::LlmC),
        ] {
            prop_assert_eq!(other.tokens.to_vec().unwrap(), plain.tokens.to_vec().unwrap());
            prop_assert_eq!(&other.hash, &plain.hash);
        }
    }
}

#[test]
fn what_is_wrong_with_a_file_is_reported_with_its_place() {
    let short = [header(20_240_520, 1, 10), bits_16(0..9)].concat();
    insta::assert_snapshot!(message(&short, TokenFormat::Auto), @"data file train has 1042 bytes, its header implies 1044 bytes; the file is damaged, or its sizes are not written as the format says: fetch or convert it again");
    let long = [header(20_240_520, 1, 8), bits_16(0..9)].concat();
    insta::assert_snapshot!(message(&long, TokenFormat::Auto), @"data file train continues after the 1040 that its header implies, found 1041 or more bytes; the file is damaged, or its sizes are not written as the format says: fetch or convert it again");
    insta::assert_snapshot!(message(&header(20_240_520, 2, 8), TokenFormat::LlmC), @"data file train has no header of llm.c: it has 1024 bytes and starts with [88, d8, 34, 01, 02, 00, 00, 00]; valid: 1024 bytes, first the magic number 20240520 and version 1 for tokens of 16 bits, or 20240801 and 7 for 32, little-endian");
    insta::assert_snapshot!(message(&header(20_240_520, 1, 8)[..1000], TokenFormat::LlmC), @"data file train has no header of llm.c: it has 1000 bytes and starts with [88, d8, 34, 01, 01, 00, 00, 00]; valid: 1024 bytes, first the magic number 20240520 and version 1 for tokens of 16 bits, or 20240801 and 7 for 32, little-endian");
    insta::assert_snapshot!(message(&[0; 43], TokenFormat::U16), @"data file train has 43 bytes of tokens, not a multiple of the 2 of a token; the file is cut short, or task.data.format is wrong");
    insta::assert_snapshot!(message(&[0; 42], TokenFormat::U32), @"data file train has 42 bytes of tokens, not a multiple of the 4 of a token; the file is cut short, or task.data.format is wrong");
    insta::assert_snapshot!(message(&bits_16([1, 2, 100].into_iter().chain(0..40)), TokenFormat::U16), @"data file train: token 2 at byte 4 is 100, outside 0..100; correct task.data.vocab (and task.classes), or task.data.format");
    let after_header = [header(20_240_801, 7, 41), vec![255; 4], vec![0; 160]].concat();
    insta::assert_snapshot!(message(&after_header, TokenFormat::Auto), @"data file train: token 0 at byte 1024 is 4294967295, outside 0..100; correct task.data.vocab (and task.classes), or task.data.format");
    insta::assert_snapshot!(message(&bits_16(0..8), TokenFormat::U16), @"data file train has 8 tokens, which are 1 windows of 4: too few for a training and a validation part; give a longer file, a smaller task.data.block or another task.split");
}

#[test]
fn a_file_for_validation_that_has_no_window_is_named() {
    let few = load_files([Some(&bits_16(0..41)), Some(&bits_16(0..4)), None], TokenFormat::U16);

    assert_refused(few, "val has 4 tokens, which are 0 windows of 4: too few for ");
}
