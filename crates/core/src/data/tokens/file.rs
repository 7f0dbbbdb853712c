//! A text file, one token a byte.

use std::path::Path;

use super::stream::{Piece, TokenFile, Tokens};
use super::{TokenSet, in_order};
use crate::data::DataError;
use crate::data::locate::{GZIP_MAGIC, fill_at, find};
use crate::data::records::RecordFile;
use crate::files;
use crate::scenario::{BYTE_VOCABULARY, PartSizes, SplitSpec, TextFile};

/// The token that ends a file.
const SEPARATOR: i32 = 256;

/// Cuts a file into windows. The last ones are the test part, those before them validation.
pub fn load(text: &TextFile, split: SplitSpec, scenario_dir: Option<&Path>) -> Result<TokenSet, DataError> {
    let file = open(&find(&text.path, scenario_dir, None)?, BYTE_VOCABULARY)?;
    let bytes = file.records.count;
    let mut tokens = Tokens::default();
    tokens.push(0, Piece::File(file));
    tokens.push(bytes, Piece::Memory(vec![SEPARATOR]));
    let sizes = part_sizes(tokens.len(), text.block, split);
    if sizes.train == 0 || sizes.val == 0 {
        return Err(DataError::ShortText {
            name: text.path.clone(),
            bytes,
            block: text.block,
            windows: windows(tokens.len(), text.block),
            val_permille: split.val_permille,
        });
    }
    TokenSet::new(
        "text",
        (BYTE_VOCABULARY, text.block, text.block),
        tokens,
        in_order(sizes),
    )
}

/// Every byte of a file as a token, each of which is to be below `vocab`.
pub(super) fn open(path: &Path, vocab: i64) -> Result<TokenFile, DataError> {
    let opened = files::open(path).and_then(|file| Ok((file.metadata()?.len() as usize, file)));
    let (count, file) = opened.map_err(|cause| DataError::io(path, cause))?;
    let name = path.display().to_string();
    let mut head = [0; 2];
    fill_at(&name, &file, &mut head, 0)?;
    let fault = match head {
        GZIP_MAGIC => Some("is packed with gzip, and a text is read as it lies in its file; unpack it"),
        [0xff, 0xfe] | [0xfe, 0xff] => Some("is in UTF-16, two bytes for a letter; save it as UTF-8"),
        _ => None,
    };
    if let Some(fault) = fault {
        return Err(DataError::NotText { file: name, fault });
    }
    let records = RecordFile {
        name,
        file,
        first: 0,
        each: 1,
        count,
    };
    Ok(TokenFile { records, vocab })
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
