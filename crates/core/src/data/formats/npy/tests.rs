use proptest::prelude::*;

use super::*;
use crate::data::formats::array::Array;
use crate::data::locate::tests::assert_refused;

/// A file as NumPy writes it: version 1.0, the header padded with blanks to a multiple of 64 bytes.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    with_header(&header, data)
}

fn read(file: &str, bytes: &[u8]) -> Result<Array, DataError> {
    Array::read(file, bytes, head)
}

fn with_header(text: &str, data: &[u8]) -> Vec<u8> {
    let length = (10 + text.len() + 1).div_ceil(64) * 64 - 10;
    let mut bytes = [&MAGIC[..], &[1, 0], &(length as u16).to_le_bytes()].concat();
    bytes.extend(format!("{text:<width$}\n", width = length - 1).into_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn an_array_is_read_with_its_sizes_and_the_byte_of_its_first_element() {
    let array = read("array", &npy("|u1", "(2, 3)", &[1, 2, 3, 4, 5, 6])[..]).unwrap();

    assert_eq!((&array.head.shape[..], array.head.data_at), (&[2, 3][..], 128));
    assert_eq!(array.data, [1, 2, 3, 4, 5, 6]);
    assert_eq!(array.integers().unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn integers_of_every_width_sign_and_order_of_bytes_are_read() {
    for (descr, data, value) in [
        ("|i1", &[0xfe][..], -2),
        ("<i2", &[0xfe, 0xff], -2),
        (">i2", &[0xff, 0xfe], -2),
        ("<u2", &[0xfe, 0xff], 65_534),
        (">u4", &[0, 0, 1, 0], 256),
        ("<i8", &[3, 0, 0, 0, 0, 0, 0, 0], 3),
        ("<u8", &[0xff; 8], i64::MAX),
    ] {
        let array = read("labels", &npy(descr, "(1,)", data)[..]).unwrap();
        assert_eq!(array.integers().unwrap(), [value], "{descr}");
    }
}

#[test]
fn floats_are_read_in_both_orders_of_bytes() {
    for (descr, data) in [("<f4", 1.5_f32.to_le_bytes()), (">f4", 1.5_f32.to_be_bytes())] {
        let array = read("images", &npy(descr, "(1,)", &data)[..]).unwrap();
        assert_eq!(array.floats().collect::<Vec<_>>(), [1.5]);
        assert_refused(array.integers(), "which labels cannot have; valid: integers");
    }
}

#[test]
fn versions_2_and_3_have_a_longer_length_and_blanks_stand_anywhere_between() {
    let plain = &b"{'descr':'|u1','fortran_order':False,'shape':(1,)}"[..];
    let spaced = &b"{ 'descr' : '|u1' ,\t'fortran_order'\n: False , 'shape' : ( 1 , ) , }"[..];
    for (version, text) in [(2, plain), (3, plain), (3, spaced)] {
        let bytes = [&MAGIC[..], &[version, 0, text.len() as u8, 0, 0, 0], text, &[9]].concat();
        assert_eq!(read("array", &bytes[..]).unwrap().data, [9]);
    }
}

#[test]
fn faults_of_a_header_are_reported() {
    let fortran = with_header("{'descr': '|u1', 'fortran_order': True, 'shape': (1,), }", &[0]);
    let records = "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }";
    for (bytes, expected) in [
        (&b"PK"[..], "it does not begin with the magic number"),
        (b"\x93NUMPY\x07\x00", "its version is not 1, 2 or 3"),
        (
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
            "its header is cut short, or longer than 65536 bytes",
        ),
        (&fortran, "it is in Fortran order: save np.ascontiguousarray(array)"),
        (&with_header(records, &[0; 4]), "its elements are records"),
        (&npy("|u1", "(1 2,)", &[0; 12]), "expected `,` or `]`"),
        (&npy("| u1", "(1,)", &[0]), "elements of type '| u1'"),
        (&npy("|u1", "(1,,)", &[0]), "trailing comma, at byte 64; save it again"),
        (&npy("|u1", "(-1,)", &[]), "expected usize"),
        (&npy("|u1", &"(".repeat(60_000), &[]), "expected usize"),
        (
            &with_header("{'descr': '|u1', 'fortran_order': False, }", &[]),
            "missing field `shape`",
        ),
        (&npy("|O", "(1,)", &[0; 8]), "elements of type '|O'"),
    ] {
        assert_refused(read("array", bytes), expected);
    }
}

#[test]
fn sizes_that_the_file_does_not_have_are_refused_without_allocating() {
    let huge = read("array", &npy("<f4", "(99999999999, 99999999999)", &[0; 8])[..]);

    let expected = "data file array has 136 bytes, its header implies 39999999999200000000132 bytes";
    assert_refused(huge, expected);
}

#[test]
fn sizes_whose_product_no_number_holds_are_refused() {
    let largest = usize::MAX;
    let sizes = format!("({largest}, {largest}, {largest})");

    let expected = "data file array has 200 bytes, its header implies 34028236692093846346";
    assert_refused(read("array", &npy("<f4", &sizes, &[0; 8])[..]), expected);
}

proptest! {
    #[test]
    fn what_was_written_is_read(values in prop::collection::vec(any::<i32>(), 1..40)) {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let bytes = npy("<i4", &format!("({},)", values.len()), &data);

        let read = read("any", &bytes[..]).unwrap().integers().unwrap();

        prop_assert_eq!(read, values.iter().map(|&value| i64::from(value)).collect::<Vec<_>>());
    }

    #[test]
    fn no_damage_makes_the_reader_fail_otherwise_than_by_an_error(at in 0usize..140, with: u8) {
        let mut bytes = npy("<f4", "(3, 1, 1)", &[0; 12]);
        bytes[at] = with;
        let _ = read("any", &bytes[..]);
    }

    #[test]
    fn a_file_cut_anywhere_is_refused(cut in 0usize..140) {
        let bytes = npy("<f4", "(3, 1, 1)", &[0; 12]);
        prop_assert!(read("cut", &bytes[..cut]).is_err());
    }
}
