//! What a client has to know before it decides: sizes and names of observations and actions.

use bevy_ecs::world::World;
use serde::Serialize;

use super::actions::{Actions, Vocabulary};
use super::frame::VERSION;
use crate::actions::{AllowedActions, PolicyError};
use crate::controller::{ObservationSchema, selectable};
use crate::env::Experiment;
use crate::seed::BlueprintRegistry;

/// The answer to `hello`.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "hello")]
pub struct Spaces {
    version: u32,
    program: &'static str,
    scenario: String,
    task: String,
    envs: usize,
    max_steps: u32,
    seed: u64,
    slots: Vec<String>,
    /// Names of the elements of an observation.
    observation: Vec<String>,
    pub actions: Actions,
}

impl Spaces {
    /// Of an engine that has started.
    ///
    /// # Errors
    /// None for a scenario that was found valid.
    pub fn of(world: &World, is_factored: bool) -> Result<Self, PolicyError> {
        let experiment = world.resource::<Experiment>();
        let (scenario, registry) = (&experiment.scenario, world.resource::<BlueprintRegistry>());
        let slots: Vec<String> = experiment
            .layout
            .slots()
            .iter()
            .map(|spec| spec.slot.to_string())
            .collect();
        let blueprints: Vec<String> = registry.names().map(str::to_owned).collect();
        let words = Vocabulary {
            slots: &slots,
            blueprints: &blueprints,
            selectable: selectable(registry),
            space: &scenario.policy.masks.action_space,
            allowed: world.resource::<AllowedActions>(),
        };
        let actions = match is_factored {
            true => Actions::factored(&words),
            false => Actions::flat(&words)?,
        };
        Ok(Self {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION"),
            scenario: scenario.name.clone(),
            task: experiment.task.name.clone(),
            envs: experiment.envs.len(),
            max_steps: experiment.task.max_steps,
            seed: scenario.run.seed,
            observation: world.resource::<ObservationSchema>().names().to_vec(),
            slots,
            actions,
        })
    }
}
