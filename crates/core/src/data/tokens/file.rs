//! A text file, one token a byte.

use std::path::Path;

use super::stream::{TokenFile, Tokens};
use super::{TokenSet, in_order};
use crate::data::DataError;
use crate::data::locate::{GZIP_MAGIC, find, up_to};
use crate::data::records::{RecordFile, Source};
use crate::files;
use crate::scenario::{BYTE_VOCABULARY, PartSizes, SplitSpec, TextFile};

/// The token that ends a file.
const SEPARATOR: i32 = 256;
/// Bytes that tell what a file is.
const LOOKED_AT: u64 = 1 << 16;
const WIDE: (&str, &str) = (
    "is in UTF-16 or UTF-32, two or four bytes for a letter",
    "save it as UTF-8: `iconv -f UTF-16 -t UTF-8`, or -f UTF-32; append LE or BE if the file has no byte-order mark",
);
/// The beginnings of files that aren't text, and the remedies. A text is read exactly as its file has it.
const OTHERS: [(&[u8], (&str, &str)); 6] = [
    (&GZIP_MAGIC, ("is packed with gzip", "unpack it")),
    (b"\x28\xb5\x2f\xfd", ("is packed with zstd", "unpack it")),
    (b"BZh91AY&SY", ("is packed with bzip2", "unpack it")),
    (b"\xfd7zXZ\0", ("is packed with xz", "unpack it")),
    (b"PK\x03\x04", ("is a zip archive", "unpack it")),
    (b"%PDF-", ("is a PDF document", "save its text")),
];

/// Cuts a file into windows. The last ones are the test part, those before them validation.
pub fn load(text: &TextFile, split: SplitSpec, scenario_dir: Option<&Path>) -> Result<TokenSet, DataError> {
    let file = open(&find(&text.path, scenario_dir, None)?, BYTE_VOCABULARY)?;
    let bytes = file.records.count;
    let mut tokens = Tokens::of_file(file);
    tokens.end_with(SEPARATOR);
    let (name, block) = (&text.path, text.block);
    let sizes = part_sizes(tokens.len(), block, split);
    if sizes.train == 0 || sizes.val == 0 {
        let (windows, share) = (windows(tokens.len(), block), split.val_permille);
        let few = format!("too few for a training and a validation part ({share} ‰ of the windows)");
        return Err(DataError::new(
            format!("data file '{name}' has {bytes} bytes, which are {windows} windows of {block} tokens: {few}"),
            "give a longer text, a smaller task.data.block or another task.split",
        ));
    }
    TokenSet::new("text", BYTE_VOCABULARY, block, block, tokens, in_order(sizes))
}

/// Every byte of a file as a token. Tokens must be below `vocab`.
pub(super) fn open(path: &Path, vocab: i64) -> Result<TokenFile, DataError> {
    let opened = files::open(path).and_then(|file| Ok((file.metadata()?.len() as usize, file)));
    let (count, file) = opened.map_err(|cause| DataError::io(path, cause))?;
    let name = path.display().to_string();
    let head = up_to(&name, &mut &file, LOOKED_AT, 0)?;
    let other = OTHERS.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((fault, remedy)) = other.map(|other| other.1).or_else(|| is_wide(&head).then_some(WIDE)) {
        return Err(DataError::new(format!("data file {name} {fault}"), remedy));
    }
    let records = RecordFile {
        name,
        source: Source::File(file),
        first: 0,
        each: 1,
        count,
    };
    Ok(TokenFile { records, vocab })
}

/// Returns whether a text begins with the mark of UTF-16 or UTF-32, or more than three quarters of either its even or its
/// odd bytes are 0, as the upper halves of Latin letters are; text of one byte a letter has none.
fn is_wide(head: &[u8]) -> bool {
    let are_zeros = |first| {
        let zeros = head.iter().skip(first).step_by(2).filter(|byte| **byte == 0);
        8 * zeros.count() > 3 * head.len()
    };
    // A few bytes may be so by chance.
    matches!(head, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) || (head.len() >= 32 && are_zeros(0) != are_zeros(1))
}

/// Number of whole windows in `tokens` tokens.
pub(super) const fn windows(tokens: usize, block: usize) -> usize {
    tokens.saturating_sub(1) / block
}

/// Shares of the windows, rounded down; what remains is for training.
pub(super) fn part_sizes(tokens: usize, block: usize, split: SplitSpec) -> PartSizes {
    let all = windows(tokens, block);
    let share = |permille: u64| (all as u128 * u128::from(permille) / 1000) as usize;
    let (val, test) = (share(split.val_permille), share(split.test_permille));
    PartSizes {
        train: all.saturating_sub(val + test),
        val,
        test,
    }
}

#[cfg(test)]
mod tests;
