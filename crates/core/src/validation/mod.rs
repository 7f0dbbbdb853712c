//! Validation: one pass that measures the network and every configuration of its seeds, and the attribution from it.
//!
//! Pure parts: `plan` (which configurations), `changes` (whether any), `attribution` and `shapley` (what they say). Tensors:
//! `coalition_tree` and `coalition` (one forward for all configurations). `pass`, `assess` and `test_part` are the systems, `committed` is
//! what an episode ends with.

mod plan;
mod changes;
mod coalition_tree;
mod coalition;
pub(crate) mod pass;
mod shapley;
mod attribution;
pub(crate) mod assess;
mod committed;
pub(crate) mod test_part;

use bevy_app::{App, Plugin};

use crate::env::KeepInRounds;
use crate::schedule::{AddWork, Assess, Batches, Startup, StepEnd, StepSync, Work};

pub use assess::{Counterfactual, MeasuredNetwork, macs_of_training};
pub use attribution::{Attribution, PlayerAttribution, Synergy};
pub use changes::LastMeasured;
pub use coalition::coalition_forward;
pub use coalition_tree::{CoalitionError, CoalitionTree, LiveSlot};
pub(crate) use committed::{CommittedNetwork, Reached, Tools};
pub use pass::{ValPlan, ValidationBatches};
pub use plan::{
    AttributionPlan, CoalitionPlan, PlanMoment, Player, Players, find_players, max_configurations, plan_coalitions,
};
pub use test_part::TestResult;

/// Validates all envs with all coalitions of their seeds.
pub struct ValidationPlugin;

impl Plugin for ValidationPlugin {
    fn build(&self, app: &mut App) {
        app.add_work(Startup, Work::EquipValidation, pass::equip_envs)
            .add_work(Batches, Work::ValidateBatches, pass::validate_batches)
            .add_work(StepSync, Work::WaitAll, assess::wait_all)
            .add_work(StepSync, Work::Unpack, assess::unpack)
            .add_work(Assess, Work::DeriveValMetrics, assess::derive_val_metrics)
            .add_work(Assess, Work::CountCompute, assess::count_compute)
            .add_work(Assess, Work::Attribute, assess::attribute)
            .add_work(StepEnd, Work::EvaluateTest, test_part::evaluate_test)
            .keep_in_rounds::<ValPlan>("val_plan")
            .keep_in_rounds::<Counterfactual>("counterfactual")
            .keep_in_rounds::<TestResult>("test_result");
    }
}
