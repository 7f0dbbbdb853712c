//! Inputs from which controllers are built.

use std::ops::Range;
use std::path::{Path, PathBuf};

use tch::Device;

use super::external::ExternalCommands;
use crate::actions::{AllowedActions, Choices, PolicyError};
use crate::controller::view::{ObservationFeatures, ObservationSchema};
use crate::growth::SlotId;
use crate::policy::NetRegistry;
use crate::scenario::Scenario;

/// The inputs from which a controller may be built.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// The experiment as its author wrote it.
    pub scenario: &'a Scenario,
    /// In the policy's slot order.
    pub slots: &'a [SlotId],
    /// Blueprint names by index.
    pub blueprints: &'a [&'a str],
    /// The blueprints that may grow in at least one slot.
    pub selectable: Choices,
    /// Steps of an episode.
    pub max_steps: u32,
    /// Envs that are played, by their index in the run.
    pub envs: &'a [usize],
    /// Rounds that are played, from 0.
    pub rounds: &'a Range<u32>,
    /// The device of a network's tensors.
    pub device: Device,
    /// Networks that `policy.net` may name.
    pub nets: &'a NetRegistry,
    /// Features that plugins add to observations.
    pub features: &'a ObservationFeatures,
    /// The commands from a program that drives the engine and decides.
    pub external: Option<&'a ExternalCommands>,
    /// The folder in which relative paths start.
    pub folder: Option<&'a Path>,
}

impl BuildContext<'_> {
    /// The layout of observations in this run.
    pub fn schema(&self) -> ObservationSchema {
        ObservationSchema::new(
            self.slots,
            self.max_steps,
            &self.scenario.policy.features,
            self.features,
        )
    }

    /// The part of the action space that the scenario allows.
    pub fn allowed_actions(&self) -> AllowedActions {
        AllowedActions::new(&self.scenario.policy.masks.action_space, self.blueprints)
    }

    /// A path of the scenario, which may be relative to its file.
    pub fn path(&self, written: &str) -> PathBuf {
        self.folder.unwrap_or(Path::new("")).join(written)
    }

    /// Index of a selectable blueprint.
    ///
    /// # Errors
    /// If there is no blueprint of that name, or no slot can grow it. `path` names the field that requested it.
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
    /// If the slot isn't enabled.
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
