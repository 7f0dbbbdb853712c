use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn checksums_are_those_of_the_polynomial() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(masked_crc32c(b"123456789"), 0xc78a_b0e5);
    // RFC 3720 B.4: 32 bytes of zeros, of ones, and ascending.
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(crc32c(&std::array::from_fn::<u8, 32, _>(|i| i as u8)), 0x46dd_794e);
}

#[test]
fn records_are_those_of_tensorboard_byte_by_byte() {
    let version = Record::version(1.0, FILE_VERSION);
    assert_eq!(
        hex(&version.framed()),
        "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a"
    );

    let scalar = Scalar {
        tag: "ppo/entropy",
        value: 0.5,
        step: 7,
    };
    assert_eq!(
        hex(&Record::scalar(2.0, &scalar).framed()),
        "2100000000000000017becf609000000000000004010072a140a120a0b70706f2f656e74726f7079150000003ffa596235"
    );
}

#[test]
fn long_numbers_take_several_bytes() {
    assert_eq!(hex(&varint(127)), "7f");
    assert_eq!(hex(&varint(300)), "ac02");
    assert_eq!(hex(&varint(u64::MAX)), "ffffffffffffffffff01");
}
