//! A text file, one token a byte.

use std::path::Path;

use super::stream::{Piece, TokenFile, Tokens};
use super::{TokenSet, in_order};
use crate::data::DataError;
use crate::data::locate::{find, open_file};
use crate::scenario::{BYTE_VOCABULARY, PartSizes, SplitSpec, TextFile};

/// The token that ends a file.
const SEPARATOR: i32 = 256;

/// Cuts a file into windows. The last ones are the test part, those before them validation.
pub fn load(text: &TextFile, split: SplitSpec, scenario_dir: Option<&Path>) -> Result<TokenSet, DataError> {
    let file = open(&find(&text.path, scenario_dir, None)?, BYTE_VOCABULARY)?;
    let bytes = file.count;
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
    let opened = open_file(path).and_then(|file| Ok((file.metadata()?.len() as usize, file)));
    let (count, file) = opened.map_err(|cause| DataError::io(path, cause))?;
    Ok(TokenFile {
        name: path.display().to_string(),
        file,
        first: 0,
        each: 1,
        count,
        vocab,
    })
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
