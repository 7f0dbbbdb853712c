//! The vocabulary of growth: slot ids, stages, blend operators, operations, commands, reasons of refusal.
//!
//! Codes are part of observations, masks and schedules' hashes: they are fixed for ever (spec 01 §5-7, 03 §2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A place in a host, printed `r{row}c{col}` and ordered by row, then column (spec 01 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId {
    pub row: u16,
    pub col: u16,
}

impl SlotId {
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

            pub const fn code(self) -> usize {
                self as usize
            }

            pub fn from_code(code: usize) -> Option<Self> {
                Self::ALL.iter().copied().find(|member| member.code() == code)
            }

            /// The upper-case name that telemetry prints.
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
    /// Where a seed stands in its life (spec 01 §7); the code is the observation's one-hot index.
    SeedStage {
        /// Only the previous stage of a fresh seed.
        Unknown = 0 => "UNKNOWN",
        Dormant = 1 => "DORMANT",
        Germinated = 2 => "GERMINATED",
        Training = 3 => "TRAINING",
        Blending = 4 => "BLENDING",
        Holding = 5 => "HOLDING",
        Fossilized = 6 => "FOSSILIZED",
        Pruned = 7 => "PRUNED",
        Embargoed = 8 => "EMBARGOED",
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
    /// How a seed's residual enters the host (spec 01 §5.1).
    AlphaAlgorithm { Add = 1 => "ADD", Multiply = 2 => "MULTIPLY", Gate = 3 => "GATE" }
}
coded_enum! {
    /// What the amplitude is doing.
    AlphaMode { Hold = 0 => "HOLD", Up = 1 => "UP", Down = 2 => "DOWN" }
}
coded_enum! {
    /// Easing of an amplitude ramp (spec 01 §6.1).
    AlphaCurve { Linear = 1 => "LINEAR", Cosine = 2 => "COSINE", Sigmoid = 3 => "SIGMOID" }
}
coded_enum! {
    /// Curve and operator of a seed's first blend (spec 01 §5.2).
    GerminationStyle {
        LinearAdd = 0 => "LINEAR_ADD",
        LinearMultiply = 1 => "LINEAR_MULTIPLY",
        SigmoidAdd = 2 => "SIGMOID_ADD",
        GatedGate = 3 => "GATED_GATE",
    }
}

/// Steepness of a sigmoid ramp unless an action says otherwise.
pub const DEFAULT_STEEPNESS: f64 = 12.0;

impl GerminationStyle {
    pub const fn algorithm(self) -> AlphaAlgorithm {
        match self {
            Self::LinearAdd | Self::SigmoidAdd => AlphaAlgorithm::Add,
            Self::LinearMultiply => AlphaAlgorithm::Multiply,
            Self::GatedGate => AlphaAlgorithm::Gate,
        }
    }

