//! The records of a TensorBoard event file: a protobuf message between its length and two checksums (TFRecord), as far
//! as curves need it.

/// What the first record of a file says of its format.
pub const FILE_VERSION: &str = "brain.Event:2";

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Scalar<'a> {
    /// Name of the curve.
    pub tag: &'a str,
    /// Height of the point.
    pub value: f32,
    /// Position of the point.
    pub step: u64,
}

/// An encoded `Event` message: `wall_time = 1 (double), step = 2 (varint), file_version = 3 (string),
/// summary = 5 { value = 1 { tag = 1 (string), simple_value = 2 (float) } }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(Vec<u8>);

impl Record {
    /// The first record of a file; `wall_time` in seconds since 1970.
    pub fn version(wall_time: f64, version: &str) -> Self {
        Self([double(1, wall_time), bytes(3, version.as_bytes())].concat())
    }

    /// A point of a curve.
    pub fn scalar(wall_time: f64, scalar: &Scalar) -> Self {
        let value = [bytes(1, scalar.tag.as_bytes()), float(2, scalar.value)].concat();
        let step = [key(2, WireType::Varint), varint(scalar.step)].concat();
        Self([double(1, wall_time), step, bytes(5, &bytes(1, &value))].concat())
    }

    /// As it stands in a file: `u64 length, u32 checksum of it, message, u32 checksum of it`, little-endian.
    pub fn framed(&self) -> Vec<u8> {
        let length = (self.0.len() as u64).to_le_bytes();
        let (of_length, of_message) = (masked_crc32c(&length), masked_crc32c(&self.0));
        [
            &length[..],
            &of_length.to_le_bytes(),
            &self.0,
            &of_message.to_le_bytes(),
        ]
        .concat()
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
    [key(field, WireType::Fixed64), value.to_le_bytes().to_vec()].concat()
}

fn float(field: u64, value: f32) -> Vec<u8> {
    [key(field, WireType::Fixed32), value.to_le_bytes().to_vec()].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    let length = varint(value.len() as u64);
    [&key(field, WireType::Bytes), &length, value].concat()
}

/// TFRecord's mask: a checksum of data that holds checksums would be weak.
fn masked_crc32c(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The Castagnoli polynomial, reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

fn crc32c(data: &[u8]) -> u32 {
    let next_bit = |remainder: u32, _| (remainder >> 1) ^ (POLYNOMIAL * (remainder & 1));
    let next_byte = |remainder: u32, &byte: &u8| (0..8).fold(remainder ^ u32::from(byte), next_bit);
    !data.iter().fold(u32::MAX, next_byte)
}

#[cfg(test)]
mod tests;
