//! The stages of a seed, the gates between them, and the reasons for a change.

use super::coded_enum;

coded_enum! {
    /// The stage of a seed; the code is the observation's one-hot index.
    SeedStage {
        /// The stage before that of a fresh seed.
        Unknown = 0 => "UNKNOWN",
        /// The slot is empty.
        Dormant = 1 => "DORMANT",
        /// A module exists and does not train yet.
        Germinated = 2 => "GERMINATED",
        /// It learns without affecting the host.
        Training = 3 => "TRAINING",
        /// Its amplitude rises.
        Blending = 4 => "BLENDING",
        /// Its amplitude is reached; it can be committed or pruned.
        Holding = 5 => "HOLDING",
        /// Committed: part of the host.
        Committed = 6 => "COMMITTED",
        /// Removed.
        Pruned = 7 => "PRUNED",
        /// The slot cools down after a prune.
        Embargoed = 8 => "EMBARGOED",
        /// The slot is about to be free.
        Resetting = 9 => "RESETTING",
    }
}

impl SeedStage {
    /// A module sits in the slot.
    pub const fn is_occupied(self) -> bool {
        self.is_live() || matches!(self, Self::Committed)
    }

    /// Growing, neither committed nor pruned.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Germinated | Self::Training | Self::Blending | Self::Holding)
    }

    /// The module is gone, the slot not yet free.
    pub const fn is_cooling(self) -> bool {
        matches!(self, Self::Pruned | Self::Embargoed | Self::Resetting)
    }
}

coded_enum! {
    /// Quality check before a stage; there is no G4.
    GateLevel {
        /// Before germination.
        G0 = 0 => "G0",
        /// Before training.
        G1 = 1 => "G1",
        /// Before blending.
        G2 = 2 => "G2",
        /// Before holding.
        G3 = 3 => "G3",
        /// Before the commit.
        G5 = 5 => "G5",
    }
}
/// One named comparison of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateCheck {
    /// Name of the comparison.
    pub id: &'static str,
    /// The measured value.
    pub value: Option<f64>,
    /// The value that it was compared with.
    pub threshold: Option<f64>,
    /// True if it was good enough.
    pub passed: bool,
}

/// Outcome of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// The gate.
    pub level: GateLevel,
    /// True if the seed may enter the next stage.
    pub passed: bool,
    /// Every comparison.
    pub checks: smallvec::SmallVec<[GateCheck; 4]>,
}

coded_enum! {
    /// The reason of a prune.
    PruneReason {
        /// Ordered by the controller.
        Policy = 0 => "policy",
        /// The loss of the env was not finite.
        GovernorNan = 1 => "governor_nan",
        /// The host collapsed to guessing.
        GovernorChanceCollapse = 2 => "governor_chance_collapse",
        /// The loss diverged.
        GovernorDivergence = 3 => "governor_divergence",
        /// Removed while its env was rolled back.
        GovernorRollback = 4 => "governor_rollback",
        /// The seed's own numbers were not finite.
        SeedNonfinite = 5 => "seed_nonfinite",
        /// It stayed in holding for too long.
        HoldingTimeout = 6 => "holding_timeout",
    }
}
coded_enum! {
    /// The initiator of a lifecycle change.
    Initiator {
        /// The controller.
        Policy = 0 => "policy",
        /// The governor.
        Governor = 1 => "governor",
        /// A rule of the lifecycle itself.
        Auto = 2 => "auto",
    }
}
