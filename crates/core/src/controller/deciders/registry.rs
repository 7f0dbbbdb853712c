//! The controllers that `policy.controller` may name.

use std::sync::Arc;

use super::context::BuildContext;
use super::controller::Controller;
use super::external::ExternalController;
use super::growth_schedule::GrowthScheduleController;
use super::heuristic::HeuristicController;
use super::learned::ActorCriticController;
use super::random::RandomController;
use super::replay::ReplayController;
use super::scheduled::ScheduleController;
use super::wait::{StaticController, WaitController};
use crate::actions::PolicyError;
use crate::schema::{Registry, registry};

/// Builds a controller.
pub type ControllerFactory = dyn Fn(&BuildContext) -> Result<Box<dyn Controller>, PolicyError> + Send + Sync;

registry! {
    /// All controllers that `policy.controller` may name.
    pub struct ControllerRegistry(ControllerFactory);
}

impl Default for ControllerRegistry {
    /// With the built-in controllers.
    fn default() -> Self {
        let mut known = Self(Registry::new("controller"));
        let learned = "a recurrent network that PPO trains during the run";
        known.add("actor_critic", learned, ActorCriticController::new);
        let external = "commands from a program that drives the engine, as with serve-envs";
        known.add("external", external, |context| {
            ExternalController::new(context.external)
        });
        let fragrow = "a seed after an interval that follows the gap between training and validation accuracy";
        known.add("fragrow", fragrow, GrowthScheduleController::fragrow);
        let heuristic = "rules: germinate on a plateau, commit what contributes, prune what fails";
        known.add("heuristic", heuristic, HeuristicController::new);
        let periodic = "a seed every N steps, as policy.periodic says";
        known.add("periodic", periodic, GrowthScheduleController::periodic);
        known.add("random", "a random legal command per step", |context| {
            Ok(RandomController(context.scenario.run.seed))
        });
        let replay = "the decisions of the run in policy.replay";
        known.add("replay", replay, ReplayController::new);
        known.add(
            "schedule",
            "the commands listed in policy.schedule",
            ScheduleController::new,
        );
        let fixed = "does nothing; the seeds of initial_topology are committed from the first step";
        known.add("static", fixed, StaticController::new);
        known.add("wait", "does nothing; only the host trains", |_| Ok(WaitController));
        known
    }
}

impl ControllerRegistry {
    fn add<C: Controller + 'static>(
        &mut self,
        name: &str,
        summary: &str,
        new: fn(&BuildContext) -> Result<C, PolicyError>,
    ) {
        let build =
            move |context: &BuildContext| -> Result<Box<dyn Controller>, PolicyError> { Ok(Box::new(new(context)?)) };
        self.register(name, summary, Arc::new(build));
    }

    /// Builds the controller that `policy.controller` names.
    ///
    /// # Errors
    /// The name is unknown, or the factory refuses its configuration.
    pub fn build(&self, context: &BuildContext) -> Result<Box<dyn Controller>, PolicyError> {
        let policy = &context.scenario.policy;
        let (_, build) = self.get(&policy.controller, &policy.controller_settings)?;
        build(context)
    }
}

#[cfg(test)]
mod tests;
