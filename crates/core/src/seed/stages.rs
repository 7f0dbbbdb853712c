//! Meaning of each stage: which one may follow, which gate leads on, what trains.
//!
//! None of this is stored: it follows from the stage, the alpha mode and the scenario.

use crate::growth::{AlphaMode, GateLevel, SeedStage, Topology};
use crate::scenario::OnCommit;

/// The transition table. Everything else is illegal; `Unknown` precedes a fresh seed.
pub const fn may_follow(from: SeedStage, to: SeedStage) -> bool {
    use SeedStage::*;
    match to {
        Unknown => false,
        Dormant => matches!(from, Resetting),
        Germinated => matches!(from, Unknown | Dormant),
        Training => matches!(from, Germinated),
        Blending => matches!(from, Training | Holding),
        Holding => matches!(from, Blending),
        Committed => matches!(from, Holding),
        Pruned => from.is_live(),
        Embargoed => matches!(from, Pruned),
        Resetting => matches!(from, Embargoed),
    }
}

/// Where `Advance` leads and the gate before it. Committing is no advance: it has its own op.
pub const fn next_stage(stage: SeedStage) -> Option<(GateLevel, SeedStage)> {
    match stage {
        SeedStage::Germinated => Some((GateLevel::G1, SeedStage::Training)),
        SeedStage::Training => Some((GateLevel::G2, SeedStage::Blending)),
        SeedStage::Blending => Some((GateLevel::G3, SeedStage::Holding)),
        _ => None,
    }
}

/// A seed's optimizer exists from training to the end of its life.
pub const fn has_optimizer(stage: SeedStage) -> bool {
    stage.is_occupied() && !matches!(stage, SeedStage::Germinated)
}

/// Whether the gradient of seeds that are blended in or held reaches the host. A training seed's never does, a committed one's
/// always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The host does not feel the seed's gradient.
    Isolated,
    /// Host and seed train together.
    CoAdapt,
}

impl Isolation {
    /// Isolation by a host's features: a convolutional host has to be as good without the seed until it is committed, a language
    /// model's residual stream is shared from the start.
    pub const fn of(topology: Topology) -> Self {
        match topology {
            Topology::Image => Self::Isolated,
            Topology::Tokens => Self::CoAdapt,
        }
    }
}

/// Is the seed's optimizer stepped? A seed that fades may not fight the decay: no update while alpha moves down; its
/// momentum is kept.
pub const fn trains(stage: SeedStage, mode: AlphaMode, on_commit: OnCommit) -> bool {
    match stage {
        SeedStage::Training | SeedStage::Blending | SeedStage::Holding => !matches!(mode, AlphaMode::Down),
        SeedStage::Committed => !matches!(on_commit, OnCommit::Freeze),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
