//! Files of tokens that another program has made of a text: numbers of 16 or 32 bits, little-endian, with the header of
//! llm.c (Karpathy 2024, <https://github.com/karpathy/llm.c>) or without one.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::TokenSet;
use super::file::{part_sizes, windows};
use super::stream::{Piece, TokenFile, Tokens, known, with_room};
use crate::data::DataError;
use crate::data::locate::{check_length, fill, fill_at, find, open, open_unpacked, rest};
use crate::data::records::RecordFile;
use crate::scenario::{SplitSpec, TokenFiles, TokenFormat};

/// Bytes of llm.c's header: 256 numbers, of which the first are magic number, version and count of tokens.
const HEADER: usize = 1024;
/// Magic numbers with the version that goes with each, and bytes of a token.
const LLM_C: [(u32, u32, usize); 2] = [(20_240_520, 1, 2), (20_240_801, 7, 4)];

/// Cuts the files into windows. What no file brings is taken from the end of the training file.
pub fn load(files: &TokenFiles, split: SplitSpec, scenario_dir: Option<&Path>) -> Result<TokenSet, DataError> {
    let at = |name: &String| find(name, scenario_dir, None);
    let given = |name: &Option<String>| name.as_ref().map(at).transpose();
    let (path, val, test) = (at(&files.train)?, given(&files.val)?, given(&files.test)?);
    let piece = |path: &Path| piece(path, files.format, files.vocab);

    let mut tokens = Tokens::default();
    tokens.push(0, piece(&path)?);
    let share = |permille, file: &Option<PathBuf>| if file.is_some() { 0 } else { permille };
    let drawn = SplitSpec {
        val_permille: share(split.val_permille, &val),
        test_permille: share(split.test_permille, &test),
        ..split
    };
    let sizes = part_sizes(tokens.len(), files.block, drawn);
    if sizes.train == 0 || (sizes.val == 0 && val.is_none()) {
        let parts = if val.is_none() {
            "a training and a validation"
        } else {
            "a training"
        };
        return Err(short(&path, parts, tokens.len(), files.block));
    }
    let drawn_val = sizes.train..sizes.train + sizes.val;
    let drawn_test = drawn_val.end..drawn_val.end + sizes.test;
    let mut part = |file: Option<PathBuf>, name, drawn: Range<usize>| match file {
        Some(path) => append(&mut tokens, (&path, name), piece(&path)?, files.block),
        None => Ok(drawn),
    };
    let parts = [
        0..sizes.train,
        part(val, "a validation", drawn_val)?,
        part(test, "a test", drawn_test)?,
    ];
    TokenSet::new("token_files", (files.vocab, files.block, files.block), tokens, parts)
}

/// Windows of a further file, which begins where a window does. The window between two files belongs to no part.
fn append(
    tokens: &mut Tokens,
    (path, part): (&Path, &'static str),
    piece: Piece,
    block: usize,
) -> Result<Range<usize>, DataError> {
    let count = windows(piece.len(), block);
    if count == 0 {
        return Err(short(path, part, piece.len(), block));
    }
    let first = tokens.len().div_ceil(block);
    tokens.push(first * block, piece);
    Ok(first..first + count)
}

fn short(path: &Path, parts: &'static str, tokens: usize, block: usize) -> DataError {
    DataError::FewTokens {
        file: path.into(),
        tokens,
        windows: windows(tokens, block),
        block,
        parts,
    }
}

/// The tokens of a file: where they are, unless it is packed.
pub(super) fn piece(path: &Path, format: TokenFormat, vocab: i64) -> Result<Piece, DataError> {
    match open_unpacked(path)? {
        Some(file) => unread(path, file, format, vocab).map(Piece::File),
        None => read(path, format, vocab).map(Piece::Memory),
    }
}

/// Whether a file begins as llm.c's do.
pub(in crate::data) fn has_header(head: &[u8]) -> bool {
    head.get(..HEADER).is_some_and(|head| llm_c(head).is_some())
}

/// A file whose tokens stay there. They are checked when they are read, all of them first for the set's hash.
fn unread(path: &Path, file: File, format: TokenFormat, vocab: i64) -> Result<TokenFile, DataError> {
    let name = path.display().to_string();
    let mut head = vec![0; HEADER];
    let found = fill_at(&name, &file, &mut head, 0)?;
    head.truncate(found);
    let (first, each, count) = match layout(format, &head) {
        Layout::Unknown => return Err(no_header(name, &head)),
        Layout::LlmC(header) => {
            check_length(&name, &file, header.bytes().saturating_add(HEADER as u128))?;
            (HEADER, header.each, header.count as usize)
        }
        Layout::Plain(each) => {
            let metadata = file.metadata().map_err(|cause| DataError::io(path, cause))?;
            let bytes = metadata.len() as usize;
            check_whole(&name, bytes, each)?;
            (0, each, bytes / each)
        }
    };
    let records = RecordFile {
        name,
        file,
        first: first as u64,
        each: each as u64,
        count,
    };
    Ok(TokenFile { records, vocab })
}

/// All tokens of a packed file, each in `0..vocab`.
fn read(path: &Path, format: TokenFormat, vocab: i64) -> Result<Vec<i32>, DataError> {
    let mut input = open(path)?;
    let mut head = vec![0; HEADER];
    let found = fill(&input.name, &mut input.bytes, &mut head, 0)?;
    head.truncate(found);
    let each = match layout(format, &head) {
        Layout::Unknown => return Err(no_header(input.name, &head)),
        Layout::LlmC(header) => {
            let bytes = rest(&input.name, &mut input.bytes, header.bytes(), HEADER as u64)?;
            return tokens(&input.name, &bytes, header.each, HEADER, vocab);
        }
        Layout::Plain(each) => each,
    };
    let mut bytes = head;
    let whole = input.bytes.read_to_end(&mut bytes);
    whole.map_err(|cause| DataError::unreadable(&input.name, bytes.len() as u64, cause))?;
    tokens(&input.name, &bytes, each, 0, vocab)
}

/// How tokens are laid out in a file.
enum Layout {
    LlmC(Header),
    /// From the first byte, N bytes each.
    Plain(usize),
    /// The header that it should begin with is not there.
    Unknown,
}

fn layout(format: TokenFormat, head: &[u8]) -> Layout {
    match (format, llm_c(head)) {
        (TokenFormat::LlmC, None) => Layout::Unknown,
        (TokenFormat::LlmC | TokenFormat::Auto, Some(header)) => Layout::LlmC(header),
        (TokenFormat::U16 | TokenFormat::Auto, _) => Layout::Plain(size_of::<u16>()),
        (TokenFormat::U32, _) => Layout::Plain(size_of::<u32>()),
    }
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

fn check_whole(file: &str, bytes: usize, each: usize) -> Result<(), DataError> {
    if bytes.is_multiple_of(each) {
        return Ok(());
    }
    let file = file.into();
    Err(DataError::HalfAToken { file, bytes, each })
}

/// Numbers of `each` bytes as tokens; `data_at` is the byte of the file at which they begin.
fn tokens(file: &str, bytes: &[u8], each: usize, data_at: usize, vocab: i64) -> Result<Vec<i32>, DataError> {
    check_whole(file, bytes.len(), each)?;
    let mut tokens = with_room(bytes.len() / each)?;
    for (index, number) in bytes.chunks_exact(each).enumerate() {
        let token = known(number, vocab).map_err(|token| DataError::TokenOutOfRange {
            file: file.into(),
            index,
            byte: (data_at + index * each) as u64,
            token,
            vocab,
        })?;
        tokens.push(token);
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests;
