//! Texts as a host reads them: one stream of tokens and the windows on it.
//!
//! A window is `block` + 1 neighbouring tokens: the first `block` are a sample's input, the last `block` its targets, so
//! each target is the token after its input. The three parts of the data are ranges of windows. Procedural texts stand
//! one after the other and are a window each; windows on a file overlap by the one token that is a target here and an
//! input there.

mod stream;
mod procedural;
mod file;
mod binary;
mod resident;
mod survey;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::scenario::{DataSource, PartSizes, TaskSpec};

use super::DataError;

pub(super) use binary::has_header;
pub use resident::{ResidentTokens, TokenFeed};
pub use stream::Tokens;
pub use survey::{TextSurvey, survey};

/// A text that a run trains and measures on.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSet {
    /// As errors and manifests call it.
    pub name: String,
    /// Number of different tokens. Each is in `0..vocab`.
    pub vocab: i64,
    /// Inputs of a window, and its targets.
    pub block: usize,
    /// Tokens from the beginning of a window to that of the next.
    pub stride: usize,
    /// All parts, shared with the threads that read them while a run trains.
    pub tokens: Arc<Tokens>,
    /// Windows that update parameters.
    pub train: Range<usize>,
    /// Windows that feed reward, observation and governor.
    pub val: Range<usize>,
    /// Windows that only the final evaluation reads. May be none.
    pub test: Range<usize>,
    /// blake3 over name, shape, parts and all tokens, in hexadecimal: resuming with other data is an error.
    pub hash: String,
}

impl TokenSet {
    /// Windows of each part.
    pub fn sizes(&self) -> PartSizes {
        PartSizes {
            train: self.train.len(),
            val: self.val.len(),
            test: self.test.len(),
        }
    }

    /// Returns whether the training part is read from its file when it is needed.
    pub fn is_in_files(&self) -> bool {
        self.tokens.are_in_a_file()
    }

    /// Bytes of all tokens in memory, and of as many on a device.
    pub fn bytes(&self) -> u128 {
        self.tokens.len() as u128 * size_of::<i32>() as u128
    }

    /// The same text with all its tokens in memory.
    ///
    /// # Errors
    /// The errors of [`Tokens::to_vec`].
    pub fn in_memory(self) -> Result<Self, DataError> {
        if !self.is_in_files() {
            return Ok(self);
        }
        let tokens = self.tokens.to_vec()?.into();
        Ok(Self {
            tokens: Arc::new(tokens),
            ..self
        })
    }

    /// Input and targets of a window, counted over all parts.
    ///
    /// # Errors
    /// The errors of [`Tokens::read`].
    pub fn window(&self, index: usize) -> Result<(Vec<i32>, Vec<i32>), DataError> {
        let mut window = vec![0; self.block + 1];
        self.tokens.read(index * self.stride, &mut window, &mut Vec::new())?;
        Ok((window[..self.block].to_vec(), window[1..].to_vec()))
    }

    /// Places of all tokens of a part.
    fn places(&self, windows: &Range<usize>) -> Range<usize> {
        let first = windows.start * self.stride;
        match windows.len() {
            0 => first..first,
            count => first..first + (count - 1) * self.stride + self.block + 1,
        }
    }

    /// Checks that a host that reads `vocab` different tokens, `block` at a time, reads texts like this.
    ///
    /// # Errors
    /// The field that does not agree.
    pub fn check_host(&self, vocab: i64, block: i64) -> Result<(), DataError> {
        let (key, host, data) = if vocab != self.vocab {
            let data = format!("a text of {} different ones", self.vocab);
            ("classes", format!("{vocab} different tokens"), data)
        } else if block < self.block as i64 {
            let data = format!("cut into windows of {}", self.block);
            ("host.block", format!("at most {block} tokens at a time"), data)
        } else {
            return Ok(());
        };
        Err(DataError::host(key, host, &self.name, data))
    }

    /// Tokens and the windows of the parts, checked, with their hash.
    fn new(
        name: &str,
        vocab: i64,
        block: usize,
        stride: usize,
        tokens: impl Into<Tokens>,
        [train, val, test]: [Range<usize>; 3],
    ) -> Result<Self, DataError> {
        for (part, windows) in [("train", &train), ("validation", &val)] {
            if windows.is_empty() {
                return Err(DataError::empty_part(name, part));
            }
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(name.as_bytes());
        for number in [vocab as usize, block, stride, train.end, val.end, test.end] {
            hasher.update(&(number as u64).to_le_bytes());
        }
        let tokens = tokens.into();
        tokens.for_each_chunk(0..tokens.len(), |_, chunk| {
            for token in chunk {
                hasher.update(&token.to_le_bytes());
            }
            Ok(())
        })?;
        Ok(Self {
            hash: hasher.finalize().to_hex().to_string(),
            name: name.into(),
            vocab,
            block,
            stride,
            tokens: Arc::new(tokens),
            train,
            val,
            test,
        })
    }
}

/// Parts one after the other.
fn in_order(sizes: PartSizes) -> [Range<usize>; 3] {
    let (train, val) = (0..sizes.train, sizes.train..sizes.train + sizes.val);
    let test = val.end..val.end + sizes.test;
    [train, val, test]
}

/// Loads and splits the text of `task`. `None` if it trains on images. Relative paths are looked up as those of images.
///
/// # Errors
/// Every [`DataError`] of start-up but that of [`TokenSet::check_host`]: after this the run need not check a token again.
pub fn load_tokens(task: &TaskSpec, scenario_dir: Option<&Path>) -> Result<Option<TokenSet>, DataError> {
    let set = match &task.data {
        DataSource::SynthTokens(params) => procedural::load(params)?,
        DataSource::Text(text) => file::load(text, task.split, scenario_dir)?,
        DataSource::TokenFiles(files) => binary::load(files, task.split, scenario_dir)?,
        _ => return Ok(None),
    };
    if set.vocab != task.classes {
        let (name, vocab, classes) = (set.name, set.vocab, task.classes);
        let fault = format!("data '{name}' has {vocab} different tokens, but task.classes is {classes}");
        return Err(DataError::new(fault, "make them agree"));
    }
    Ok(Some(set))
}

#[cfg(test)]
mod tests;
