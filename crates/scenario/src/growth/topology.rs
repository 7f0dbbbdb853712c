//! What flows through a host, and so what can grow in it.

use serde::{Deserialize, Serialize};

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
