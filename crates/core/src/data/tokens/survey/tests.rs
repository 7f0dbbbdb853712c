use super::*;
use crate::data::locate::tests::assert_refused;

fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

#[test]
fn a_text_is_described_with_the_entropy_of_its_bytes() {
    let text = survey(written(b"abababab").path(), None, None).unwrap();

    assert_eq!((text.format, text.tokens, text.distinct), ("text", 8, 2));
    assert_eq!(text.largest, Some(usize::from(b'b')));
    assert!((text.entropy - std::f64::consts::LN_2).abs() < 1e-12);
    let uniform = survey(written(b"aaaa").path(), None, None).unwrap();
    assert_eq!((uniform.distinct, uniform.entropy), (1, 0.0));
    let empty = survey(written(b"").path(), None, None).unwrap();
    assert_eq!((empty.tokens, empty.largest, empty.entropy), (0, None, 0.0));
}

#[test]
fn a_byte_beyond_the_vocabulary_is_named_with_its_place() {
    let file = written(b"\x01\x02z");

    assert_refused(
        survey(file.path(), None, Some(50)),
        "token 2 at byte 2 is 122, outside 0..50",
    );
    assert_eq!(survey(file.path(), None, Some(123)).unwrap().largest, Some(122));
}

#[test]
fn tokens_are_counted_as_the_vocabulary_allows() {
    let tokens = [7_u16, 500, 7, 499];
    let file = written(&tokens.map(u16::to_le_bytes).concat());
    let look = |vocab| survey(file.path(), Some(TokenFormat::Auto), vocab);

    let survey = look(None).unwrap();

    assert_eq!((survey.tokens, survey.distinct, survey.largest), (4, 3, Some(500)));
    assert_refused(look(Some(500)), "token 1 at byte 2 is 500, outside 0..500");
}
