//! The controller that takes its commands, through a resource, from the program that drives the engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::resource::Resource;

use super::command_list::CommandList;
use super::controller::Controller;
use crate::actions::{Decision, MaskSet, PolicyError};
use crate::controller::view::DecisionView;
use crate::growth::LifecycleCommand;

/// The next commands of controller `external`. A run with it needs this resource before its first step, and a system that fills
/// it between `Work::BuildMasks` and `Work::Decide` of each step. There it sees all of the envs. Clones share the commands.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use simic_engine::extend::{ExternalCommands, Masks};
/// use simic_engine::prelude::*;
///
/// /// Advances every seed that may advance.
/// fn choose(envs: Query<(&EnvId, &StepStatus, &Masks)>, commands: Res<ExternalCommands>) {
///     let deciding = envs.iter().filter(|(_, status, _)| status.participates());
///     commands.order(deciding.filter_map(|(id, _, masks)| {
///         let slot = masks.0.as_ref()?.slots_for(LifecycleOp::Advance).lowest()?;
///         Some((id.index, LifecycleCommand::Advance { slot }))
///     }));
/// }
///
/// fn decide_here(app: &mut App) {
///     app.init_resource::<ExternalCommands>();
///     app.add_systems(Decide, choose.in_set(EngineSet::Decide).before(Work::Decide));
/// }
///
/// let mut engine = Engine::builder().with(decide_here).from_ron(
///     r#"(
///         task: preset("digits_minimal", (batches_per_step: count(1))),
///         run: (rounds: 1, n_envs: 1, max_steps: 2),
///         policy: (controller: "external"),
///     )"#,
/// )?;
/// engine.run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Resource, Clone, Debug, Default)]
pub struct ExternalCommands(Arc<Mutex<BTreeMap<usize, LifecycleCommand>>>);

impl ExternalCommands {
    /// Replaces the commands, keyed by env index. An env without a command waits. A command for an env that takes no part in
    /// the step is ignored.
    pub fn order(&self, commands: impl IntoIterator<Item = (usize, LifecycleCommand)>) {
        let commands = commands.into_iter().collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = commands;
    }

    fn take(&self) -> BTreeMap<usize, LifecycleCommand> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Decides as ordered.
#[derive(Clone, Debug)]
pub struct ExternalController {
    commands: ExternalCommands,
    list: CommandList,
}

impl ExternalController {
    /// # Errors
    /// If `commands` is `None`.
    pub fn new(commands: Option<&ExternalCommands>) -> Result<Self, PolicyError> {
        let commands = commands.cloned().ok_or_else(|| {
            let why = "controller \"external\" takes its commands from a program that drives the engine, but none does; \
                       start it with `simic-engine serve-envs`, or insert the resource ExternalCommands";
            PolicyError::config("policy.controller", why)
        })?;
        Ok(Self {
            commands,
            list: CommandList::new("program outside", "ordered from outside", false),
        })
    }
}

impl Controller for ExternalController {
    fn name(&self) -> &str {
        "external"
    }

    fn needs_observation(&self) -> bool {
        true
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let mut commands = self.commands.take();
        let envs = view.envs.iter().zip(masks);
        envs.map(|(env, masks)| {
            let command = commands.remove(&env.row.env).unwrap_or(LifecycleCommand::Wait);
            self.list.decide(command, masks, view.point(env.row))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests;
