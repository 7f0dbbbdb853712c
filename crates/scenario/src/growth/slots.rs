//! Places in a host, and what flows through it, and so what can grow in it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::written_as_text;

/// A place in a host, printed `r{row}c{col}` and ordered by row, then column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId {
    /// In a CNN 0 before the pool of a block and 1 after it, else the stage.
    pub row: u16,
    /// The block of a CNN, else the place within the stage.
    pub col: u16,
}

impl SlotId {
    /// The slot at `row` and `col`.
    pub const fn new(row: u16, col: u16) -> Self {
        Self { row, col }
    }
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}c{}", self.row, self.col)
    }
}

/// Text that isn't a slot id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` isn't a slot id; slots are written r<row>c<column>, e.g. `r0c1`")]
pub struct SlotIdError(pub String);

impl FromStr for SlotId {
    type Err = SlotIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str| -> Option<u16> {
            (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
        };
        text.strip_prefix('r')
            .and_then(|rest| rest.split_once('c'))
            .and_then(|(row, col)| Some(Self::new(number(row)?, number(col)?)))
            .ok_or_else(|| SlotIdError(text.into()))
    }
}

written_as_text!(SlotId, ToString::to_string);

/// One place where a host can grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InjectionSpec {
    /// Its name.
    pub slot: SlotId,
    /// Channels of the features there.
    pub channels: i64,
    /// Number of host ops already executed when the slot is applied: execution order.
    pub boundary: usize,
    /// Row-major index: the policy's action order.
    pub order: u32,
}

/// The kind of features between the ops of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// Images: `[B, channels, H, W]`, channels-last in memory.
    Image,
    /// Texts: `[B, T, channels]`; position t depends only on positions up to t.
    Tokens,
}

impl Topology {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Image, Self::Tokens];

    /// As lists show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Tokens => "tokens",
        }
    }
}
