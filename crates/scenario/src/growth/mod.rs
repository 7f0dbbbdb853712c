//! The vocabulary of growth: slot ids, stages, blend operators, operations, commands, reasons of refusal.
//!
//! Codes are part of observations, masks and schedules' hashes: they are fixed for ever.

mod declare;
mod blending;
mod operations;
mod slots;
mod stages;
#[cfg(test)]
mod tests;

pub use blending::{
    AlphaAlgorithm, AlphaCurve, AlphaCurveAction, AlphaMode, AlphaSpeed, AlphaTarget, DEFAULT_STEEPNESS,
    GerminationStyle, Tempo,
};
pub use declare::NameError;
#[doc(hidden)]
pub use declare::{coded_enum, written_as_text};
pub use operations::{FailureReason, LifecycleCommand, LifecycleOp};
pub use slots::{InjectionSpec, SlotId, SlotIdError, Topology};
pub use stages::{GateCheck, GateLevel, GateResult, Initiator, PruneReason, SeedStage};
