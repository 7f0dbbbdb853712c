//! A text file, one token a byte.

use std::path::Path;

use super::{TokenSet, in_order};
use crate::data::DataError;
use crate::data::locate::find;
use crate::scenario::{BYTE_VOCABULARY, PartSizes, SplitSpec, TextFile};

/// The token that ends a file.
const SEPARATOR: i32 = 256;

/// Reads a file and cuts it into windows. The last ones are the test part, those before them validation.
pub fn load(text: &TextFile, split: SplitSpec, scenario_dir: Option<&Path>) -> Result<TokenSet, DataError> {
    let path = find(&text.path, scenario_dir, None)?;
    let bytes = std::fs::read(&path).map_err(|cause| DataError::Io { path, cause })?;
    let mut tokens: Vec<i32> = Vec::new();
    if tokens.try_reserve_exact(bytes.len() + 1).is_err() {
        return Err(DataError::OutOfMemoryForTexts {
            texts: 1,
            bytes: bytes.len() as u128 * size_of::<i32>() as u128,
        });
    }
    tokens.extend(bytes.iter().map(|&byte| i32::from(byte)));
    tokens.push(SEPARATOR);
    let sizes = part_sizes(tokens.len(), text.block, split);
    if sizes.train == 0 || sizes.val == 0 {
        return Err(DataError::ShortText {
            name: text.path.clone(),
            bytes: bytes.len(),
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

/// Whole windows on so many tokens.
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
