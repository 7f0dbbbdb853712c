//! The controller that never acts: the host alone, or a fixed topology (spec 03 §10).

use super::{Controller, Decision, DecisionView, MaskSet, PolicyError};
use crate::seed::LifecycleCommand;

#[derive(Clone, Copy, Debug, Default)]
pub struct WaitController;

impl Controller for WaitController {
    fn name(&self) -> &str {
        "wait"
    }

    fn decide(&mut self, _view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        Ok(masks
            .iter()
            .map(|masks| Decision::new(LifecycleCommand::Wait, masks, "always waits"))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::fixtures::{Scene, empty};

    #[test]
    fn waits_whatever_there_is() {
        let scene = Scene::new(1, empty(3));
        let decision = scene.decide(&mut WaitController);
        assert_eq!(decision.command, LifecycleCommand::Wait);
        assert_eq!(decision.indices, [0, 0, 2, 1, 2, 0, 0, 0]);
    }
}
