//! The tokens of a text, one after the other: in memory, or in the files that they came in, from which they are read when
//! they are asked for.

use std::ops::Range;

use crate::data::DataError;
use crate::data::records::RecordFile;

/// Tokens that are looked at in one go.
const CHUNK: usize = 1 << 16;

/// All tokens of a set: pieces, between which there may be gaps.
#[derive(Debug, PartialEq)]
pub struct Tokens {
    /// Each with its place in the stream, ascending.
    pieces: Vec<(usize, Piece)>,
}

/// Tokens of one origin.
#[derive(Debug, PartialEq)]
enum Piece {
    Memory(Vec<i32>),
    File(TokenFile),
}

/// A file of tokens, little-endian.
#[derive(Debug, PartialEq)]
pub(super) struct TokenFile {
    pub records: RecordFile,
    /// Tokens are below it.
    pub vocab: i64,
}

impl From<Vec<i32>> for Tokens {
    fn from(tokens: Vec<i32>) -> Self {
        Self {
            pieces: vec![(0, Piece::Memory(tokens))],
        }
    }
}

impl Tokens {
    pub(super) fn of_file(file: TokenFile) -> Self {
        Self {
            pieces: vec![(0, Piece::File(file))],
        }
    }

    /// Adds a file at place `at`, after all that is there.
    pub(super) fn push(&mut self, at: usize, file: TokenFile) {
        self.pieces.push((at, Piece::File(file)));
    }

    /// Adds a token after all that are there.
    pub(super) fn end_with(&mut self, token: i32) {
        self.pieces.push((self.len(), Piece::Memory(vec![token])));
    }

    /// Number of tokens, gaps among them.
    pub fn len(&self) -> usize {
        self.pieces.last().map_or(0, |(at, piece)| at + piece.len())
    }

    /// Returns whether the stream is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the first of them are read from a file.
    pub(super) fn are_in_a_file(&self) -> bool {
        let first = self.pieces.first().map(|(_, piece)| piece);
        matches!(first, Some(Piece::File(file)) if file.records.is_in_a_file())
    }

    /// Writes as many tokens into `tokens` as fit, from place `first` on; where there is none, 0. `scratch` is memory that
    /// callers keep.
    ///
    /// # Errors
    /// The place at which a file has become shorter, has a token beyond its vocabulary, or cannot be read.
    pub fn read(&self, first: usize, tokens: &mut [i32], scratch: &mut Vec<u8>) -> Result<(), DataError> {
        tokens.fill(0);
        for (at, piece) in &self.pieces {
            let begin = first.max(*at);
            let end = (first + tokens.len()).min(at + piece.len());
            if begin < end {
                piece.read(begin - at, &mut tokens[begin - first..end - first], scratch)?;
            }
        }
        Ok(())
    }

    /// Shows the tokens of a range to `look`, some at a time, each time with the place of the first.
    ///
    /// # Errors
    /// The errors of [`Self::read`], and those of `look`.
    pub fn for_each_chunk(
        &self,
        range: Range<usize>,
        mut look: impl FnMut(usize, &[i32]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut scratch = Vec::new();
        let mut chunk = vec![0; CHUNK.min(range.len())];
        for first in range.clone().step_by(CHUNK) {
            let tokens = &mut chunk[..CHUNK.min(range.end - first)];
            self.read(first, tokens, &mut scratch)?;
            look(first, tokens)?;
        }
        Ok(())
    }

    /// All tokens.
    ///
    /// # Errors
    /// The errors of [`Self::read`], or too little memory.
    pub fn to_vec(&self) -> Result<Vec<i32>, DataError> {
        let mut tokens = with_room(1, self.len())?;
        self.for_each_chunk(0..self.len(), |_, chunk| {
            tokens.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(tokens)
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Memory(tokens) => tokens.len(),
            Self::File(file) => file.records.count,
        }
    }

    fn read(&self, first: usize, out: &mut [i32], scratch: &mut Vec<u8>) -> Result<(), DataError> {
        match self {
            Self::Memory(tokens) => {
                out.copy_from_slice(&tokens[first..first + out.len()]);
                Ok(())
            }
            Self::File(file) => file.read(first, out, scratch),
        }
    }
}

impl TokenFile {
    fn read(&self, first: usize, out: &mut [i32], scratch: &mut Vec<u8>) -> Result<(), DataError> {
        let Self { records, vocab } = self;
        let each = records.each as usize;
        scratch.resize(out.len() * each, 0);
        records.read(first, scratch)?;
        let join = |token: u32, &byte: &u8| token << 8 | u32::from(byte);
        for ((index, number), out) in (first..).zip(scratch.chunks_exact(each)).zip(out) {
            let number = number.iter().rev().fold(0, join);
            let token = i32::try_from(number).ok();
            let Some(token) = token.filter(|&token| i64::from(token) < *vocab) else {
                let (file, byte) = (&records.name, records.place(index));
                return Err(DataError::new(
                    format!("data file {file}: token {index} at byte {byte} is {number}, outside 0..{vocab}"),
                    "correct task.data.vocab (and task.classes), or task.data.format",
                ));
            };
            *out = token;
        }
        Ok(())
    }
}

/// An empty list with room for `texts` of `length` tokens each.
///
/// # Errors
/// Too little memory for it.
pub(super) fn with_room(texts: usize, length: usize) -> Result<Vec<i32>, DataError> {
    let mut tokens = Vec::new();
    let room = texts.checked_mul(length);
    match room.map(|room| tokens.try_reserve_exact(room)) {
        Some(Ok(())) => Ok(tokens),
        _ => {
            let each = length as u128 * size_of::<i32>() as u128;
            Err(DataError::memory(texts, "text", each.saturating_mul(texts as u128)))
        }
    }
}

#[cfg(test)]
mod tests;
