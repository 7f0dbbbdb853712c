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
        type BuiltIn = fn(&BuildContext) -> Result<Box<dyn Controller>, PolicyError>;
        let builtin: [(&str, &str, BuiltIn); 10] = [
            (
                "actor_critic",
                "a recurrent network that PPO trains during the run",
                |context| Ok(Box::new(ActorCriticController::new(context)?)),
            ),
            (
                "external",
                "the commands of a program that holds the engine: serve-envs",
                |context| Ok(Box::new(ExternalController::new(context.external)?)),
            ),
            (
                "fragrow",
                "a seed after an interval that follows the gap between training and validation accuracy",
                |context| Ok(Box::new(GrowthScheduleController::fragrow(context)?)),
            ),
            (
                "heuristic",
                "rules: germinate on a plateau, commit what contributes, prune what fails",
                |context| Ok(Box::new(HeuristicController::new(context)?)),
            ),
            ("periodic", "a seed every N steps, as policy.periodic says", |context| {
                Ok(Box::new(GrowthScheduleController::periodic(context)?))
            }),
            ("random", "a random legal command per step", |context| {
                Ok(Box::new(RandomController(context.scenario.run.seed)))
            }),
            ("replay", "the decisions of the recorded run policy.replay", |context| {
                Ok(Box::new(ReplayController::new(context)?))
            }),
            ("schedule", "the commands listed in policy.schedule", |context| {
                Ok(Box::new(ScheduleController::new(context)?))
            }),
            (
                "static",
                "never does anything: the seeds of initial_topology, committed from the first step",
                |context| Ok(Box::new(StaticController::new(context)?)),
            ),
            ("wait", "never does anything: the host alone", |_| {
                Ok(Box::new(WaitController))
            }),
        ];
        let mut controllers = Self(Registry::new("controller"));
        for (name, summary, build) in builtin {
            controllers.register(name, summary, Arc::new(build));
        }
        controllers
    }
}

impl ControllerRegistry {
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
