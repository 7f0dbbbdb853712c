//! Orders of a controller, and the reasons for which an order is refused.

use super::{
    AlphaCurveAction, AlphaMode, AlphaSpeed, AlphaTarget, GateLevel, GerminationStyle, SeedStage, Tempo, coded_enum,
};

coded_enum! {
    /// The head that is always relevant.
    #[derive(Default)]
    LifecycleOp {
        /// Does nothing.
        #[default]
        Wait = 0 => "WAIT",
        /// Plants a seed.
        Germinate = 1 => "GERMINATE",
        /// Ramps a seed's amplitude.
        SetAlphaTarget = 2 => "SET_ALPHA_TARGET",
        /// Removes a seed.
        Prune = 3 => "PRUNE",
        /// Commits a seed.
        Commit = 4 => "COMMIT",
        /// Tries a seed's next gate.
        Advance = 5 => "ADVANCE",
    }
}
/// An order of a controller; slots are indices into the policy's slot order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LifecycleCommand {
    /// Does nothing.
    Wait,
    /// Plants a seed.
    Germinate {
        /// The slot to grow in.
        slot: usize,
        /// Index of its recipe.
        blueprint: usize,
        /// Curve and operator of the first blend.
        style: GerminationStyle,
        /// Length of the first blend.
        tempo: Tempo,
        /// Amplitude to blend to.
        target: AlphaTarget,
    },
    /// Ramps a seed's amplitude.
    SetAlphaTarget {
        /// The slot of the seed.
        slot: usize,
        /// Blend style, whose operator holds from now on.
        style: GerminationStyle,
        /// New amplitude.
        target: AlphaTarget,
        /// Length of the ramp.
        speed: AlphaSpeed,
        /// Curve of the ramp.
        curve: AlphaCurveAction,
    },
    /// Removes a seed.
    Prune {
        /// The slot of the seed.
        slot: usize,
        /// Length of the ramp down.
        speed: AlphaSpeed,
        /// Curve of the ramp down.
        curve: AlphaCurveAction,
    },
    /// Commits a seed.
    Commit {
        /// The slot of the seed.
        slot: usize,
    },
    /// Tries a seed's next gate.
    Advance {
        /// The slot of the seed.
        slot: usize,
    },
}

impl LifecycleCommand {
    /// Its operation.
    pub const fn op(&self) -> LifecycleOp {
        match self {
            Self::Wait => LifecycleOp::Wait,
            Self::Germinate { .. } => LifecycleOp::Germinate,
            Self::SetAlphaTarget { .. } => LifecycleOp::SetAlphaTarget,
            Self::Prune { .. } => LifecycleOp::Prune,
            Self::Commit { .. } => LifecycleOp::Commit,
            Self::Advance { .. } => LifecycleOp::Advance,
        }
    }

    /// The slot that it is about.
    pub const fn slot(&self) -> Option<usize> {
        match *self {
            Self::Wait => None,
            Self::Germinate { slot, .. }
            | Self::SetAlphaTarget { slot, .. }
            | Self::Prune { slot, .. }
            | Self::Commit { slot }
            | Self::Advance { slot } => Some(slot),
        }
    }
}

/// The reason why an operation was refused: shared by masks, execution and telemetry.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FailureReason {
    #[error("the slot is disabled")]
    SlotDisabled,
    #[error("the slot is occupied")]
    SlotOccupied,
    #[error("the slot is empty")]
    SlotEmpty,
    #[error("the slot cools down ({stage}, steps left: {left})")]
    Cooldown { stage: SeedStage, left: u32 },
    #[error("the seed limit is reached")]
    SeedLimit,
    #[error("another seed is still developing")]
    DevelopingSeed,
    #[error("the seed is {stage}")]
    WrongStage { stage: SeedStage },
    #[error("the seed is {age} step{} old, {min} {} needed", match .age { 1 => "", _ => "s" }, match .min { 1 => "is", _ => "are" })]
    TooYoung { age: u32, min: u32 },
    #[error("the seed's alpha is moving {mode}")]
    AlphaBusy { mode: AlphaMode },
    #[error("this gate is tried automatically")]
    AdvanceDisabled,
    #[error("gate {gate} failed")]
    GateFailed { gate: GateLevel },
    #[error("the blueprint is not available here")]
    BlueprintUnavailable,
    #[error("the blueprint has no trainable parameters")]
    NoTrainableParams,
    #[error("out of memory")]
    OutOfMemory,
    #[error("vetoed by the governor ({factor})")]
    GovernorVeto { factor: &'static str },
}
