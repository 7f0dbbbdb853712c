//! Controllers by name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use bevy_ecs::resource::Resource;
use tch::Device;

use super::choices::Choices;
use super::error::PolicyError;
use super::{
    ActorCriticController, AllowedActions, Controller, HeuristicController, NetRegistry, ObservationFeatures,
    ObservationSchema, RandomController, ReplayController, ScheduleController, StaticController, WaitController,
};
use crate::growth::SlotId;
use crate::scenario::{InitialTopology, LearnerConfig, LifecycleConfig, PolicyConfig};

/// What a controller may be built from.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    pub policy: &'a PolicyConfig,
    pub lifecycle: &'a LifecycleConfig,
    pub learner: &'a LearnerConfig,
    /// What every episode starts with.
    pub initial_topology: &'a InitialTopology,
    /// In the policy's slot order.
    pub slots: &'a [SlotId],
    /// Blueprint names by index.
    pub blueprints: &'a [&'a str],
    /// The blueprints that may grow in at least one slot.
    pub selectable: Choices,
    /// Steps of an episode.
    pub max_steps: u32,
    /// `run.seed`.
    pub seed: u64,
    /// The policy group's number in random streams; 0 under common random numbers.
    pub group: u64,
    /// Envs of the policy group.
    pub rows: usize,
    /// Those of them that are played, by their index in the run.
    pub envs: &'a [usize],
    /// That are played, from 0.
    pub rounds: &'a Range<u32>,
    /// Where a network's tensors live.
    pub device: Device,
    /// Networks that `policy.net` may name.
    pub nets: &'a NetRegistry,
    /// Features that plugins add to observations.
    pub features: &'a ObservationFeatures,
    /// Relative paths start here.
    pub folder: Option<&'a Path>,
}

impl BuildContext<'_> {
    /// The layout of observations in this run.
    pub fn schema(&self) -> ObservationSchema {
        let decay = self.policy.obs.freshness_decay;
        ObservationSchema::new(self.slots, self.max_steps, decay, self.features)
            .with_nonfinite(self.learner.obs_norm.nonfinite_obs)
    }

    /// What the scenario leaves of the action space.
    ///
    /// # Errors
    /// It leaves nothing of a head, or names an unknown member.
    pub fn allowed_actions(&self) -> Result<AllowedActions, PolicyError> {
        AllowedActions::new(&self.policy.masks.action_space, self.blueprints)
    }

    /// Index of a selectable blueprint.
    ///
    /// # Errors
    /// No blueprint of that name, or one that no slot can grow; `path` says where it was asked for.
    pub fn blueprint(&self, path: &str, name: &str) -> Result<usize, PolicyError> {
        let index = self.blueprints.iter().position(|known| *known == name);
        index.filter(|&index| self.selectable.contains(index)).ok_or_else(|| {
            let names: Vec<&str> = self
                .selectable
                .iter()
                .filter_map(|index| self.blueprints.get(index).copied())
                .collect();
            PolicyError::config(
                path,
                format!(
                    "no slot of this host can grow `{name}`; choose one of {}",
                    names.join(", ")
                ),
            )
        })
    }

    /// Policy index of a slot.
    ///
    /// # Errors
    /// The slot is not enabled.
    pub fn slot(&self, path: &str, slot: SlotId) -> Result<usize, PolicyError> {
        self.slots.iter().position(|&known| known == slot).ok_or_else(|| {
            let names: Vec<String> = self.slots.iter().map(SlotId::to_string).collect();
            PolicyError::config(
                path,
                format!("slot `{slot}` is not enabled; enabled are {}", names.join(", ")),
            )
        })
    }
}

/// Builds a controller for one policy group.
pub type ControllerFactory = fn(&BuildContext) -> Result<Box<dyn Controller>, PolicyError>;

#[derive(Clone, Debug)]
struct Registered {
    summary: String,
    build: ControllerFactory,
}

/// All controllers that `policy.controller` may name.
#[derive(Resource, Clone, Debug)]
pub struct ControllerRegistry {
    controllers: BTreeMap<String, Registered>,
}

impl Default for ControllerRegistry {
    /// With the built-in controllers.
    fn default() -> Self {
        let builtin: [(&str, &str, ControllerFactory); 7] = [
            (
                "actor_critic",
                "a recurrent network, trained while the run goes on",
                |context| Ok(Box::new(ActorCriticController::new(context)?)),
            ),
            (
                "heuristic",
                "rules: germinate on a plateau, commit what contributes, prune what fails",
                |context| Ok(Box::new(HeuristicController::new(context)?)),
            ),
            ("random", "a random legal command per step", |context| {
                let weights = context.policy.random.op_weights;
                Ok(Box::new(RandomController::new(context.seed, context.group, weights)))
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
        let registered = |(name, summary, build): (&str, &str, ControllerFactory)| {
            let summary = summary.to_owned();
            (name.to_owned(), Registered { summary, build })
        };
        Self {
            controllers: builtin.into_iter().map(registered).collect(),
        }
    }
}

impl ControllerRegistry {
    /// Adds a controller; `summary` is its line in `simic-engine list controllers`.
    ///
    /// # Errors
    /// The name is taken.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        summary: impl Into<String>,
        build: ControllerFactory,
    ) -> Result<(), PolicyError> {
        let name = name.into();
        if self.controllers.contains_key(&name) {
            return Err(PolicyError::DuplicateRegistration {
                kind: "controller",
                name,
            });
        }
        let summary = summary.into();
        self.controllers.insert(name, Registered { summary, build });
        Ok(())
    }

    /// Names with their summaries, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.controllers
            .iter()
            .map(|(name, controller)| (name.as_str(), controller.summary.as_str()))
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.controllers.keys().map(String::as_str)
    }

    /// Builds the controller that `policy.controller` names.
    ///
    /// # Errors
    /// The name is unknown, or the factory refuses its configuration.
    pub fn build(&self, context: &BuildContext) -> Result<Box<dyn Controller>, PolicyError> {
        let name = &context.policy.controller;
        let controller = self
            .controllers
            .get(name)
            .ok_or_else(|| PolicyError::UnknownController {
                name: name.clone(),
                available: self.names().map(String::from).collect(),
            })?;
        (controller.build)(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::fixtures::Ground;

    fn wait(_: &BuildContext) -> Result<Box<dyn Controller>, PolicyError> {
        Ok(Box::new(WaitController))
    }

    #[test]
    fn every_builtin_builds_under_its_own_name() {
        let registry = ControllerRegistry::default();
        let mut ground = Ground::default();
        ground.policy.schedule.builtin = Some(crate::scenario::BuiltinSchedule::GerminateFirstSlot);
        ground.initial_topology = InitialTopology::Seeds(Vec::new());
        for name in ["actor_critic", "heuristic", "random", "schedule", "static", "wait"] {
            ground.policy.controller = name.into();
            assert_eq!(registry.build(&ground.context()).unwrap().name(), name);
        }
    }

    #[test]
    fn a_name_is_taken_once() {
        let mut registry = ControllerRegistry::default();
        assert_eq!(registry.register("mine", "my own", wait), Ok(()));
        assert_eq!(
            registry.register("mine", "another", wait),
            Err(PolicyError::DuplicateRegistration {
                kind: "controller",
                name: "mine".into()
            })
        );
    }

    #[test]
    fn an_unknown_name_lists_what_there_is() {
        let mut ground = Ground::default();
        ground.policy.controller = "oracle".into();
        let error = ControllerRegistry::default().build(&ground.context()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "no controller is called `oracle`; there are: actor_critic, heuristic, random, replay, schedule, static, wait"
        );
    }
}
