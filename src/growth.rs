//! The vocabulary of growth: slot ids, stages, blend operators, operations, commands, reasons of refusal.
//!
//! Codes are part of observations, masks and schedules' hashes: they are fixed for ever.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A place in a host, printed `r{row}c{col}` and ordered by row, then column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId {
    /// 0: before the pool of a block, 1: after it.
    pub row: u16,
    /// The block.
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

/// Text that is no slot id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no slot id; slots are written r<row>c<column>, e.g. `r0c1`")]
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

impl Serialize for SlotId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SlotId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A name that a member of the vocabulary does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no known name")]
pub struct NameError(pub String);

/// Declares a field-less enum with fixed codes and its members' names; serde writes them in lower case.
macro_rules! coded_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $code:literal => $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_meta])* $variant = $code),+ }

        impl $name {
            /// All members, in code order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The fixed number of the member.
            pub const fn code(self) -> usize {
                self as usize
            }

            /// The member of that number.
            pub fn from_code(code: usize) -> Option<Self> {
                Self::ALL.iter().copied().find(|member| member.code() == code)
            }

            /// The name that telemetry and messages print.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Reads the name in either case.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|member| member.name().eq_ignore_ascii_case(name))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::growth::NameError;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                Self::from_name(name).ok_or_else(|| $crate::growth::NameError(name.into()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.name().to_ascii_lowercase())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <String as serde::Deserialize>::deserialize(deserializer)?;
                Self::from_name(&name).ok_or_else(|| serde::de::Error::custom(format!("`{name}` is unknown here")))
            }
        }
    };
}
pub(crate) use coded_enum;

