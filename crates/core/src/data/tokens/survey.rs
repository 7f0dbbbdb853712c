//! Survey of a text's tokens, and how often each occurs.

use std::path::Path;

use serde::Serialize;

use super::stream::Tokens;
use super::{binary, file};
use crate::data::DataError;
use crate::scenario::{BYTE_VOCABULARY, TokenFormat};

/// Tokens that any task may have.
const MOST_TOKENS: i64 = 65_536;

/// All about a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextSurvey {
    /// As a scenario calls the format.
    pub format: &'static str,
    /// Number of tokens.
    pub tokens: usize,
    /// Number of different ones.
    pub distinct: usize,
    /// The largest, or none in an empty file.
    pub largest: Option<usize>,
    /// Nats a token of one who knows nothing but how often each is there: what a model has to get below.
    pub entropy: f64,
}

/// Looks at a file of tokens, or without a `format` at a text file, one token a byte; `vocab` if it is known, or to be smaller than
/// that of bytes.
///
/// # Errors
/// Anything that would keep a run from reading it, or a token that isn't below `vocab`.
pub fn survey(path: &Path, format: Option<TokenFormat>, vocab: Option<i64>) -> Result<TextSurvey, DataError> {
    let vocab = vocab.unwrap_or(format.map_or(BYTE_VOCABULARY, |_| MOST_TOKENS));
    let (format, file) = match format {
        None => ("text", file::open(path, vocab)?),
        Some(format) => ("token_files", binary::open(path, format, vocab)?),
    };
    let tokens = Tokens::of_file(file);
    let mut counts = vec![0_u64; vocab as usize];
    tokens.for_each_chunk(0..tokens.len(), |_, chunk| {
        for &token in chunk {
            counts[token as usize] += 1;
        }
        Ok(())
    })?;
    let total = tokens.len() as f64;
    let counted = || counts.iter().filter(|count| **count > 0);
    let seen = || counted().map(|&count| count as f64 / total);
    Ok(TextSurvey {
        format,
        tokens: tokens.len(),
        distinct: seen().count(),
        largest: counts.iter().rposition(|count| *count > 0),
        entropy: seen().map(|share| -share * share.ln()).sum::<f64>().max(0.0),
    })
}

#[cfg(test)]
mod tests;
