//! The controllers that never act: `wait`, the host alone, and `static`, a topology that was there from the first step
//! (spec 03 §10, 06 §15.3).

use super::{BuildContext, Controller, Decision, DecisionView, MaskSet, PolicyError};
use crate::growth::LifecycleCommand;
use crate::scenario::InitialTopology;

#[derive(Clone, Copy, Debug, Default)]
pub struct WaitController;

/// Waits on the scenario's initial topology, so that a run tells what the architecture is worth without its growth.
#[derive(Clone, Copy, Debug)]
pub struct StaticController;

impl StaticController {
    /// # Errors
    /// The scenario has no initial topology: waiting on the host alone would be measured under the wrong name.
    pub fn new(context: &BuildContext) -> Result<Self, PolicyError> {
        match context.initial_topology {
            InitialTopology::Empty => Err(PolicyError::config(
                "initial_topology",
                "is empty, but a static topology needs one; controller \"wait\" plays the host alone",
            )),
            InitialTopology::Seeds(_) | InitialTopology::Run { .. } => Ok(Self),
        }
    }
}

impl Controller for WaitController {
    fn name(&self) -> &str {
        "wait"
    }

    fn decide(&mut self, _view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        Ok(wait(masks))
    }
}

impl Controller for StaticController {
    fn name(&self) -> &str {
        "static"
    }

    fn decide(&mut self, _view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        Ok(wait(masks))
    }
}

fn wait(masks: &[MaskSet]) -> Vec<Decision> {
    masks
        .iter()
        .map(|masks| Decision::new(LifecycleCommand::Wait, masks, "always waits"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::fixtures::{Ground, Scene, empty};

    #[test]
    fn waits_whatever_there_is() {
        let scene = Scene::new(1, empty(3));
        let decision = scene.decide(&mut WaitController);
        assert_eq!(decision.command, LifecycleCommand::Wait);
        assert_eq!(decision.indices, [0, 0, 2, 1, 2, 0, 0, 0]);
    }

    #[test]
    fn a_static_topology_has_to_be_there() {
        let mut ground = Ground::default();
        assert_eq!(
            StaticController::new(&ground.context()).unwrap_err().to_string(),
            "`initial_topology`: is empty, but a static topology needs one; controller \"wait\" plays the host alone"
        );
        ground.initial_topology = InitialTopology::Seeds(Vec::new());
        assert!(StaticController::new(&ground.context()).is_ok());
    }
}
