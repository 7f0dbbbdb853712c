//! Files of tokens that another program has made of a text: numbers of 16 or 32 bits, little-endian, with the header of
//! llm.c (Karpathy 2024, <https://github.com/karpathy/llm.c>) or without one.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::TokenSet;
use super::file::{part_sizes, windows};
use super::stream::{TokenFile, Tokens};
use crate::data::DataError;
use crate::data::locate::{self, Input, check_length, find, open_unpacked, rest, up_to};
use crate::data::records::{RecordFile, Source};
use crate::scenario::{SplitSpec, TokenFiles, TokenFormat};

/// Bytes of llm.c's header: 256 numbers, of which the first are magic number, version and count of tokens.
const HEADER: usize = 1024;
/// Magic numbers with the version that goes with each, and bytes of a token.
const LLM_C: [(u32, u32, usize); 2] = [(20_240_520, 1, 2), (20_240_801, 7, 4)];

/// Cuts the files into windows. Missing parts are taken from the end of the training file.
pub fn load(files: &TokenFiles, split: SplitSpec, scenario_dir: Option<&Path>) -> Result<TokenSet, DataError> {
    let at = |name: &String| find(name, scenario_dir, None);
    let given = |name: &Option<String>| name.as_ref().map(at).transpose();
    let (path, val, test) = (at(&files.train)?, given(&files.val)?, given(&files.test)?);
    let opened = |path: &Path| open(path, files.format, files.vocab);

    let mut tokens = Tokens::of_file(opened(&path)?);
    let share = |permille, file: &Option<PathBuf>| if file.is_some() { 0 } else { permille };
    let drawn = SplitSpec {
        val_permille: share(split.val_permille, &val),
        test_permille: share(split.test_permille, &test),
        ..split
    };
    let sizes = part_sizes(tokens.len(), files.block, drawn);
    if sizes.train == 0 || (sizes.val == 0 && val.is_none()) {
        let parts = match val {
            None => "a training and a validation",
            Some(_) => "a training",
        };
        return Err(short(&path, parts, tokens.len(), files.block));
    }
    let drawn_val = sizes.train..sizes.train + sizes.val;
    let drawn_test = drawn_val.end..drawn_val.end + sizes.test;
    // Windows of a further file begin where a window does. The window between two files belongs to no part.
    let mut part = |file: Option<PathBuf>, name, drawn: Range<usize>| -> Result<Range<usize>, DataError> {
        let Some(path) = file else { return Ok(drawn) };
        let further = opened(&path)?;
        let count = windows(further.records.count, files.block);
        if count == 0 {
            return Err(short(&path, name, further.records.count, files.block));
        }
        let first = tokens.len().div_ceil(files.block);
        tokens.push(first * files.block, further);
        Ok(first..first + count)
    };
    let parts = [
        0..sizes.train,
        part(val, "a validation", drawn_val)?,
        part(test, "a test", drawn_test)?,
    ];
    TokenSet::new("token_files", files.vocab, files.block, files.block, tokens, parts)
}

fn short(path: &Path, parts: &str, tokens: usize, block: usize) -> DataError {
    let (file, windows) = (path.display(), windows(tokens, block));
    DataError::new(
        format!(
            "data file {file} has {tokens} tokens, which are {windows} windows of {block}: too few for {parts} part"
        ),
        "give a longer file, a smaller task.data.block or another task.split",
    )
}

/// The tokens of a file: where they are, unless it is packed. They are checked when they are read, all of them first for the
/// set's hash.
pub(super) fn open(path: &Path, format: TokenFormat, vocab: i64) -> Result<TokenFile, DataError> {
    let unpacked = open_unpacked(path)?;
    let Input { name, mut bytes } = locate::open(path)?;
    let mut head = up_to(&name, &mut bytes, HEADER as u64, 0)?;
    let header = llm_c(&head);
    let (header, each) = match (format, header) {
        (TokenFormat::LlmC, None) => return Err(no_header(&name, &head)),
        (TokenFormat::LlmC | TokenFormat::Auto, Some(header)) => (Some(header.bytes()), header.each),
        (TokenFormat::U16 | TokenFormat::Auto, _) => (None, size_of::<u16>()),
        (TokenFormat::U32, _) => (None, size_of::<u32>()),
    };
    let first = header.map_or(0, |_| HEADER);
    let (length, source) = match (unpacked, header) {
        (Some(file), header) => {
            let metadata = file.metadata().map_err(|cause| DataError::io(path, cause))?;
            if let Some(tokens) = header {
                check_length(&name, &file, tokens.saturating_add(HEADER as u128))?;
            }
            (metadata.len() as usize - first, Source::File(file))
        }
        (None, Some(tokens)) => {
            head.extend(rest(&name, &mut bytes, tokens, HEADER as u64)?);
            (head.len() - first, Source::Memory(head))
        }
        (None, None) => {
            head.extend(up_to(&name, &mut bytes, u64::MAX, head.len() as u64)?);
            (head.len(), Source::Memory(head))
        }
    };
    if !length.is_multiple_of(each) {
        let fault = format!("data file {name} has {length} bytes of tokens, not a multiple of the {each} of a token");
        return Err(DataError::new(
            fault,
            "the file is cut short, or task.data.format is wrong",
        ));
    }
    let records = RecordFile {
        name,
        source,
        first: first as u64,
        each: each as u64,
        count: length / each,
    };
    Ok(TokenFile { records, vocab })
}

/// Returns whether a file begins as llm.c's do.
pub(in crate::data) fn has_header(head: &[u8]) -> bool {
    head.get(..HEADER).is_some_and(|head| llm_c(head).is_some())
}

/// Fields of llm.c's header.
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

fn no_header(file: &str, head: &[u8]) -> DataError {
    let (length, found) = (head.len(), &head[..head.len().min(8)]);
    DataError::new(
        format!("data file {file} has no header of llm.c: it has {length} bytes and starts with {found:02x?}"),
        "valid: 1024 bytes, first the magic number 20240520 and version 1 for tokens of 16 bits, or 20240801 and 7 for 32, \
         little-endian",
    )
}

#[cfg(test)]
mod tests;
