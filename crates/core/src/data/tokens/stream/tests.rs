use std::io::Write;

use super::*;
use crate::data::locate::tests::assert_refused;
use crate::data::records::Source;

/// Tokens of 16 bits after a header of 3 bytes.
fn file(tokens: &[u16]) -> TokenFile {
    let mut file = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    file.write_all(&[&[0; 3][..], &bytes].concat()).unwrap();
    let records = RecordFile {
        name: "tokens".into(),
        source: Source::File(file),
        first: 3,
        each: 2,
        count: tokens.len(),
    };
    TokenFile { records, vocab: 500 }
}

#[test]
fn pieces_are_read_as_one_stream_with_zeros_between_them() {
    let mut tokens = Tokens::of_file(file(&[300, 301, 302]));
    tokens.pieces.push((4, Piece::Memory(vec![7, 8])));
    let mut middle = [9; 3];

    tokens.read(2, &mut middle, &mut Vec::new()).unwrap();

    assert_eq!(middle, [302, 0, 7]);
    assert_eq!(tokens.to_vec().unwrap(), [300, 301, 302, 0, 7, 8]);
    assert!(tokens.are_in_a_file() && !Tokens::from(vec![1]).are_in_a_file());
}

#[test]
fn a_long_stream_is_looked_at_a_chunk_at_a_time() {
    let all: Vec<u16> = (0..CHUNK as u32 + 10).map(|index| (index % 500) as u16).collect();
    let tokens = Tokens::of_file(file(&all));
    let mut lengths = Vec::new();

    let look = |first, chunk: &[i32]| {
        assert_eq!(chunk[0], first as i32 % 500);
        lengths.push(chunk.len());
        Ok(())
    };
    tokens.for_each_chunk(5..tokens.len(), look).unwrap();

    assert_eq!(lengths, [CHUNK, 5]);
}

#[test]
fn faults_of_a_file_are_reported_with_token_and_byte() {
    let read = |file| Tokens::of_file(file).read(1, &mut [0; 2], &mut Vec::new());
    let cut = file(&[300, 301, 302]);
    let Source::File(on_disk) = &cut.records.source else {
        unreachable!("it is a file");
    };
    on_disk.set_len(8).unwrap();

    assert_refused(read(cut), "data file tokens: record 1 at byte 5 has 3 of 4 bytes");
    let large = file(&[300, 301, 500]);
    let expected = "data file tokens: token 2 at byte 7 is 500, outside 0..500";
    assert_refused(read(large), expected);
}