    pub const fn curve(self) -> AlphaCurve {
        match self {
            Self::SigmoidAdd => AlphaCurve::Sigmoid,
            _ => AlphaCurve::Linear,
        }
    }
}

coded_enum! {
    /// Length of the first blend, in steps.
    Tempo { Fast = 0 => "FAST", Standard = 1 => "STANDARD", Slow = 2 => "SLOW" }
}

impl Tempo {
    pub const fn ticks(self) -> u32 {
        [3, 5, 8][self as usize]
    }
}

coded_enum! {
    /// Amplitude to blend to.
    AlphaTarget { Half = 0 => "HALF", Seventy = 1 => "SEVENTY", Full = 2 => "FULL" }
}

impl AlphaTarget {
    pub const fn value(self) -> f64 {
        [0.5, 0.7, 1.0][self as usize]
    }
}

coded_enum! {
    /// Length of a later ramp, in steps.
    AlphaSpeed { Instant = 0 => "INSTANT", Fast = 1 => "FAST", Medium = 2 => "MEDIUM", Slow = 3 => "SLOW" }
}

impl AlphaSpeed {
    pub const fn ticks(self) -> u32 {
        [0, 3, 5, 8][self as usize]
    }
}

coded_enum! {
    /// Curve of a later ramp.
    AlphaCurveAction {
        Linear = 0 => "LINEAR",
        Cosine = 1 => "COSINE",
        SigmoidGentle = 2 => "SIGMOID_GENTLE",
        Sigmoid = 3 => "SIGMOID",
        SigmoidSharp = 4 => "SIGMOID_SHARP",
    }
}

impl AlphaCurveAction {
    pub const fn curve(self) -> AlphaCurve {
        match self {
            Self::Linear => AlphaCurve::Linear,
            Self::Cosine => AlphaCurve::Cosine,
            Self::SigmoidGentle | Self::Sigmoid | Self::SigmoidSharp => AlphaCurve::Sigmoid,
        }
    }

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
        Wait = 0 => "WAIT",
        Germinate = 1 => "GERMINATE",
        SetAlphaTarget = 2 => "SET_ALPHA_TARGET",
        Prune = 3 => "PRUNE",
        Fossilize = 4 => "FOSSILIZE",
        Advance = 5 => "ADVANCE",
    }
}
coded_enum! {
    /// Quality check before a stage; there is no G4 (spec 01 §8).
    GateLevel { G0 = 0 => "G0", G1 = 1 => "G1", G2 = 2 => "G2", G3 = 3 => "G3", G5 = 5 => "G5" }
}
coded_enum! {
    /// Why a seed was pruned (spec 01 §13).
    PruneReason {
        Policy = 0 => "policy",
        GovernorNan = 1 => "governor_nan",
        GovernorLobotomy = 2 => "governor_lobotomy",
        GovernorDivergence = 3 => "governor_divergence",
        GovernorRollback = 4 => "governor_rollback",
        SeedNonfinite = 5 => "seed_nonfinite",
        HoldingTimeout = 6 => "holding_timeout",
    }
}
coded_enum! {
    /// Who ordered a lifecycle change.
    Initiator { Policy = 0 => "policy", Governor = 1 => "governor", Auto = 2 => "auto" }
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

/// What a controller orders; slots are indices into the policy's slot order (spec 03 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum LifecycleCommand {
    Wait,
    Germinate {
        slot: usize,
        blueprint: usize,
        style: GerminationStyle,
        tempo: Tempo,
        target: AlphaTarget,
    },
    SetAlphaTarget {
        slot: usize,
        style: GerminationStyle,
        target: AlphaTarget,
        speed: AlphaSpeed,
        curve: AlphaCurveAction,
    },
    Prune {
        slot: usize,
        speed: AlphaSpeed,
        curve: AlphaCurveAction,
    },
    Fossilize {
        slot: usize,
    },
    Advance {
        slot: usize,
    },
}

impl LifecycleCommand {
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
    pub id: &'static str,
    pub value: Option<f64>,
    pub threshold: Option<f64>,
    pub passed: bool,
}

/// Outcome of a gate (spec 01 §8); `score` lies in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    pub level: GateLevel,
    pub passed: bool,
    pub score: f64,
    pub checks: smallvec::SmallVec<[GateCheck; 4]>,
}

/// Why an operation was refused: shared by masks, execution and telemetry (spec 01 §7.1).
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
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
    #[error("the module does not keep the slot's shape")]
    ShapeMismatch,
    #[error("out of memory")]
    OutOfMemory,
    #[error("vetoed by the governor ({factor})")]
    GovernorVeto { factor: &'static str },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_ordered_by_row_then_column_as_numbers() {
        let mut slots: Vec<SlotId> = ["r1c0", "r0c10", "r0c2"].map(|text| text.parse().unwrap()).to_vec();
        slots.sort();
        assert_eq!(
            slots.iter().map(SlotId::to_string).collect::<Vec<_>>(),
            ["r0c2", "r0c10", "r1c0"]
        );
    }

    #[test]
    fn only_the_written_form_is_a_slot_id() {
        for text in ["early", "r-1c0", "r0", "R0C0", "r0c0 ", "r0c1c2", "rc", "r0c70000", ""] {
            let error = text.parse::<SlotId>().unwrap_err();
            assert!(error.to_string().contains("r<row>c<column>"));
        }
    }

    #[test]
    fn stage_codes_are_the_one_hot_indices_of_the_observation() {
        let names: Vec<_> = SeedStage::ALL.iter().map(|stage| stage.name()).collect();
        assert_eq!(
            names,
            [
                "UNKNOWN",
                "DORMANT",
                "GERMINATED",
                "TRAINING",
                "BLENDING",
                "HOLDING",
                "FOSSILIZED",
                "PRUNED",
                "EMBARGOED",
                "RESETTING"
            ]
        );
        assert_eq!(SeedStage::from_code(10), None);
    }

    #[test]
    fn styles_fix_curve_and_operator() {
        use AlphaAlgorithm::{Add, Gate, Multiply};
        use AlphaCurve::{Linear, Sigmoid};
        let pairs: Vec<_> = GerminationStyle::ALL
            .iter()
            .map(|style| (style.curve(), style.algorithm()))
            .collect();
        assert_eq!(
            pairs,
            [(Linear, Add), (Linear, Multiply), (Sigmoid, Add), (Linear, Gate)]
        );
    }

    #[test]
    fn there_is_no_fourth_gate() {
        assert_eq!(GateLevel::from_code(4), None);
        assert_eq!(GateLevel::from_code(5), Some(GateLevel::G5));
    }
}
