//! The controllers that never act: `wait`, the host alone, and `static`, a topology that was there from the first step.

use super::context::BuildContext;
use super::controller::Controller;
use crate::actions::{Decision, MaskSet, PolicyError};
use crate::controller::view::DecisionView;
use crate::growth::LifecycleCommand;
use crate::scenario::InitialTopology;

/// Orders a wait in every step.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitController;

/// Waits on the scenario's initial topology, so that a run measures the architecture without its growth.
#[derive(Clone, Copy, Debug)]
pub struct StaticController;

impl StaticController {
    /// # Errors
    /// If the scenario has no initial topology, because a host that only waits would be measured under the wrong name.
    pub fn new(context: &BuildContext) -> Result<Self, PolicyError> {
        match context.scenario.initial_topology {
            InitialTopology::Empty => Err(PolicyError::config(
                "initial_topology",
                "is empty, but the static controller needs seeds; controller \"wait\" plays the host alone",
            )),
            InitialTopology::Seeds(_) => Ok(Self),
        }
    }
}

impl Controller for WaitController {
    fn name(&self) -> &str {
        "wait"
    }

    fn decide(&mut self, _view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let wait = |masks| Decision::new(LifecycleCommand::Wait, masks, "always waits");
        Ok(masks.iter().map(wait).collect())
    }
}

impl Controller for StaticController {
    fn name(&self) -> &str {
        "static"
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        WaitController.decide(view, masks)
    }
}

#[cfg(test)]
mod tests;
