//! Validation: one pass that measures the network and every configuration of its seeds, and what follows from it.
//!
//! Pure parts: `plan` (which configurations), `attribution`, `interaction` and `shapley` (what they say). Tensors:
//! `coalition_tree` and `coalition` (one forward for all configurations). `pass`, `sync` and `assess` are the systems.

mod assess;
mod attribution;
mod coalition;
#[cfg(test)]
mod coalition_fixtures;
#[cfg(test)]
mod coalition_properties;
#[cfg(test)]
mod coalition_tests;
mod coalition_tree;
mod final_test;
mod interaction;
mod pass;
mod plan;
mod shapley;
mod sync;

pub use assess::{Counterfactual, ValidationPlugin};
pub use attribution::*;
pub use coalition::*;
pub use coalition_tree::*;
pub use final_test::TestResult;
pub use interaction::*;
pub use pass::{FoldedModel, MAIN, ValBatches, ValPlan, ValidatingEnv, live_slots};
pub use plan::*;
pub use shapley::*;
pub use sync::StepResult;
