//! The records of a TensorBoard event file: a protobuf message between its length and two checksums (TFRecord), as far
//! as curves need it (spec 07 §11.3).

/// What the first record of a file says of its format.
pub const FILE_VERSION: &str = "brain.Event:2";

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Scalar<'a> {
    pub tag: &'a str,
    pub value: f32,
    pub step: u64,
}

/// An encoded `Event` message: `wall_time = 1 (double), step = 2 (varint), file_version = 3 (string),
/// summary = 5 { value = 1 { tag = 1 (string), simple_value = 2 (float) } }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(Vec<u8>);

impl Record {
    /// The first record of a file; `wall_time` in seconds since 1970.
    pub fn version(wall_time: f64, version: &str) -> Self {
        let mut event = double(1, wall_time);
        event.extend(bytes(3, version.as_bytes()));
        Self(event)
    }

    /// A point of a curve.
    pub fn scalar(wall_time: f64, scalar: &Scalar) -> Self {
        let mut value = bytes(1, scalar.tag.as_bytes());
        value.extend(float(2, scalar.value));
        let mut event = double(1, wall_time);
        event.extend(key(2, WireType::Varint));
        event.extend(varint(scalar.step));
        event.extend(bytes(5, &bytes(1, &value)));
        Self(event)
    }

    /// As it stands in a file: `u64 length, u32 checksum of it, message, u32 checksum of it`, little-endian.
    pub fn framed(&self) -> Vec<u8> {
        let length = (self.0.len() as u64).to_le_bytes();
        let mut frame = Vec::with_capacity(self.0.len() + 16);
        frame.extend(length);
        frame.extend(masked_crc32c(&length).to_le_bytes());
        frame.extend(&self.0);
        frame.extend(masked_crc32c(&self.0).to_le_bytes());
        frame
    }
}

/// How protobuf encodes a field's value.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

fn key(field: u64, wire_type: WireType) -> Vec<u8> {
    varint(field << 3 | wire_type as u64)
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn varint(mut value: u64) -> Vec<u8> {
    let mut encoded = Vec::new();
    while value >= 0x80 {
        encoded.push(value as u8 | 0x80);
        value >>= 7;
    }
    encoded.push(value as u8);
    encoded
}

fn double(field: u64, value: f64) -> Vec<u8> {
    let mut encoded = key(field, WireType::Fixed64);
    encoded.extend(value.to_le_bytes());
    encoded
}

fn float(field: u64, value: f32) -> Vec<u8> {
    let mut encoded = key(field, WireType::Fixed32);
    encoded.extend(value.to_le_bytes());
    encoded
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    let mut encoded = key(field, WireType::Bytes);
    encoded.extend(varint(value.len() as u64));
    encoded.extend(value);
    encoded
}

/// TFRecord's mask: a checksum of data that holds checksums would be weak.
fn masked_crc32c(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The Castagnoli polynomial, reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Remainder of each byte.
const REMAINDERS: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let is_odd = remainder & 1 == 1;
            remainder >>= 1;
            if is_odd {
                remainder ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |remainder, &byte| {
        REMAINDERS[usize::from(remainder as u8 ^ byte)] ^ (remainder >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Spec 07 C12.
    #[test]
    fn checksums_are_those_of_the_polynomial() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked_crc32c(b"123456789"), 0xc78a_b0e5);
        // RFC 3720 B.4: 32 bytes of zeros, of ones, and ascending.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&std::array::from_fn::<u8, 32, _>(|i| i as u8)), 0x46dd_794e);
    }

    /// Spec 07 C12.
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
}
