//! Seeds: what can grow in a slot, and its life cycle there (`docs/reference/hosts.md`).
//!
//! Two halves that meet only in an env's slots: plain data (stages with their gates, alpha, legality, lifecycle) and tensors
//! (blueprints, modules, gate networks, blend operators).

mod alpha;
mod blend;
mod blueprint;
mod contract;
mod gate_network;
mod registry;
mod instance;
mod modules;
mod statistics;
mod record;
mod stages;
mod invariants;
mod report;
mod legality;
mod lifecycle;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod properties;

pub use alpha::{ALPHA_TOLERANCE, AlphaController, RampShape};
pub(crate) use blend::fit_residual;
pub use blend::{Amplitude, BlendError, Residual};
pub use blueprint::{Blueprint, BlueprintError, MAX_BLUEPRINTS, SeedModule};
pub use gate_network::GateNetwork;
pub use instance::SeedInstance;
pub use invariants::broken_law;
pub use legality::{Limits, SlotView, command_legal, legal};
pub use lifecycle::{
    AlphaOrder, Germination, Rules, SeedOrder, germinate, germinate_committed, plan_command, prune, prune_now,
    set_alpha_target, tick,
};
pub(crate) use modules::module_of;
pub use modules::{CnnBlueprint, TokenBlueprint};
pub use record::{
    AccuracyTrack, Change, ContributionTrack, Effect, GateMemory, GateReport, GradientTrack, PruneOrder, Retarget,
    SeedIdentity, SeedPlan, SeedRecord, Transition,
};
pub use registry::{BlueprintRegistry, FIRST_PLUGIN_INDEX};
pub use report::SeedReport;
pub use stages::{Isolation, MIN_CONTRIBUTION, evaluate_gate, has_optimizer, may_follow, next_stage, trains};
pub use statistics::{GradientSums, Growth, STATISTICS_STRIDE};
