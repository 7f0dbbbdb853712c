//! Files of tokens that another program has made of a text: numbers of 16 or 32 bits, little-endian, with the header of
//! llm.c (Karpathy 2024, <https://github.com/karpathy/llm.c>) or without one.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::TokenSet;
use super::file::{part_sizes, windows};
use crate::data::DataError;
use crate::data::locate::{fill, find, open, rest};
use crate::scenario::{SplitSpec, TokenFiles, TokenFormat};

/// Bytes of llm.c's header: 256 numbers, of which the first are magic number, version and count of tokens.
const HEADER: usize = 1024;
/// Magic numbers with the version that goes with each, and bytes of a token.
const LLM_C: [(u32, u32, usize); 2] = [(20_240_520, 1, 2), (20_240_801, 7, 4)];

/// Reads the files and cuts them into windows. What no file brings is taken from the end of the training file.
pub fn load(files: &TokenFiles, split: SplitSpec, scenario_dir: Option<&Path>) -> Result<TokenSet, DataError> {
    let at = |name: &String| find(name, scenario_dir, None);
    let given = |name: &Option<String>| name.as_ref().map(at).transpose();
    let (path, val, test) = (at(&files.train)?, given(&files.val)?, given(&files.test)?);

    let mut stream = Stream {
        tokens: read(&path, files.format, files.vocab)?,
        block: files.block,
    };
    let share = |permille, file: &Option<PathBuf>| if file.is_some() { 0 } else { permille };
    let drawn = SplitSpec {
        val_permille: share(split.val_permille, &val),
        test_permille: share(split.test_permille, &test),
        ..split
    };
    let sizes = part_sizes(stream.tokens.len(), files.block, drawn);
    if sizes.train == 0 || (sizes.val == 0 && val.is_none()) {
        let parts = if val.is_none() {
            "a training and a validation"
        } else {
            "a training"
        };
        return Err(short(&path, parts, &stream.tokens, files.block));
    }
    let drawn_val = sizes.train..sizes.train + sizes.val;
    let drawn_test = drawn_val.end..drawn_val.end + sizes.test;
    let mut part = |file: Option<PathBuf>, name, drawn: Range<usize>| match file {
        Some(path) => stream.append(&path, name, read(&path, files.format, files.vocab)?),
        None => Ok(drawn),
    };
    let parts = [
        0..sizes.train,
        part(val, "a validation", drawn_val)?,
        part(test, "a test", drawn_test)?,
    ];
    TokenSet::new(
        "token_files",
        (files.vocab, files.block, files.block),
        stream.tokens,
        parts,
    )
}

/// Files one behind the other, each from the beginning of a window on.
struct Stream {
    tokens: Vec<i32>,
    block: usize,
}

impl Stream {
    /// Windows of a further file. The window between two files belongs to no part.
    fn append(&mut self, path: &Path, part: &'static str, tokens: Vec<i32>) -> Result<Range<usize>, DataError> {
        let count = windows(tokens.len(), self.block);
        if count == 0 {
            return Err(short(path, part, &tokens, self.block));
        }
        let first = self.tokens.len().div_ceil(self.block);
        let len = first * self.block + tokens.len();
        reserve(&mut self.tokens, len)?;
        self.tokens.resize(first * self.block, 0);
        self.tokens.extend(tokens);
        Ok(first..first + count)
    }
}

fn short(path: &Path, parts: &'static str, tokens: &[i32], block: usize) -> DataError {
    DataError::FewTokens {
        file: path.into(),
        tokens: tokens.len(),
        windows: windows(tokens.len(), block),
        block,
        parts,
    }
}

fn reserve(tokens: &mut Vec<i32>, len: usize) -> Result<(), DataError> {
    let room = tokens.try_reserve_exact(len - tokens.len());
    room.map_err(|_| DataError::OutOfMemoryForTexts {
        texts: 1,
        bytes: len as u128 * size_of::<i32>() as u128,
    })
}

/// All tokens of a file, each in `0..vocab`.
fn read(path: &Path, format: TokenFormat, vocab: i64) -> Result<Vec<i32>, DataError> {
    let mut input = open(path)?;
    let mut head = vec![0; HEADER];
    let found = fill(&input.name, &mut input.bytes, &mut head, 0)?;
    head.truncate(found);
    let each = match (format, llm_c(&head)) {
        (TokenFormat::LlmC, None) => return Err(no_header(input.name, &head)),
        (TokenFormat::LlmC | TokenFormat::Auto, Some(header)) => {
            let bytes = rest(&input.name, &mut input.bytes, header.bytes(), HEADER as u64)?;
            return tokens(&input.name, &bytes, header.each, HEADER, vocab);
        }
        (TokenFormat::U16 | TokenFormat::Auto, _) => size_of::<u16>(),
        (TokenFormat::U32, _) => size_of::<u32>(),
    };
    let mut bytes = head;
    let whole = input.bytes.read_to_end(&mut bytes);
    whole.map_err(|cause| DataError::Unreadable {
        file: input.name.clone(),
        byte: bytes.len() as u64,
        cause,
    })?;
    tokens(&input.name, &bytes, each, 0, vocab)
}

/// What a header of llm.c says.
struct Header {
    count: u32,
    /// Bytes of a token.
    each: usize,
}

impl Header {
    fn bytes(&self) -> u128 {
        u128::from(self.count) * self.each as u128
    }
}

/// The header that a file begins with, if it does.
fn llm_c(head: &[u8]) -> Option<Header> {
    let number = |index: usize| -> Option<u32> {
        let bytes = head.get(4 * index..4 * index + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (magic, version, count) = (number(0)?, number(1)?, number(2)?);
    let known = LLM_C.iter().find(|known| (known.0, known.1) == (magic, version));
    let &(_, _, each) = known.filter(|_| head.len() == HEADER)?;
    Some(Header { count, each })
}

fn no_header(file: String, head: &[u8]) -> DataError {
    DataError::TokenHeader {
        file,
        length: head.len(),
        found: head.iter().take(8).copied().collect(),
    }
}

/// Numbers of `size` bytes each as tokens; `data_at` is the byte of the file at which they begin.
fn tokens(file: &str, bytes: &[u8], each: usize, data_at: usize, vocab: i64) -> Result<Vec<i32>, DataError> {
    if !bytes.len().is_multiple_of(each) {
        return Err(DataError::HalfAToken {
            file: file.into(),
            bytes: bytes.len(),
            each,
        });
    }
    let mut tokens = Vec::new();
    reserve(&mut tokens, bytes.len() / each)?;
    for (index, number) in bytes.chunks_exact(each).enumerate() {
        let token = number
            .iter()
            .rev()
            .fold(0_u32, |token, &byte| token << 8 | u32::from(byte));
        match i32::try_from(token) {
            Ok(known) if i64::from(known) < vocab => tokens.push(known),
            _ => {
                return Err(DataError::TokenOutOfRange {
                    file: file.into(),
                    index,
                    byte: data_at + index * each,
                    token,
                    vocab,
                });
            }
        }
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests;