coded_enum! {
    /// Where a seed stands in its life; the code is the observation's one-hot index.
    SeedStage {
        /// Only the previous stage of a fresh seed.
        Unknown = 0 => "UNKNOWN",
        /// The slot is empty.
        Dormant = 1 => "DORMANT",
        /// A module exists and does not train yet.
        Germinated = 2 => "GERMINATED",
        /// It learns without touching the host.
        Training = 3 => "TRAINING",
        /// Its amplitude rises.
        Blending = 4 => "BLENDING",
        /// It stands at its amplitude, to be committed or pruned.
        Holding = 5 => "HOLDING",
        /// Committed: part of the host.
        Fossilized = 6 => "FOSSILIZED",
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
        self.is_live() || matches!(self, Self::Fossilized)
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
    /// How a seed's residual enters the host.
    AlphaAlgorithm {
        /// `h + α·δ`, with the host's features `h` and the seed's residual `δ`.
        Add = 1 => "ADD",
        /// `h·(1 + α·tanh δ)`.
        Multiply = 2 => "MULTIPLY",
        /// `h + α·g·δ`, with the value `g` of a small learned gate network.
        Gate = 3 => "GATE",
    }
}
coded_enum! {
    /// What the amplitude is doing.
    AlphaMode {
        /// It stays.
        Hold = 0 => "HOLD",
        /// It rises.
        Up = 1 => "UP",
        /// It falls.
        Down = 2 => "DOWN",
    }
}
coded_enum! {
    /// Easing of an amplitude ramp.
    AlphaCurve {
        /// In a line.
        Linear = 1 => "LINEAR",
        /// In half a cosine.
        Cosine = 2 => "COSINE",
        /// In a normalised logistic curve.
        Sigmoid = 3 => "SIGMOID",
    }
}
coded_enum! {
    /// Curve and operator of a seed's first blend.
    GerminationStyle {
        /// A linear ramp of an added residual.
        LinearAdd = 0 => "LINEAR_ADD",
        /// A linear ramp of a multiplied residual.
        LinearMultiply = 1 => "LINEAR_MULTIPLY",
        /// A logistic ramp of an added residual.
        SigmoidAdd = 2 => "SIGMOID_ADD",
        /// A linear ramp of a gated residual.
        GatedGate = 3 => "GATED_GATE",
    }
}

/// Steepness of a sigmoid ramp unless an action says otherwise.
pub const DEFAULT_STEEPNESS: f64 = 12.0;

impl GerminationStyle {
    /// Its operator.
    pub const fn algorithm(self) -> AlphaAlgorithm {
        match self {
            Self::LinearAdd | Self::SigmoidAdd => AlphaAlgorithm::Add,
            Self::LinearMultiply => AlphaAlgorithm::Multiply,
            Self::GatedGate => AlphaAlgorithm::Gate,
        }
    }

    /// Its curve.
    pub const fn curve(self) -> AlphaCurve {
        match self {
            Self::SigmoidAdd => AlphaCurve::Sigmoid,
            _ => AlphaCurve::Linear,
        }
    }
}

coded_enum! {
    /// Length of the first blend, in steps.
    Tempo {
        /// 3 steps.
        Fast = 0 => "FAST",
        /// 5 steps.
        Standard = 1 => "STANDARD",
        /// 8 steps.
        Slow = 2 => "SLOW",
    }
}

impl Tempo {
    /// Steps.
    pub const fn ticks(self) -> u32 {
        [3, 5, 8][self as usize]
    }
}

coded_enum! {
    /// Amplitude to blend to.
    AlphaTarget {
        /// 0.5.
        Half = 0 => "HALF",
        /// 0.7.
        Seventy = 1 => "SEVENTY",
        /// 1.
        Full = 2 => "FULL",
    }
}

impl AlphaTarget {
    /// The amplitude, 0 to 1.
    pub const fn value(self) -> f64 {
        [0.5, 0.7, 1.0][self as usize]
    }
}

coded_enum! {
    /// Length of a later ramp, in steps.
    AlphaSpeed {
        /// At once.
        Instant = 0 => "INSTANT",
        /// 3 steps.
        Fast = 1 => "FAST",
        /// 5 steps.
        Medium = 2 => "MEDIUM",
        /// 8 steps.
        Slow = 3 => "SLOW",
    }
}

impl AlphaSpeed {
    /// Steps.
    pub const fn ticks(self) -> u32 {
        [0, 3, 5, 8][self as usize]
    }
}

coded_enum! {
    /// Curve of a later ramp.
    AlphaCurveAction {
        /// In a line.
        Linear = 0 => "LINEAR",
        /// In half a cosine.
        Cosine = 1 => "COSINE",
        /// A logistic curve of steepness 6.
        SigmoidGentle = 2 => "SIGMOID_GENTLE",
        /// A logistic curve of steepness 12.
        Sigmoid = 3 => "SIGMOID",
        /// A logistic curve of steepness 24.
        SigmoidSharp = 4 => "SIGMOID_SHARP",
    }
}

impl AlphaCurveAction {
    /// Its shape.
    pub const fn curve(self) -> AlphaCurve {
        match self {
            Self::Linear => AlphaCurve::Linear,
            Self::Cosine => AlphaCurve::Cosine,
            Self::SigmoidGentle | Self::Sigmoid | Self::SigmoidSharp => AlphaCurve::Sigmoid,
        }
    }

    /// Steepness of its logistic curve, if it is one.
    pub const fn steepness(self) -> f64 {
        match self {
            Self::SigmoidGentle => 6.0,
            Self::SigmoidSharp => 24.0,
            _ => DEFAULT_STEEPNESS,
        }
    }
}

coded_enum! {
    /// The head that is always relevant.
    LifecycleOp {
        /// Do nothing.
        Wait = 0 => "WAIT",
        /// Plant a seed.
        Germinate = 1 => "GERMINATE",
        /// Ramp a seed's amplitude.
        SetAlphaTarget = 2 => "SET_ALPHA_TARGET",
        /// Remove a seed.
        Prune = 3 => "PRUNE",
        /// Commit a seed.
        Fossilize = 4 => "FOSSILIZE",
        /// Try a seed's next gate.
        Advance = 5 => "ADVANCE",
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
coded_enum! {
    /// Why a seed was pruned.
    PruneReason {
        /// Ordered by the controller.
        Policy = 0 => "policy",
        /// The loss of the env was not finite.
        GovernorNan = 1 => "governor_nan",
        /// The host collapsed to guessing.
        GovernorLobotomy = 2 => "governor_lobotomy",
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
    /// Who ordered a lifecycle change.
    Initiator {
        /// The controller.
        Policy = 0 => "policy",
        /// The governor.
        Governor = 1 => "governor",
        /// A rule of the lifecycle itself.
        Auto = 2 => "auto",
    }
}
coded_enum! {
    /// Who or what moved a seed to another stage.
    StageCause {
        /// An order of the controller.
        Policy = 0 => "policy",
        /// A gate that is tried without being asked.
        Gate = 1 => "gate",
        /// The engine itself: cool-down, automatic prune.
        Auto = 2 => "auto",
        /// A rollback.
        Governor = 3 => "governor",
        /// The ramp down that a prune ordered.
        ScheduledPrune = 4 => "scheduled_prune",
    }
}

impl From<Initiator> for StageCause {
    fn from(initiator: Initiator) -> Self {
        match initiator {
            Initiator::Policy => Self::Policy,
            Initiator::Governor => Self::Governor,
            Initiator::Auto => Self::Auto,
        }
    }
}

/// What a controller orders; slots are indices into the policy's slot order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum LifecycleCommand {
    /// Nothing.
    Wait,
    /// Plant a seed.
    Germinate {
        /// Where.
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
    /// Ramp a seed's amplitude.
    SetAlphaTarget {
        /// Of which seed.
        slot: usize,
        /// Its operator holds from now on.
        style: GerminationStyle,
        /// New amplitude.
        target: AlphaTarget,
        /// Length of the ramp.
        speed: AlphaSpeed,
        /// Curve of the ramp.
        curve: AlphaCurveAction,
    },
    /// Remove a seed.
    Prune {
        /// Which.
        slot: usize,
        /// Length of the ramp down.
        speed: AlphaSpeed,
        /// Curve of the ramp down.
        curve: AlphaCurveAction,
    },
    /// Commit a seed.
    Fossilize {
        /// Which.
        slot: usize,
    },
    /// Try a seed's next gate.
    Advance {
        /// Of which seed.
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
            Self::Fossilize { .. } => LifecycleOp::Fossilize,
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
            | Self::Fossilize { slot }
            | Self::Advance { slot } => Some(slot),
        }
    }
}

/// One named comparison of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GateCheck {
    /// Name of the comparison.
    pub id: &'static str,
    /// What was measured.
    pub value: Option<f64>,
    /// What it was compared with.
    pub threshold: Option<f64>,
    /// Whether it was good enough.
    pub passed: bool,
}

/// Outcome of a gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    /// Which gate.
    pub level: GateLevel,
    /// Whether the seed may go on.
    pub passed: bool,
    /// How well the seed does, from 0 to 1.
    pub score: f64,
    /// Every comparison.
    pub checks: smallvec::SmallVec<[GateCheck; 4]>,
}

/// Why an operation was refused: shared by masks, execution and telemetry.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FailureReason {
    #[error("the slot is disabled")]
    SlotDisabled,
    #[error("the slot is occupied")]
    SlotOccupied,
    #[error("the slot is empty")]
    SlotEmpty,
    #[error("the slot cools down ({stage}, {left} steps left)")]
    Cooldown { stage: SeedStage, left: u32 },
    #[error("the seed limit is reached")]
    SeedLimit,
    #[error("another seed is still developing")]
    DevelopingSeed,
    #[error("the seed is {stage}")]
    WrongStage { stage: SeedStage },
    #[error("the seed is {age} steps old, {min} are needed")]
    TooYoung { age: u32, min: u32 },
    #[error("the seed's alpha is moving {mode}")]
    AlphaBusy { mode: AlphaMode },
    #[error("this gate is tried automatically")]
    AdvanceDisabled,
    #[error("gate {gate} failed")]
    GateFailed { gate: GateLevel },
    #[error("the alpha target is not valid here")]
    InvalidTarget,
    #[error("the blueprint is not available here")]
    BlueprintUnavailable,
    #[error("the blueprint has no trainable parameters")]
    NoTrainableParams,
    #[error("out of memory")]
    OutOfMemory,
    #[error("vetoed by the governor ({factor})")]
    GovernorVeto { factor: &'static str },
}

#[cfg(test)]
mod tests;
