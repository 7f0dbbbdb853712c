//! Damage to a file: bits that flip, pieces that are lost or come twice, absurd numbers, and noise.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One thing that happens to a file. Places and pieces are shares of its length.
#[derive(Clone, Debug)]
pub enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    Swap(Index, Index, usize),
    /// These bytes stand in the place of as many.
    Write(Index, Vec<u8>),
    /// One of the numbers in a text becomes another one.
    Number(Index, &'static str),
    /// From there on nothing is left of it.
    Noise(Index, Vec<u8>),
    /// The same for a place near its beginning, or there.
    Head(usize, Vec<u8>),
}

/// The ends of all types, one beyond them, and what isn't a number of any.
const NUMBERS: [&str; 18] = [
    "0",
    "-1",
    "1",
    "2",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0.5",
    "-1e308",
    "1e999",
    "\"nan\"",
    "",
];

/// One to three of them.
pub fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let place = any::<Index>;
    let word = prop_oneof![
        vec(any::<u8>(), 1..16),
        (select(vec![0_u8, 0x7f, 0x80, 0xff]), 1_usize..9).prop_map(|(byte, length)| vec![byte; length]),
    ];
    let one = prop_oneof![
        1 => place().prop_map(Damage::Cut),
        2 => (place(), 0_u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => (place(), 1_usize..64).prop_map(|(at, length)| Damage::Remove(at, length)),
        1 => (place(), 1_usize..600, 1_usize..20).prop_map(|(at, length, times)| Damage::Repeat(at, length, times)),
        1 => (place(), place(), 1_usize..64).prop_map(|(one, other, length)| Damage::Swap(one, other, length)),
        2 => (place(), word).prop_map(|(at, bytes)| Damage::Write(at, bytes)),
        4 => (place(), select(&NUMBERS[..])).prop_map(|(at, number)| Damage::Number(at, number)),
        1 => (place(), vec(any::<u8>(), 0..600)).prop_map(|(at, bytes)| Damage::Noise(at, bytes)),
        1 => (prop_oneof![Just(0), 1_usize..64], vec(any::<u8>(), 0..600)).prop_map(|(kept, bytes)| Damage::Head(kept, bytes)),
    ];
    vec(one, 1..4)
}

/// The file as all of them leave it.
pub fn damaged(whole: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for damage in damages {
        damage.befall(&mut bytes);
    }
    bytes
}

impl Damage {
    fn befall(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        let piece = |at: &Index, wanted: usize| {
            let start = at.index(length + 1);
            start..(start + wanted).min(length)
        };
        match self {
            Self::Cut(at) => bytes.truncate(at.index(length + 1)),
            Self::Flip(at, bit) => bytes[piece(at, 1)].iter_mut().for_each(|byte| *byte ^= 1 << bit),
            Self::Remove(at, wanted) => drop(bytes.drain(piece(at, *wanted))),
            Self::Repeat(at, wanted, times) => {
                let piece = piece(at, *wanted);
                let again = bytes[piece.clone()].repeat(*times);
                bytes.splice(piece.end..piece.end, again);
            }
            Self::Swap(one, other, wanted) => {
                for (one, other) in piece(one, *wanted).zip(piece(other, *wanted)) {
                    bytes.swap(one, other);
                }
            }
            Self::Write(at, word) => {
                let piece = piece(at, word.len());
                bytes.splice(piece, word.iter().copied());
            }
            Self::Number(at, number) => {
                let numbers = numbers_in(bytes);
                if !numbers.is_empty() {
                    let place = numbers[at.index(numbers.len())].clone();
                    bytes.splice(place, number.bytes());
                }
            }
            Self::Noise(at, noise) => drop(bytes.splice(at.index(length + 1).., noise.iter().copied())),
            Self::Head(kept, noise) => drop(bytes.splice(length.min(*kept).., noise.iter().copied())),
        }
    }
}

/// The places of digits that no name precedes.
fn numbers_in(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let length = text[at..].iter().take_while(|byte| is_part(byte)).count();
        let word = &text[at..at + length];
        if word.starts_with(b"-") || word.first().is_some_and(u8::is_ascii_digit) {
            numbers.push(at..at + length);
        }
        at += length.max(1);
    }
    numbers
}
