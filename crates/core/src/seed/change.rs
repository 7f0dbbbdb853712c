//! The result of a lifecycle operation, as data: the new record, the tensors to change, the events to write.
//!
//! An operation reads the old record and returns a [`SeedPlan`]; nothing has happened until the owner of the module and
//! the optimizer has carried out the effects and stored the new record. A refused operation therefore cannot have
//! changed anything.

use smallvec::SmallVec;

use super::{PruneOrder, SeedRecord};
use crate::growth::{AlphaSpeed, GateResult, SeedStage};

/// The record as it will be (`None` = slot empty), and what changes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedPlan {
    /// The record to store.
    pub next: Option<SeedRecord>,
    /// The operation's changes.
    pub change: Change,
}

impl SeedPlan {
    /// Stores the new record, once the effects have been carried out.
    pub fn commit(self, slot: &mut Option<SeedRecord>) -> Change {
        *slot = self.next;
        self.change
    }
}

/// Everything that one operation or tick changes in a slot; each part becomes one telemetry event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// A change of stage.
    pub transition: Option<Transition>,
    /// An ordered ramp.
    pub retarget: Option<Retarget>,
    /// A gate result worth telling.
    pub gate: Option<GateReport>,
    /// Set with the transition to Pruned.
    pub pruned: Option<PruneOrder>,
    /// Effects on module, gate and optimizer, in the order in which to carry them out.
    pub effects: SmallVec<[Effect; 2]>,
}

/// A change of stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// The stage left.
    pub from: SeedStage,
    /// The stage entered.
    pub to: SeedStage,
    /// Alpha before the change.
    pub alpha: f64,
}

/// An ordered ramp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retarget {
    /// Alpha when the ramp was ordered.
    pub from: f64,
    /// Alpha at its end.
    pub to: f64,
    /// Length of the ramp.
    pub speed: AlphaSpeed,
}

/// A gate's result, and whether it differs from the last attempt's in this stage.
#[derive(Clone, Debug, PartialEq)]
pub struct GateReport {
    /// The result.
    pub result: GateResult,
    /// Whether the last attempt had failed.
    pub flipped: bool,
}

/// A change of tensors, to be carried out by their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Put the module, built beforehand, into the slot.
    InsertSeed,
    /// Create the gate; its parameters join the seed's optimizer, if there is one, with empty state.
    AddGate,
    /// Drop the gate and its entries in the optimizer; the seed's momentum stays.
    RemoveGate,
    /// Create the optimizer of the seed's parameters.
    CreateOptimizer,
    /// Zero the optimizer's state.
    ResetMomentum,
    /// A committed seed that continues to train does so without weight decay.
    StopWeightDecay,
    /// Drop module, gate and optimizer, before any event is written.
    DropSeed,
}
